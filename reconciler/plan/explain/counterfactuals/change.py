"""What would have to be otherwise, as data: one class a kind of change."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.action import Ref
from reconciler.plan.guards.frozen import FreezeScope


class Change(msgspec.Struct, frozen=True, tag=True):
    """Words of each are in reconciler/report/explain/changes.py."""


class ChangeOf(Change, frozen=True):
    """One that may be made of several objects of a kind."""

    of: tuple[Ref, ...]


# Of nodes, and of what others do with them


class ChangeOfNode(Change, frozen=True):
    node: str


class DisruptionEnds(ChangeOfNode, frozen=True):
    """Karpenter does not disrupt it."""


class TaintRemoved(ChangeOfNode, frozen=True):
    key: str


class NodeUncordoned(ChangeOfNode, frozen=True):
    pass


class DriverUpgraded(ChangeOfNode, frozen=True):
    pass


class OptOutRemoved(ChangeOfNode, frozen=True):
    key: str
    value: str


class GpusReturned(ChangeOfNode, frozen=True):
    """No GPU of it is lent."""


class PodArrives(ChangeOfNode, frozen=True):
    """A pod runs there that may be moved."""


class NodeReady(ChangeOfNode, frozen=True):
    pass


class NodeLikeIt(ChangeOfNode, frozen=True):
    """Another one, in use and with room."""


class NodesReady(Change, frozen=True):
    pool: str
    nodes: int  # that are ready besides


class PoolResumed(Change, frozen=True):
    pool: str


class Thawed(Change, frozen=True):
    scope: FreezeScope


class TurnComes(Change, frozen=True):
    """It is tried in the next plans."""


class PlannerDone(Change, frozen=True):
    planner: str


class TimePasses(Change, frozen=True):
    at: Instant


# Of pods, their budgets and claims


class PodAnnotated(ChangeOf, frozen=True):
    key: str
    value: str


class AnnotationRemoved(ChangeOf, frozen=True):
    key: str


class RunsNotToCompletion(ChangeOf, frozen=True):
    pass


class NotUnsafeToEvict(ChangeOf, frozen=True):
    pass


class NoGpuClaim(ChangeOf, frozen=True):
    pass


class PodGone(ChangeOf, frozen=True):
    pass


class BudgetAllows(ChangeOf, frozen=True):
    disruptions: int


class BudgetsSelectOthers(Change, frozen=True):
    budgets: tuple[str, ...]  # titles
    pod: str  # its title


class GangRefRemoved(Change, frozen=True):
    claims: tuple[Ref, ...]


class PodsGone(Change, frozen=True):
    pods: tuple[Ref, ...]


# Of policies


class ThresholdRaised(Change, frozen=True):
    policy: str
    percent: int


class ClusterMinLowered(Change, frozen=True):
    policies: tuple[str, ...]
    resource: str
    left: str


class ParallelismRaised(Change, frozen=True):
    policy: str
    nodes: int


SizeField = Literal["min_gpu_utilization_percent", "min_unutilized_gpu_nodes", "warm_nodes", "min_size"]


class SizeLowered(Change, frozen=True):
    """By the figures of a NodeProvisioner."""

    provisioner: str
    figures: tuple[tuple[SizeField, int], ...]
    without_schedules: bool = False


class ProvisionerRemoved(Change, frozen=True):
    provisioner: str


def together(changes: Iterable[Change]) -> tuple[Change, ...]:
    """The same of several objects of a kind is one change."""
    groups: dict[tuple[str, Change], dict[str, Ref]] = {}
    for each in changes:
        of = each.of if isinstance(each, ChangeOf) else ()
        alike = msgspec.structs.replace(each, of=()) if of else each
        groups.setdefault((of[0].kind if of else "", alike), {}).update({ref.title: ref for ref in of})
    return tuple(
        msgspec.structs.replace(change, of=tuple(refs[title] for title in sorted(refs))) if refs else change
        for (_, change), refs in groups.items()
    )
