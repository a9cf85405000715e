"""What becomes of nodes: Karpenter, scaling and drains take them away, or replace them; purchases bring others."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import CapacityLimit, Stage, Why
from reconciler.model.plan.decision import Obstacle, order_of

# Because of a decision of this plan; or, as things stand, without any.
Cause = Literal["change", "standing"]
# What becomes of the nodes, in the order in which it is told.
Fate = Literal[
    "scaled",  # empty, and more than the pool needs: marked, and deleted at its time; told in reports alone
    "drained",  # little used: its pods are evicted, then it is deleted; told in reports alone
    "removed",  # drifted while empty: deleted, not replaced
    "replaced",  # drifted and busy: a replacement is launched, the pods are evicted
    "blocked",  # drifted and busy, and pods, budgets or limits hold it up with no end known
    "deleted",  # its NodePool is deleted: garbage-collected outside all budgets
    "undrifted",  # drifted now, and no longer after the change
    "exchanged",  # replaced with the change and without it, by another machine with it; told in reports alone
    "bought",  # not there yet: bought, asked for, or to be asked for; told in reports alone
    "scheduled",  # asked for when a schedule begins, for as long as that holds; in no total; told in reports alone
    "limited",  # wanted, and not asked for while a limit allows no more nodes; in no total; told in reports alone
]

# Nodes of these fates are gone in the end.
LEAVES: frozenset[Fate] = frozenset({"scaled", "drained", "removed", "deleted"})


# What sort of thing holds a node up.
HindranceKind = Literal["annotation", "pod_budget", "node_budget", "limits", "no_place"]


class Hindrance(msgspec.Struct, frozen=True, gc=False, order=True):
    """What holds a node up."""

    title: str  # karpenter.sh/do-not-disrupt, PodDisruptionBudget/ml/train
    kind: HindranceKind


class Homeless(msgspec.Struct, frozen=True, gc=False):
    """Pods of one owner that would fit nowhere."""

    owner: str  # namespace/name of what made them; of the pod itself where nothing did
    why: tuple[Obstacle, ...]  # at least one
    pods: int


class Share(msgspec.Struct, frozen=True, gc=False):
    """What one node has in the sums of its consequence."""

    gpus: int
    gpus_in_use: int
    pods: int
    micro_dollars_per_hour: int
    unpriced: int
    held_by: tuple[Hindrance, ...]
    homeless: tuple[Homeless, ...] = ()
    at: Instant | None = None  # when it is deleted, if scaled; when its pods are evicted, if drained; or asked for
    serves: int = 0  # pods that it is bought for
    is_paid_for: bool = False  # of a purchase: its machine runs already


class MachineOrder(msgspec.Struct, frozen=True, gc=False, order=True):
    """Which machines come: for nodes that are bought, and how far that is, or for nodes that are replaced."""

    instance_type: str  # nothing where that is not known
    capacity_type: str
    stage: Stage | None = None  # None: they replace others
    why: Why | None = None
    limit: CapacityLimit | None = None  # what allows no more nodes

    @property
    def words(self) -> str:
        """p4d.24xlarge (reserved)."""
        kind = f" ({self.capacity_type})" if self.capacity_type else ""
        return f"{self.instance_type}{kind}" if self.instance_type else "machines of a sort that is not known"


class Consequence(msgspec.Struct, frozen=True, gc=False):
    """Nodes that share a fate."""

    pool: str
    node_pool: str
    cause: Cause
    fate: Fate
    nodes: tuple[str, ...]  # names, sorted; of nodes that come, a name for each that is no node's
    gpus: int  # allocatable on those nodes
    gpus_in_use: int
    pods: int  # that must move: DaemonSet and mirror pods don't count
    micro_dollars_per_hour: int  # what changes in the bill; negative is saved
    wave: int = 0  # nodes at once, by the budgets; 0 where no budget limits it
    seconds: int | None = None  # roughly how long, by the budgets; None where no end is known
    held_by: tuple[tuple[Hindrance, int], ...] = ()  # what holds nodes up, and how many
    unpriced: int = 0  # nodes without a declared price, or followed by some without: not in the money above
    homeless: tuple[Homeless, ...] = ()  # of the pods that must move, those that would fit nowhere
    shares: tuple[Share, ...] = ()  # what each node has in the sums, in the order of `nodes`
    order: MachineOrder | None = None  # which machines come; None: none does, or replacements of the same sort
    serves: int = 0  # pods that nodes are bought for

    @property
    def first_at(self) -> Instant | None:
        """When the first of the nodes is scaled down, drained or asked for; None where that is not known."""
        return min((each.at for each in self.shares if each.at is not None), default=None)

    def only(self, nodes: Iterable[str]) -> "Consequence | None":
        """What is left of it for these nodes; nothing where it has none of them. Pace and duration stay."""
        wanted = set(nodes)
        if wanted.isdisjoint(self.nodes):
            return None
        if wanted.issuperset(self.nodes):
            return self
        kept = [(node, share) for node, share in zip(self.nodes, self.shares, strict=True) if node in wanted]
        return summed(self, kept)


def summed(like: Consequence, shared: Iterable[tuple[str, Share]]) -> Consequence:
    """The same fate, for these nodes."""
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
    """Of an owner, why, and how many pods."""
    (owner, why), pods = one
    return owner, tuple(map(order_of, why)), pods
