"""Consequences for nodes: removals and replacements by Karpenter, scaling and drains, and purchases."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit, Stage, Why
from reconciler.model.plan.decision import Obstacle, order_of

# Caused by a decision of this plan; or happening anyway.
Cause = Literal["change", "standing"]
# The fate of the nodes, in the order of reports.
Fate = Literal[
    "scaled",  # empty surplus node: tainted, and deleted when its delay ends; only in reports
    "drained",  # underutilized node: its pods are evicted, then it is deleted; only in reports
    "removed",  # drifted while empty: deleted, not replaced
    "replaced",  # drifted and busy: a replacement is launched, the pods are evicted
    "blocked",  # drifted and busy, and blocked by pods, budgets or limits with no known end
    "deleted",  # its NodePool is deleted: garbage-collected outside all budgets
    "undrifted",  # drifted now, but no longer after the change
    "exchanged",  # replaced with and without the change, but by another machine type with the change; only in reports
    "bought",  # does not exist yet: launched, requested or to be requested; only in reports
    "scheduled",  # requested while a schedule is active; in no total; only in reports
    "limited",  # needed, but not requested because of a limit; in no total; only in reports
]

# Nodes with these fates are removed in the end.
LEAVES: frozenset[Fate] = frozenset({"scaled", "drained", "removed", "deleted"})


# The kinds of objects that block a node.
HindranceKind = Literal["annotation", "pod_budget", "node_budget", "limits", "no_place"]


class Hindrance(msgspec.Struct, frozen=True, gc=False, order=True):
    """An object or annotation that blocks the disruption of a node."""

    title: str  # karpenter.sh/do-not-disrupt, PodDisruptionBudget/ml/train
    kind: HindranceKind


class Homeless(msgspec.Struct, frozen=True, gc=False):
    """Pods of one owner that would fit on no node."""

    owner: str  # namespace/name of the controller, or of the pod itself if it has none
    why: tuple[Obstacle, ...]  # at least one obstacle
    pods: int


class Share(msgspec.Struct, frozen=True, gc=False):
    """The contribution of one node to the sums of its consequence."""

    gpus: int
    gpus_in_use: int
    pods: int
    micro_dollars_per_hour: int
    unpriced: int
    held_by: tuple[Hindrance, ...]
    homeless: tuple[Homeless, ...] = ()
    at: Instant | None = None  # time of deletion (scaled), eviction (drained) or request (bought)
    serves: int = 0  # pods that the node is bought for
    is_paid_for: bool = False  # of a purchase: the machine is already running


class MachineOrder(msgspec.Struct, frozen=True, gc=False, order=True):
    """The type of new machines: for purchases, with their stage, or for replacements."""

    instance_type: str  # empty if unknown
    capacity_type: str
    stage: Stage | None = None  # None for replacements
    why: Why | None = None
    limit: CapacityLimit | None = None  # the limit that prevents the purchase

    @property
    def words(self) -> str:
        """p4d.24xlarge (reserved)."""
        kind = f" ({self.capacity_type})" if self.capacity_type else ""
        return f"{self.instance_type}{kind}" if self.instance_type else "machines of unknown type"


class Consequence(msgspec.Struct, frozen=True, gc=False):
    """A group of nodes with the same fate."""

    pool: str
    node_pool: str
    cause: Cause
    fate: Fate
    nodes: tuple[str, ...]  # names, sorted; future nodes have synthetic names that no node has
    gpus: int  # allocatable on these nodes
    gpus_in_use: int
    pods: int  # pods that must move, without DaemonSet and mirror pods
    micro_dollars_per_hour: int  # change of the cost; negative is a saving
    wave: int = 0  # nodes disrupted at once, by the budgets; 0 if no budget limits them
    seconds: int | None = None  # estimated duration, by the budgets; None if unbounded
    held_by: tuple[tuple[Hindrance, int], ...] = ()  # what blocks nodes, and the number of nodes
    unpriced: int = 0  # nodes without a price, or with unpriced replacements: not in the cost above
    homeless: tuple[Homeless, ...] = ()  # of the pods that must move, those that fit nowhere
    shares: tuple[Share, ...] = ()  # each node's contribution, in the order of `nodes`
    order: MachineOrder | None = None  # type of new machines; None: no new machines, or replacements of the same type
    serves: int = 0  # pods that the nodes are bought for

    @property
    def first_at(self) -> Instant | None:
        """The earliest time at which a node is scaled down, drained or requested; None if unknown."""
        return min((each.at for each in self.shares if each.at is not None), default=None)

    def only(self, nodes: Iterable[str]) -> "Consequence | None":
        """The consequence reduced to these nodes; None if it has none of them. Pace and duration are kept."""
        wanted = set(nodes)
        if wanted.isdisjoint(self.nodes):
            return None
        if wanted.issuperset(self.nodes):
            return self
        kept = [(node, share) for node, share in zip(self.nodes, self.shares, strict=True) if node in wanted]
        return summed(self, kept)


def summed(like: Consequence, shared: Iterable[tuple[str, Share]]) -> Consequence:
    """The same fate for these nodes."""
    ordered = sorted(shared, key=lambda each: each[0])
    shares = tuple(share for _, share in ordered)
    held = Counter(holder for share in shares for holder in share.held_by)
    homeless: Counter[tuple[str, tuple[Obstacle, ...]]] = Counter()
    for each in (each for share in shares for each in share.homeless):
        homeless[each.owner, each.why] += each.pods
    return msgspec.structs.replace(
        like,
        nodes=tuple(node for node, _ in ordered),
        gpus=sum(each.gpus for each in shares),
        gpus_in_use=sum(each.gpus_in_use for each in shares),
        pods=sum(each.pods for each in shares),
        micro_dollars_per_hour=sum(each.micro_dollars_per_hour for each in shares),
        unpriced=sum(each.unpriced for each in shares),
        held_by=tuple(sorted(held.items())),
        homeless=tuple(
            Homeless(owner, why, pods) for (owner, why), pods in sorted(homeless.items(), key=homeless_order)
        ),
        serves=sum(each.serves for each in shares),
        shares=shares,
    )


def homeless_order(one: tuple[tuple[str, tuple[Obstacle, ...]], int]) -> tuple[Any, ...]:
    """Sort key: owner, obstacles, number of pods."""
    (owner, why), pods = one
    return owner, tuple(map(order_of, why)), pods
