"""A shape: a kind of node that could be bought, what its nodes would be like, where, and at what price."""

import msgspec

from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.pod import Amounts


class Offering(msgspec.Struct, frozen=True, gc=False):
    """Where a shape can be bought, and for how much."""

    zone: str  # empty where the cloud has none
    capacity_type: str  # spot, on-demand, reserved; empty where there is but one
    micro_dollars_per_hour: int
    available: bool = True


class Shape(msgspec.Struct, frozen=True, gc=False):
    """A kind of node. Labels are those that all its nodes have; zone and capacity type follow from the offering."""

    name: str
    labels: dict[str, str]
    taints: tuple[NodeTaint, ...]
    allocatable: Amounts  # what pods may ask for, once the DaemonSets have taken theirs
    offerings: tuple[Offering, ...]
    most_nodes: int | None = None  # that may be bought; None: as many as are wanted


class BinpackLimits(msgspec.Struct, frozen=True, gc=False):
    """How far packing may go."""

    nodes: int | None = None  # that may be bought, of all shapes together
    steps: int | None = None  # of work; each look at up to a thousand kinds of pod or offerings is one
