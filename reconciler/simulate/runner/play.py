"""A Play: a scenario with all that it names, read and rendered: nothing outside is asked for while it runs."""

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.memory import Memory
from reconciler.simulate.openb import OpenbNode, OpenbPods
from reconciler.simulate.scenario.spec import Scenario


class Revised(msgspec.Struct, frozen=True):
    """The wish from some moment on."""

    after_ms: int
    desired: Desired


class Play(msgspec.Struct, frozen=True):
    """The same play gives the same outcome, byte for byte."""

    name: str
    scenario: Scenario
    revisions: tuple[Revised, ...]  # the first is in force from the beginning
    seed: int
    label: str = ""  # of its policies, where several are compared
    machines: tuple[OpenbNode, ...] = ()  # of a trace
    traces: tuple[tuple[str, OpenbPods], ...] = ()  # by the names of their workloads
    observed: Observed | None = None  # a cluster that was seen: what there is at first
    memory: Memory = Memory()  # what its controller remembered
    priced_by: tuple[Desired, ...] = ()  # policies whose prices hold for all that is compared; none: those in force

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
