"""Owner of what a simulation showed by the way: the cluster before anything was done, and once nodes were marked."""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant, unix_seconds
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.model.plan.inputs import Inputs


class Witness:
    """A Publisher."""

    def __init__(self) -> None:
        self.first: Inputs | None = None
        self.marked: Inputs | None = None  # the last that has nodes with the soft mark

    def publish(self, cycled: CycleResult) -> None:
        inputs = cycled.inputs
        if inputs is None:
            return
        if self.first is None:
            self.first = inputs
        if marks_of(inputs.observed):
            self.marked = inputs


def marks_of(observed: Observed) -> dict[str, Instant]:
    """Nodes that are marked, and that pods may still land on; and when they are to go."""
    instants = {}
    for node in observed.nodes:
        for taint in node.spec.taints:
            at = unix_seconds(taint.value)
            if taint.key == names.DELETION_TIME and taint.effect == "PreferNoSchedule" and at is not None:
                instants[node.name] = at
    return instants


def later(inputs: Inputs, now: Instant) -> Inputs:
    """The same cluster, looked at again when nothing had changed."""
    return msgspec.structs.replace(inputs, observed=msgspec.structs.replace(inputs.observed, seen_at=now), now=now)
