"""A drain in which everything goes wrong that can, one after the other; owner of what was seen on the way."""

import re
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from reconciler.model import names
from tests.lab.api import Manifest
from tests.lab.identities import RECONCILER
from tests.lab.proxy.door import Proxy
from tests.lab.proxy.faults import Answer, Cut, DelayAnswer, Fault, LoseAnswer, Match, Silence
from tests.lab.proxy.records import Exchange
from tests.stages.live_drains.applications import Application
from tests.stages.live_drains.drained import Drained, marks
from tests.stages.live_drains.history import History
from tests.stages.live_drains.judging import Told, judged

TRIED, KEPT = 12, 2  # nodes
RUNS = {
    "tried": (
        Application("failing", 12, 6),
        Application("web", 12, 6),
        Application("api", 10, 6, by="minAvailable"),
    ),
    "kept": (Application("queue", 6, 5, starts_after="3s"),),
}
LEFT = 5  # nodes of 8 GPUs that hold 34 pods
TRIES = 4

_TAINTS = Match(verb="patch", path="/nodes/", body=f'"{names.DRAINING}"')
_EVICTIONS = Match(path="/namespaces/tried/pods/[^/]+/eviction")
_FAILING = Match(path="/pods/failing-[^/]+/eviction")
_LONG_SECONDS = 600.0  # nobody waits for so long


class Story(NamedTuple):
    """What came of it."""

    told: Told
    half_tainted: list[str]  # the taints' values on nodes when the first controller had been killed
    stuck: str  # a node that can't be tainted
    exchanges: list[Exchange]
    left: dict[str, list[Manifest]]
    is_whole: bool
    deleted: list[str]
    given_back: list[str]  # what is told of it on a node


class Troubles:
    """Pools behind a proxy: one that is tried, and one whose pods can't leave any more."""

    def __init__(self, drained: Drained, proxy: Proxy) -> None:
        self.drained, self.admin, self.proxy = drained, drained.admin, proxy
        self.half_tainted: list[str] = []
        self.stuck = ""  # the path of a node that can't be tainted

    def story(self) -> Story:
        with self.drained.site.behind(self.proxy) as first:
            first.wait_until_leading()
            self.drained.buys({"tried": TRIED, "kept": KEPT})
            history, audit = History(self.admin), self.drained.lab.audit()
            self._keeps_its_pods()
            self._half_a_batch()
            first.kill()
        self.drained.site.end_term()
        self.half_tainted = [marks(each)[names.DRAINING] for each in self._tainted("tried")]
        with self.drained.site.behind(self.proxy) as second:
            self._torn_and_half_emptied()
            second.kill()
        self.drained.site.end_term()
        with self.drained.site.behind(self.proxy):
            self._faults()
            self.drained.settles("tried", LEFT, within=600)
            self.drained.settles("kept", KEPT, within=600)
        history.end()
        told = judged(history.moments(), RUNS)
        deleted = [each.object for each in audit.writes(RECONCILER) if (each.verb, each.code) == ("delete", 200)]
        left = {pool: self.drained.nodes(pool) for pool in RUNS}
        whole, exchanges = self.drained.is_whole(), self.proxy.exchanges
        stuck = self.stuck.rpartition("/")[2]
        return Story(told, self.half_tainted, stuck, exchanges, left, whole, deleted, self._given_back())

    def _keeps_its_pods(self) -> None:
        """A budget is cut to nothing when the first pod of a node has left."""
        (queue,), before = RUNS["kept"], self._pods("kept")
        self.drained.drains("kept", maxGracefulTerminationSeconds=1)
        self.drained.until(lambda: before - self._pods("kept"), 180)
        self.admin.apply(queue.budget("kept", queue.replicas))
        assert len(self._tainted("kept")) == 1

    def _half_a_batch(self) -> None:
        """The third taint of a batch, and all that come after it, never arrive."""
        stuck = self.proxy.inject(Fault(Silence(), _TAINTS, skip=2, times=None))
        self.drained.drains("tried", maxDrainParallelism=8)
        self.proxy.wait_for(stuck, 180)
        path = next(each.path for each in self.proxy.exchanges if each.fault is stuck)
        self.stuck = path.partition("?")[0]

    def _torn_and_half_emptied(self) -> None:
        """That node can't be tainted, whoever tries; and of the next batch two evictions are answered, a third takes
        effect, and nobody is told."""
        self.proxy.clear()
        its = Match(verb="patch", path=re.escape(self.stuck), body=_TAINTS.body)
        self.proxy.inject(Fault(Answer(500), its, None))
        fatal = self.proxy.inject(Fault(LoseAnswer(), _EVICTIONS, skip=2))
        self.proxy.wait_for(fatal, 180)

    def _faults(self) -> None:
        """Whatever can be answered, or not; and pods whose evictions fail until one was tried a few times."""
        self.proxy.clear()
        self.proxy.inject(Fault(Answer(500), _FAILING, None))
        ordered = [
            Fault(Answer(429, retry_after=1), _EVICTIONS, 3),
            Fault(Answer(500), _EVICTIONS, 2),
            Fault(Cut(before_upstream=True), _EVICTIONS, 2),
            Fault(LoseAnswer(), _EVICTIONS, 2),
            Fault(Silence(), _EVICTIONS, 1),
            Fault(DelayAnswer(_LONG_SECONDS), _EVICTIONS, 1),
        ]
        for fault in ordered:
            self.proxy.inject(fault)
        for fault in ordered:
            self.proxy.wait_for(fault, 300)
        self.drained.until(lambda: max(map(len, tries(self.proxy.exchanges).values()), default=0) >= TRIES, 120)
        self.proxy.clear()

    def _tainted(self, pool: str) -> list[Manifest]:
        return [each for each in self.drained.nodes(pool) if names.DRAINING in marks(each)]

    def _pods(self, pool: str) -> set[str]:
        return {each["metadata"]["uid"] for each in self.admin.list("pods", pool)}

    def _given_back(self) -> list[str]:
        told = [each for each in self.admin.list("events", "default") if each["reason"] == "GivenBack"]
        on_nodes = [each for each in told if each["regarding"]["kind"] == "Node"]
        return [str(each.get("message") or each.get("note")) for each in on_nodes]


def tries(exchanges: Iterable[Exchange]) -> dict[str, list[float]]:
    """When evictions that fail for long were sent, by path."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for each in exchanges:
        if each.fault is not None and each.fault.when is _FAILING:
            found[each.path].append(each.started_seconds)
    return found
