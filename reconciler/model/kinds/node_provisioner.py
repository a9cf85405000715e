"""NodeProvisioner: how large a pool shall be."""

from typing import Annotated

import msgspec

from reconciler.model.fields import Refers, Says, Unit, Within
from reconciler.model.quantity import Duration


class NodeProvisioner(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Scales one pool by how much of its GPUs is in use."""

    suspend: Annotated[bool, Says("Set aside: nothing is planned for it until this is taken back.")] = False
    pool_name: Annotated[str, Says("The pool it scales."), Refers("GpuPool")]
    min_size: Annotated[int, Says("Fewest nodes, whatever the load."), Within(0, 100_000), Unit("nodes")]
    max_size: Annotated[int, Says("Most nodes, whatever the demand."), Within(0, 100_000), Unit("nodes")]
    min_gpu_utilization_percent: Annotated[
        int, Says("Below this share of GPUs in use, empty nodes are taken away."), Within(0, 100), Unit("%")
    ] = msgspec.field(name="minGPUUtilizationPercent")
    min_unutilized_gpu_nodes: Annotated[
        int,
        Says("Empty nodes that are kept whatever the utilization; kept, not bought."),
        Within(0, 100_000),
        Unit("nodes"),
    ] = msgspec.field(name="minUnutilizedGPUNodes", default=0)
    scale_down_delay: Annotated[Duration, Says("Time between the mark on a surplus node and its removal.")] = Duration(
        600_000
    )
    order: Annotated[
        int,
        Says("Which provisioner is asked first for a pod that several could serve; lower first."),
        Within(0, 10_000),
    ] = 100
