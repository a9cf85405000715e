"""How a pool is used."""

import msgspec


class Use(msgspec.Struct, frozen=True, gc=False):
    """A pool as it is used: its nodes that are not being deleted, tainted ones included."""

    nodes: int
    busy_nodes: int  # nodes with a pod that counts
    gpus_used: int
    gpus_total: int
    gpus_per_node: int
    # Where its nodes differ in GPUs: those of each empty node, in the order in which they go. None: all are alike.
    spare: tuple[int, ...] | None = None
    drained_nodes: int = 0  # busy ones that are being emptied: places were found for what runs there
    free_nodes: int | None = None  # empty, or held by a smart pod only; None: all that are not busy
    closed_nodes: int = 0  # empty ones that others have cordoned: they stay, take no pods, and are no spare nodes

    @property
    def needed_nodes(self) -> int:
        """Nodes in use by pods or claims. What is drained goes to such nodes: none is needed in its stead."""
        in_use = self.busy_nodes if self.free_nodes is None else self.nodes - self.free_nodes
        return max(0, in_use - self.drained_nodes)

    def nodes_with_spare(self, spare: int) -> int:
        """How many nodes the pool has where so many of them are free for pods."""
        return self.needed_nodes + (spare + self.closed_nodes if spare else 0)
