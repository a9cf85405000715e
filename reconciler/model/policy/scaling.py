"""The kinds that scale and drain pools: NodeProvisioner, DrainPolicy and PressurePolicy."""

from collections.abc import Callable
from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import KeyPattern, Refers, Says, Unit, Within
from reconciler.model.policy.gpu import Resources
from reconciler.model.policy.guards import Nodes, PoolNames, SizeSchedule, Window
from reconciler.model.quantity import Duration, Percent, Quantity

_Nodes = Annotated[int | None, Within(0, 2**31), Unit("nodes")]
_Gpus = Annotated[int | None, Within(0, 2**31), Unit("GPUs")]


LEAST_DELAY_MS = 60_000  # no node is removed sooner than this after it was tainted


class NodeProvisionerReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Current state of the pool, and its target size."""

    current_size: Annotated[_Nodes, Says("Nodes of the pool that are not being deleted.")] = None
    target_size: Annotated[_Nodes, Says("Target number of nodes.")] = None
    tainted: Annotated[_Nodes, Says("Tainted surplus nodes, removed if still empty when the delay ends.")] = None
    busy: Annotated[_Nodes, Says("Nodes with a workload pod.")] = None
    gpus_used: Annotated[_Gpus, Says("GPUs that are requested by pods or allocated to claims.")] = None
    gpus_total: Annotated[_Gpus, Says("GPUs of all nodes.")] = None
    reason: Annotated[str | None, Says("Human-readable reason of the target size."), Within(most=1024)] = None


class NodeProvisioner(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Scales one pool by the utilization of its GPUs."""

    suspend: Annotated[bool, Says("Suspends scaling of the pool.")] = False
    pool_name: Annotated[str, Says("Name of the scaled pool."), Refers("GpuPool")]
    min_size: Annotated[Nodes, Says("Minimum number of nodes.")]
    max_size: Annotated[Nodes, Says("Maximum number of nodes; also Karpenter's limit if the pool has no limits.nodes.")]
    min_gpu_utilization_percent: Annotated[
        int, Says("Below this share of GPUs in use, empty nodes are removed."), Within(0, 100), Unit("%")
    ] = msgspec.field(name="minGPUUtilizationPercent")
    min_unutilized_gpu_nodes: Annotated[
        Nodes, Says("Empty nodes kept at any utilization; none are launched for this.")
    ] = msgspec.field(name="minUnutilizedGPUNodes", default=0)
    warm_nodes: Annotated[
        Nodes, Says("Free nodes launched in advance by low-priority smart pods, and kept at any utilization.")
    ] = 0
    schedules: Annotated[
        list[SizeSchedule],
        Says("Larger sizes by time of day. The largest of all active schedules and of the sizes above applies."),
        Within(most=50),
    ] = msgspec.field(default_factory=list)
    scale_down_delay: Annotated[
        Duration, Says("Time between the taint on a surplus node and its removal; less than 60s counts as 60s.")
    ] = Duration(600_000)
    windows: Annotated[
        list[Window],
        Says("When empty nodes may be tainted; empty means always. A tainted node may be removed after the window."),
        Within(most=50),
    ] = msgspec.field(default_factory=list)
    order: Annotated[
        int, Says("Order of provisioners for a pod that several could serve; lower first."), Within(0, 10_000)
    ] = 100

    @property
    def kept_free_nodes(self) -> int:
        """Free nodes kept at any utilization."""
        return max(self.min_unutilized_gpu_nodes, self.warm_nodes)


# --- The size of a pool by its utilization, and the bounds of the size. Every planner uses these functions: for the
# target of scaling, missing nodes, the nodes that drains keep, and the forecast of purchases. A further field that
# raises the size is a further RaisingRule. A field that changes what the utilization asks for is a part of
# largest_full_size.


def largest_full_size(provisioner: NodeProvisioner, gpus_used: int, gpus_per_node: int) -> int:
    """The largest number of equal nodes that is full enough for minGPUUtilizationPercent."""
    return 100 * gpus_used // (provisioner.min_gpu_utilization_percent * gpus_per_node)


RaisingField = Literal["minSize"]
SizeField = RaisingField | Literal["maxSize"]


class RaisingRule(msgspec.Struct, frozen=True):
    """A field that raises the size of a pool.

    The rule is applied to sizes that the rule has raised already, such as the present size of a pool. So `raised` must
    not raise its own result: otherwise the pool would grow without end.
    """

    field: RaisingField
    value: Callable[[NodeProvisioner], int]
    raised: Callable[[int, int], int]  # number of nodes, value of the field -> number of nodes


RAISING_RULES = (RaisingRule("minSize", lambda provisioner: provisioner.min_size, max),)


