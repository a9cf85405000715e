"""The kinds that size and empty pools: NodeProvisioner, DrainPolicy and PressurePolicy."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import KeyPattern, Refers, Says, Unit, Within
from reconciler.model.policy.gpu import Resources
from reconciler.model.policy.guards import SizeSchedule, Window
from reconciler.model.quantity import Duration, Percent, Quantity

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


# --- DrainPolicy: which running nodes may be emptied, and how many at once.


class DrainPolicy(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Lets nodes that are little used be emptied and removed; a pool that no DrainPolicy names is left alone."""

    suspend: Annotated[bool, Says("Set aside: nothing is planned for it until this is taken back.")] = False
    pool_names: Annotated[
        list[Annotated[str, Refers("GpuPool", all_as_star=True)]],
        Says('The pools it is for; "*" for all.'),
        Within(1, 1000),
    ]
    utilization_threshold_percent: Annotated[
        int, Says("A node is a candidate at this share of its GPUs requested, or below."), Within(0, 100), Unit("%")
    ] = 50
    max_drain_parallelism: Annotated[
        int, Says("Most nodes with pods on them that are emptied at once."), Within(1, 10_000), Unit("nodes")
    ] = 4
    max_scale_down_parallelism: Annotated[
        int,
        Says(
            "Most nodes that leave at once, with pods or without. Nodes that a NodeProvisioner removes count, and "
            "wait for no slot."
        ),
        Within(1, 10_000),
        Unit("nodes"),
    ] = 10
    scale_down_unneeded_time: Annotated[Duration, Says("How long a node must be a candidate.")] = Duration(600_000)
    scale_down_unready_time: Annotated[Duration, Says("How long an unready node must be a candidate.")] = Duration(
        1_200_000
    )
    max_graceful_termination_seconds: Annotated[
        int, Says("Longest grace a pod is given; a longer wish is cut."), Within(0, 86_400), Unit("s")
    ] = 600
    recent_eviction_seconds: Annotated[
        int, Says("How long an evicted pod without a successor is counted as demand."), Within(0, 3_600), Unit("s")
    ] = 300
    system_pod_timeout: Annotated[
        Duration,
        Says("How long after its creation a kube-system pod without a PodDisruptionBudget keeps its node."),
    ] = Duration(3_600_000)
    simulation_time_bound: Annotated[Duration, Says("How much of a cycle may go into finding candidates.")] = Duration(
        10_000
    )
    cluster_min: Annotated[
        Resources,
        Says(
            "What the cluster keeps in all of cpu, memory or nvidia.com/gpu, whoever removes a node; the largest "
            "amount of any DrainPolicy holds."
        ),
    ] = msgspec.field(default_factory=dict)
    windows: Annotated[
        list[Window],
        Says("When drains may start; without any, always. A NodeProvisioner has windows of its own for empty nodes."),
        Within(most=50),
    ] = msgspec.field(default_factory=list)


# --- PressurePolicy: how full a node may become before elastic pods move away.

_RESOURCE = KeyPattern(r"^[A-Za-z0-9./-]{1,317}$", "a resource name, such as cpu or memory")


class Pressure(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The bounds of one resource on each node."""

    system: Annotated[Quantity, Says("Kept for what the scheduler does not place.")]
    watermark: Annotated[Percent, Says("Share of what is left beside system from which pods are moved away.")]


class PressurePolicy(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Watches the reserved resources of each node of its pools, and moves elastic pods before they run out."""

    suspend: Annotated[bool, Says("Set aside: nothing is planned for it until this is taken back.")] = False
    pool_names: Annotated[
        list[Annotated[str, Refers("GpuPool", all_as_star=True)]],
        Says('The pools it is for; "*" for all.'),
        Within(1, 1000),
    ]
    resources: Annotated[Annotated[dict[str, Pressure], _RESOURCE], Says("Bounds by resource."), Within(1, 20)]
    compute_unit: Annotated[
        Annotated[dict[str, Quantity], _RESOURCE], Says("What an agent must ask in multiples of."), Within(1, 20)
    ]
    mem_slot_size: Annotated[Quantity, Says("Memory is lent in slots of this size.")] = Quantity(
        1024**3 * 1000, binary=True
    )
    migration: Annotated[
        Literal["Auto", "Evict", "None"], Says("Live migration where it exists, eviction, or neither.")
    ] = "Auto"
