"""How much of a node is asked for: of its GPUs where it has some, else the dearer of cpu and memory.

Pods of DaemonSets and static pods come with every node and don't count. All in integers, since a threshold decides.
"""

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names


class Usage(msgspec.Struct, frozen=True, gc=False):
    """Of the resource that decides."""

    resource: str
    used: int
    total: int

    def is_at_most(self, percent: int) -> bool:
        """As Cluster Autoscaler 1.32 and later compare. A node with none of the resource counts as full."""
        return bool(self.total) and 100 * self.used <= percent * self.total

    @property
    def percent(self) -> int:
        """Rounded down; a node without anything of it is full."""
        return 100 * self.used // self.total if self.total else 100

    @property
    def percent_rounded_up(self) -> int:
        """Above the threshold whenever the usage is."""
        return -(-100 * self.used // self.total) if self.total else 100


def usage_of(snapshot: Snapshot, row: int) -> Usage:
    """As it is booked now."""
    gpus = _of(snapshot, row, names.NVIDIA_GPU)
    if gpus.total:
        return gpus
    cpu, memory = _of(snapshot, row, CPU), _of(snapshot, row, MEMORY)
    # Compared crosswise, so that nothing is rounded.
    return memory if memory.used * cpu.total > cpu.used * memory.total else cpu


def _of(snapshot: Snapshot, row: int, resource: str) -> Usage:
    column = snapshot.classes.columns.get(resource)
    if column is None:
        return Usage(resource, 0, 0)
    used = sum(
        count * amount
        for each, count in snapshot.booked_on(row).items()
        if not each.goes_with_its_node
        for held, amount in each.held
        if held == column
    )
    return Usage(resource, used, snapshot.stock.allocatable_at(row, column))