class SizeLack(msgspec.Struct, frozen=True, gc=False):
    """Nodes that a pool lacks because of a field."""

    nodes: int = 0
    field: RaisingField = "minSize"
    value: int = 0  # of the field


class BoundedSize(msgspec.Struct, frozen=True, gc=False):
    """A size within the bounds of a provisioner."""

    nodes: int
    field: SizeField | None  # last field that changed the size
    lack: SizeLack  # nodes that the bounds add


def bounded_size(provisioner: NodeProvisioner, nodes: int) -> BoundedSize:
    """The size within the bounds of the provisioner."""
    size, decisive = nodes, None
    for rule in RAISING_RULES:
        raised = rule.raised(size, rule.value(provisioner))
        if raised > size:
            size, decisive = raised, rule
    limited = min(size, provisioner.max_size)
    field: SizeField | None = "maxSize" if limited < size else decisive.field if decisive is not None else None
    rule = decisive or RAISING_RULES[0]
    return BoundedSize(limited, field, SizeLack(max(0, limited - nodes), rule.field, rule.value(provisioner)))


# --- DrainPolicy: which running nodes may be drained, and how many at once.


class DrainPolicy(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Drains and removes underutilized nodes; a pool that no DrainPolicy names is never drained."""

    suspend: Annotated[bool, Says("Suspends drains under this policy.")] = False
    pool_names: Annotated[PoolNames, Says('Names of the pools; "*" for all.')]
    utilization_threshold_percent: Annotated[
        int, Says("A node is a candidate if at most this share of its GPUs is requested."), Within(0, 100), Unit("%")
    ] = 50
    max_drain_parallelism: Annotated[
        int,
        Says("Maximum number of nodes with pods that are drained at the same time."),
        Within(1, 10_000),
        Unit("nodes"),
    ] = 4
    max_scale_down_parallelism: Annotated[
        int,
        Says(
            "Maximum number of nodes, with or without pods, that leave at the same time. Nodes removed by a "
            "NodeProvisioner count, but do not wait for a slot."
        ),
        Within(1, 10_000),
        Unit("nodes"),
    ] = 10
    scale_down_unneeded_time: Annotated[Duration, Says("How long a node must be a candidate.")] = Duration(600_000)
    scale_down_unready_time: Annotated[Duration, Says("How long an unready node must be a candidate.")] = Duration(
        1_200_000
    )
    max_graceful_termination_seconds: Annotated[
        int, Says("Maximum grace period of a pod; a longer one is reduced to this."), Within(0, 86_400), Unit("s")
    ] = 600
    recent_eviction_seconds: Annotated[
        int, Says("How long an evicted pod without a replacement counts as demand."), Within(0, 3_600), Unit("s")
    ] = 300
    system_pod_timeout: Annotated[
        Duration, Says("How long a kube-system pod without a PodDisruptionBudget blocks its node after creation.")
    ] = Duration(3_600_000)
    simulation_time_bound: Annotated[Duration, Says("Maximum time per cycle for finding candidates.")] = Duration(
        10_000
    )
    cluster_min: Annotated[
        Resources,
        Says(
            "Minimum total of cpu, memory or nvidia.com/gpu in the cluster, for any removal; the largest "
            "amount of any DrainPolicy applies."
        ),
    ] = msgspec.field(default_factory=dict)
    windows: Annotated[
        list[Window],
        Says("When drains may start; empty means always. NodeProvisioners have separate windows for empty nodes."),
        Within(most=50),
    ] = msgspec.field(default_factory=list)


# --- PressurePolicy: the watermark above which elastic pods move away.

_RESOURCE = KeyPattern(r"^[A-Za-z0-9./-]{1,317}$", "a resource name, such as cpu or memory")


class Pressure(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The bounds of one resource on each node."""

    system: Annotated[Quantity, Says("Reserved for processes that the scheduler does not place.")]
    watermark: Annotated[Percent, Says("Share of the rest, after system, above which pods are moved away.")]


class PressurePolicy(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Limits of reserved resources of each node. Above the watermark, elastic pods leave the node."""

    suspend: Annotated[bool, Says("Suspends the policy.")] = False
    pool_names: Annotated[PoolNames, Says('Names of the pools; "*" for all.')]
    resources: Annotated[Annotated[dict[str, Pressure], _RESOURCE], Says("Bounds by resource."), Within(1, 20)]
    compute_unit: Annotated[
        Annotated[dict[str, Quantity], _RESOURCE], Says("An agent requests multiples of these."), Within(1, 20)
    ]
    mem_slot_size: Annotated[Quantity, Says("Memory is allocated in slots of this size.")] = Quantity(
        1024**3 * 1000, binary=True
    )
    migration: Annotated[
        Literal["Auto", "Evict", "None"], Says("Live migration where it exists, eviction, or neither.")
    ] = "Auto"
