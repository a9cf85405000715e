"""A Play: a scenario with all its inputs, parsed and rendered; no external data is read during the run."""

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.memory import Memory
from reconciler.simulate.openb import OpenbNode, OpenbPods
from reconciler.simulate.scenario.spec import Scenario


class Revised(msgspec.Struct, frozen=True):
    after_ms: int
    desired: Desired


class Play(msgspec.Struct, frozen=True):
    """The same play gives the same outcome, byte for byte."""

    name: str
    scenario: Scenario
    revisions: tuple[Revised, ...]  # the first is in force from the start
    seed: int
    label: str = ""  # label of its policies, in comparisons
    machines: tuple[OpenbNode, ...] = ()  # of a trace
    traces: tuple[tuple[str, OpenbPods], ...] = ()  # by workload name
    observed: Observed | None = None  # an observed cluster: the initial state
    memory: Memory = Memory()  # the controller's initial memory
    priced_by: tuple[Desired, ...] = ()  # policies that define prices for all compared plays; empty: those in force

    @property
    def start(self) -> Instant:
        return instant(self.scenario.start)

    @property
    def end(self) -> Instant:
        return Instant(self.start + self.scenario.duration.milliseconds)

    @property
    def first(self) -> Desired:
        return self.revisions[0].desired

    def trace(self, workload: str) -> OpenbPods:
        return dict(self.traces).get(workload, OpenbPods())
