"""Owner of two replicas, one of which is stopped past its Lease in the middle of a write, and then woken."""

import json
import os
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from tests.lab.identities import RECONCILER
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import Delay, Fault, Match
from tests.stages.controlled import Site
from tests.stages.replica import Replica

LEASE_SECONDS = 4
WRITES = Match(verb="patch", path="/nodepools/")
_LATE = Delay(120)  # until it is let go


@dataclass(frozen=True)
class Round:
    """What became of the write that the stopped leader had sent, and what stands."""

    wished: int
    at_the_end: int
    refused: int | None  # what the API server said to it
    stale_writes: int  # writes of the plan before that took effect


class Standoff:
    """Each replica has a proxy of its own on its way, which can hold a write back."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._open = ExitStack()
        self._audit = site.lab.audit()
        self._replicas: dict[str, tuple[Replica, Proxy]] = {}

    def __enter__(self) -> Self:
        self._site.write(limits={"nodes": 1})
        for name in ("one", "two"):
            proxy = self._open.enter_context(self._site.lab.proxy())
            replica = self._site.behind(proxy, "--lease-seconds", str(LEASE_SECONDS))
            self._replicas[name] = self._open.enter_context(replica), proxy
        self._wait_for(1)
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._open.close()

    @staticmethod
    def roles(one: Replica, other: Replica) -> tuple[Replica, Replica]:
        """The one that leads, and the one that waits, once both are up."""
        for replica in (one, other):
            replica.wait_for(lambda line: line["event"] == "started")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for leads, waits in ((one, other), (other, one)):
                if leads.leads:
                    return leads, waits
            time.sleep(0.05)
        raise AssertionError("nobody leads")

    def round(self, number: int) -> Round:
        """The leader sends a write that is held back, and is stopped; the other leads, and follows newer policies;
        then the first is woken, and its write let go."""
        stale, wished = 10 * number + 2, 10 * number + 3
        leads, _ = self.roles(*(replica for replica, _ in self._replicas.values()))
        proxy = next(proxy for replica, proxy in self._replicas.values() if replica is leads)
        held = proxy.inject(Fault(_LATE, WRITES))
        self._site.write(limits={"nodes": stale})
        proxy.wait_for(held, 60)
        os.kill(leads.pid, signal.SIGSTOP)
        self._site.write(limits={"nodes": wished})
        self._wait_for(wished)
        since = len(leads.lines)
        os.kill(leads.pid, signal.SIGCONT)
        proxy.clear()
        leads.wait_for(lambda line: line["event"] == "leadership", since=since)
        (late,) = [each for each in proxy.exchanges if each.fault is held]
        deadline = time.monotonic() + 60
        while late.status is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return Round(wished, self._nodes(), late.status, self._took_effect(stale))

    def _took_effect(self, nodes: int) -> int:
        patches = [
            entry
            for entry in self._audit.entries(RECONCILER)
            if entry.write.verb == "patch" and entry.write.object.startswith("nodepools") and entry.write.code < 300
        ]
        return sum(_limit(entry.body) == nodes for entry in patches)

    def _nodes(self) -> int:
        return _limit(self._site.lab.admin.get("nodepools", "a100"))

    def _wait_for(self, nodes: int) -> None:
        self._site.lab.admin.wait_for("nodepools", "a100", lambda pool: pool and _limit(pool) == nodes, within=60)


def _limit(body: object) -> int:
    pool = json.loads(body) if isinstance(body, str) else body
    assert isinstance(pool, dict)
    return int(pool["spec"]["limits"]["nodes"])
