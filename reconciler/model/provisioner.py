"""What a NodeProvisioner wishes for, and how its pool is used."""

import msgspec


class Bounds(msgspec.Struct, frozen=True, gc=False):
    """How small, how large and how full a pool shall be; sizes are nodes."""

    min_size: int
    max_size: int
    min_gpu_utilization_percent: int
    min_unutilized_gpu_nodes: int = 0  # empty nodes kept whatever the utilization


class Use(msgspec.Struct, frozen=True, gc=False):
    """A pool as it is used: its nodes that are not being deleted, tainted ones included."""

    nodes: int
    busy_nodes: int  # nodes with a pod that counts
    gpus_used: int
    gpus_total: int
    gpus_per_node: int
