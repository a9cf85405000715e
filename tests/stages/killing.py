"""Owner of a controller that is killed in the middle of its writes, again and again, and of what it was to write."""

import json
import random
from collections import Counter
from typing import Any

from tests.lab.api import Manifest
from tests.lab.identities import NAMESPACE, RECONCILER
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import Cut, Fault, LoseAnswer, Match
from tests.stages.controlled import LEASE, Site
from tests.stages.replica import Replica

POOLS = tuple(f"pool-{number}" for number in range(6))
WRITES = Match(verb="patch", path="/nodepools/")


class Killing:
    """Each round the policies of all pools are edited, and the process dies at one of the writes that follow: just
    before the API server has it, or just after. The next process finishes the round."""

    def __init__(self, site: Site, proxy: Proxy, seed: int) -> None:
        self._site, self._proxy = site, proxy
        self._chance = random.Random(seed)
        self._audit = site.lab.audit()
        self.kills_after_the_write = 0

    def run(self, kills: int) -> None:
        self._edit(0)
        replica = self._started()
        try:
            self._finished(0)
            for number in range(1, kills + 1):
                self._killed(replica, number)
                replica = self._started()
                try:
                    self._finished(number)
                except AssertionError as late:
                    raise AssertionError("\n".join(map(str, (f"round {number}", *replica.lines)))) from late
        finally:
            replica.end()

    def writes(self) -> Counter[tuple[str, int]]:
        """How often a write took effect, by pool and round; the API server's own count."""
        found: Counter[tuple[str, int]] = Counter()
        for entry in self._audit.entries(RECONCILER):
            if entry.write.verb == "patch" and entry.write.object.startswith("nodepools") and entry.write.code < 300:
                found[entry.write.object.rpartition("/")[2], _round(entry.body)] += 1
        return found

    def _edit(self, number: int) -> None:
        for name in POOLS:
            self._site.write(name, limits={"nodes": 100 + number})

    def _killed(self, replica: Replica, number: int) -> None:
        is_after = self._chance.random() < 0.5
        act = LoseAnswer() if is_after else Cut(before_upstream=True)
        fatal = self._proxy.inject(Fault(act, WRITES, skip=self._chance.randrange(len(POOLS))))
        self._edit(number)
        self._proxy.wait_for(fatal, 60)
        replica.kill()
        self._proxy.clear()
        self.kills_after_the_write += is_after
        # That it is dead is known here; another replica would have to wait until the Lease has run out.
        self._site.lab.admin.delete("leases", LEASE, NAMESPACE)

    def _started(self) -> Replica:
        return self._site.behind(self._proxy)

    def _finished(self, number: int) -> None:
        for name in POOLS:
            self._site.lab.admin.wait_for("nodepools", name, lambda pool: pool and _round(pool) == number, within=60)


def _round(pool: Manifest | Any) -> int:
    body = json.loads(pool) if isinstance(pool, str) else pool
    return int(body["spec"]["limits"]["nodes"]) - 100
