"""NodeProvisioner: how large a pool shall be."""

from typing import Annotated

import msgspec

from reconciler.model.fields import Refers, Says, Unit, Within
from reconciler.model.policy.window import SizeSchedule, Window
from reconciler.model.quantity import Duration

_Nodes = Annotated[int | None, Within(0, 2**31), Unit("nodes")]
_Gpus = Annotated[int | None, Within(0, 2**31), Unit("GPUs")]


LEAST_DELAY_MS = 60_000  # no node goes sooner than that after it was marked


class NodeProvisionerReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How the pool stands, and the size that follows from it."""

    current_size: Annotated[_Nodes, Says("Nodes of the pool that are not being deleted.")] = None
    target_size: Annotated[_Nodes, Says("How many it shall have.")] = None
    tainted: Annotated[_Nodes, Says("Nodes that are marked, and leave if they are still empty then.")] = None
    busy: Annotated[_Nodes, Says("Nodes with a pod that counts.")] = None
    gpus_used: Annotated[_Gpus, Says("GPUs that pods ask for, or that are lent to claims.")] = None
    gpus_total: Annotated[_Gpus, Says("GPUs of all its nodes.")] = None
    reason: Annotated[str | None, Says("Why it shall have so many, in a sentence."), Within(most=1024)] = None


class NodeProvisioner(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Scales one pool by how much of its GPUs is in use."""

    suspend: Annotated[bool, Says("Set aside: nothing is planned for it until this is taken back.")] = False
    pool_name: Annotated[str, Says("The pool it scales."), Refers("GpuPool")]
    min_size: Annotated[int, Says("Fewest nodes, whatever the load."), Within(0, 100_000), Unit("nodes")]
    max_size: Annotated[
        int,
        Says("Most nodes, whatever the demand; Karpenter's limit too, where the pool has no limits.nodes of its own."),
        Within(0, 100_000),
        Unit("nodes"),
    ]
    min_gpu_utilization_percent: Annotated[
        int, Says("Below this share of GPUs in use, empty nodes are taken away."), Within(0, 100), Unit("%")
    ] = msgspec.field(name="minGPUUtilizationPercent")
    min_unutilized_gpu_nodes: Annotated[
        int,
        Says("Empty nodes that are kept whatever the utilization; kept, not bought."),
        Within(0, 100_000),
        Unit("nodes"),
    ] = msgspec.field(name="minUnutilizedGPUNodes", default=0)
    warm_nodes: Annotated[
        int,
        Says("Free nodes that are bought ahead, by smart pods of low priority, and kept whatever the utilization."),
        Within(0, 100_000),
        Unit("nodes"),
    ] = 0
    schedules: Annotated[
        list[SizeSchedule],
        Says("Larger sizes by the time of day. Of all that hold at a time, and the sizes above, the largest counts."),
        Within(most=50),
    ] = msgspec.field(default_factory=list)
    scale_down_delay: Annotated[
        Duration, Says("Time between the mark on a surplus node and its removal; less than 60s counts as 60s.")
    ] = Duration(600_000)
    windows: Annotated[
        list[Window],
        Says("When empty nodes may be marked; without any, always. A marked node goes at its time, also after that."),
        Within(most=50),
    ] = msgspec.field(default_factory=list)
    order: Annotated[
        int,
        Says("Which provisioner is asked first for a pod that several could serve; lower first."),
        Within(0, 10_000),
    ] = 100

    @property
    def spare_nodes(self) -> int:
        """Free nodes that are kept whatever the utilization."""
        return max(self.min_unutilized_gpu_nodes, self.warm_nodes)
