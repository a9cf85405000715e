"""What Karpenter will do to nodes because of a NodePool's edit or deletion, or does already: the price of an action."""

from typing import Literal

import msgspec

# Because of a decision of this plan; or, as things stand, without any.
Cause = Literal["change", "standing"]
# What becomes of the nodes, in the order in which it is told.
Fate = Literal[
    "removed",  # drifted while empty: deleted, not replaced
    "replaced",  # drifted and busy: a replacement is launched, the pods are evicted
    "blocked",  # drifted and busy, and pods or budgets hold it up with no end known
    "deleted",  # its NodePool is deleted: garbage-collected outside all budgets
    "undrifted",  # drifted now, and no longer after the change
]


class Consequence(msgspec.Struct, frozen=True, gc=False):
    """Nodes that share a fate."""

    pool: str
    node_pool: str
    cause: Cause
    fate: Fate
    nodes: tuple[str, ...]  # names, sorted
    gpus: int  # allocatable on those nodes
    gpus_in_use: int
    pods: int  # that must move: DaemonSet and mirror pods don't count
    micro_dollars_per_hour: int  # what changes in the bill; negative is saved
    wave: int = 0  # nodes at once, by the budgets; 0 where no budget limits it
    seconds: int | None = None  # roughly how long, by the budgets; None where no end is known
    held_by: tuple[
        tuple[str, int], ...
    ] = ()  # what holds nodes up, and how many: do-not-disrupt, PodDisruptionBudget/ns/name
    unpriced: int = 0  # nodes that leave and whose price nobody declared: they are not in the money above
