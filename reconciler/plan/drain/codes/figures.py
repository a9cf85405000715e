"""What several codes of drains tell: the size that a pool keeps, where pods would go, which nodes have no room."""

from typing import Literal

import msgspec

from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.instant import Instant

_MOST_NAMED = 3

# Which rule of a NodeProvisioner decides how many nodes a pool keeps (see limits.py).
FloorRule = Literal[
    "minSize", "maxSize", "warmNodes", "minUnutilizedGPUNodes", "minGPUUtilizationPercent", "gpuUtilization"
]
# Why nodes take no pods of others, whatever room they have.
AsideCause = Literal["leaving", "notReady", "driverUpgrade", "empty", "candidate", "other"]


class Floor(msgspec.Struct, frozen=True, gc=False):
    """How many nodes a pool keeps, and what that follows from."""

    nodes: int
    by: FloorRule
    gpus_used: int = 0
    gpus_total: int = 0
    gpus_per_node: int = 0
    percent: int = 0  # minGPUUtilizationPercent
    spare: int = 0  # nodes that are kept free
    closed: int = 0  # empty ones that others have cordoned: they are no spare nodes

    @property
    def packed(self) -> int:
        """How many nodes the GPUs in use need."""
        return -(-self.gpus_used // self.gpus_per_node) if self.gpus_per_node else 0

    def with_spare(self, spare: int) -> int:
        """How many nodes the pool has where so many of them are free for pods."""
        return self.packed + (spare + self.closed if spare else 0)


class Destinations(msgspec.Struct, frozen=True, gc=False):
    """Nodes that pods would go to: the first by name, and how many more."""

    first: tuple[str, ...] = ()
    more: int = 0


def destinations_of(nodes: tuple[str, ...]) -> Destinations:
    """`nodes`: by name."""
    return Destinations(nodes[:_MOST_NAMED], max(0, len(nodes) - _MOST_NAMED))


class Aside(msgspec.Struct, frozen=True, gc=False):
    """Nodes that were not asked to take a pod."""

    why: AsideCause
    nodes: int


class NodesWithoutRoom(msgspec.Struct, frozen=True, gc=False):
    """Why no node takes a pod."""

    ruled_out: Rejections = Rejections()
    aside: tuple[Aside, ...] = ()


class TaintTime(msgspec.Struct, frozen=True, gc=False):
    """The time that a taint tells."""

    value: str
    at: Instant | None = None  # None: it can't be read


class FreezeEnd(msgspec.Struct, frozen=True, gc=False):
    """Until when a freeze lasts."""

    written: str
    at: Instant | None = None  # None: it can't be read
    reason: str = ""
