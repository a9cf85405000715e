"""What packing found: the nodes to buy with the pods of each, and why other pods go nowhere."""

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.obstacle import Obstacle


class NewNode(msgspec.Struct, frozen=True, gc=False):
    """A node to buy, and the pods that it is for."""

    shape: str
    zone: str
    capacity_type: str
    micro_dollars_per_hour: int
    pods: tuple[Pod, ...]


class ShapeRefusal(msgspec.Struct, frozen=True, gc=False):
    """Why a pod can't be on new nodes of some shapes, whoever else is there."""

    why: Obstacle
    shapes: tuple[str, ...]


class Unplaced(msgspec.Struct, frozen=True, gc=False):
    """A pod that goes nowhere: why, and what rules out shapes of themselves."""

    pod: Pod
    why: Obstacle
    refusals: tuple[ShapeRefusal, ...]
    is_ruled_out: bool  # by these alone: they name every shape


class Packed(msgspec.Struct, frozen=True, gc=False):
    """Nodes in no order that means anything, yet always the same; pods without a place by namespace and name.

    `order` names every placed pod once (node, pod of that node): bound in this order, onto nodes that are all there
    from the start, each pod passes every filter of the scheduler when its turn comes.
    """

    nodes: tuple[NewNode, ...]
    unplaced: tuple[Unplaced, ...]
    not_evaluated: tuple[Pod, ...]  # of which nothing is known, since the steps were spent
    order: tuple[tuple[int, int], ...]
    steps: int

    @property
    def micro_dollars_per_hour(self) -> int:
        return sum(each.micro_dollars_per_hour for each in self.nodes)
