"""The kinds for GPUs: GpuPool, GpuClaim and GpuNodeStatus."""

from typing import Annotated, Literal

import msgspec

from reconciler.model import names
from reconciler.model.fields import (
    LABEL_KEY,
    LABEL_VALUE,
    NAME,
    NAMESPACE,
    KeyPattern,
    MergeKey,
    Refers,
    Says,
    Shaped,
    Unit,
    Within,
)
from reconciler.model.quantity import Duration, Money, Quantity

CapacityType = Literal["reserved", "on-demand", "spot"]
Effect = Literal["NoSchedule", "PreferNoSchedule", "NoExecute"]
Allocation = Literal["plugin", "agent"]
TEMPLATE = Shaped(r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$", "a relative path")
Resources = Annotated[
    dict[str, Quantity], KeyPattern(r"^[A-Za-z0-9./-]{1,317}$", "a resource name, such as cpu or nvidia.com/gpu")
]


class Devices(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The GPUs of one node."""

    model: Annotated[str, Says("Model of the GPUs, as used in claims: a100, l4."), Within(1, 63), NAME]
    count: Annotated[int, Says("Number of GPUs per node."), Within(1, 16), Unit("GPUs")]
    memory: Annotated[Quantity, Says("Memory of one GPU.")]


class InstanceType(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """An instance type that the pool may use."""

    name: Annotated[str, Says("Name of the instance type in Karpenter and the cloud."), Within(1, 63), LABEL_VALUE]
    capacity: Annotated[Resources, Says("Resources per node besides GPUs; used while no node of the type exists.")] = (
        msgspec.field(default_factory=dict)
    )
    price_per_hour: Annotated[
        dict[CapacityType, Money], Says("Dollars per hour and node, by capacity type; a quoted string.")
    ] = msgspec.field(default_factory=dict)


class NodeClassRef(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Karpenter's configuration of image, network and disks of the machines."""

    group: Annotated[str, Says("API group of the node class."), Within(1, 253), NAME]
    kind: Annotated[str, Says("Kind of the node class."), Shaped(r"^[A-Za-z][A-Za-z0-9]{0,62}$", "the name of a kind")]
    name: Annotated[str, Says("Name of the node class."), NAME]


class PoolTaint(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A taint: repels pods that do not tolerate it."""

    key: Annotated[str, Says("Key of the taint."), Shaped(LABEL_KEY.pattern, LABEL_KEY.words)]
    value: Annotated[str, Says("Value of the taint."), LABEL_VALUE] = ""
    effect: Annotated[Effect, Says("Effect on pods that do not tolerate the taint.")]


class Requirement(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A further requirement on the nodes, in Karpenter's syntax."""

    key: Annotated[str, Says("Label key of the node."), Shaped(LABEL_KEY.pattern, LABEL_KEY.words)]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"], Says("Operator of the comparison.")
    ]
    values: Annotated[list[Annotated[str, LABEL_VALUE]], Says("Values to compare with."), Within(most=100)] = (
        msgspec.field(default_factory=list)
    )
    min_values: Annotated[
        int | None, Says("Minimum number of different values that Karpenter can choose from."), Within(1, 50)
    ] = None


class Budget(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How many nodes Karpenter may disrupt at once."""

    nodes: Annotated[
        str, Says("Number or percentage of nodes."), Shaped(r"^((100|[0-9]{1,2})%|[0-9]+)$", '"10" in quotes, or 10%')
    ]
    reasons: Annotated[
        list[Literal["Empty", "Underutilized", "Drifted"]], Says("Limited disruption reasons; empty means all.")
    ] = msgspec.field(default_factory=list)
    schedule: Annotated[
        str | None,
        Says("Start of the budget in UTC: five cron fields, or a macro such as @daily; absent means always."),
        Within(1, 200),
        Shaped(
            r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[^ @]+( [^ ]+){4})$",
            'five cron fields, such as 0 9 * * 1-5, or "@daily" in quotes',
        ),
    ] = None
    duration: Annotated[Duration | None, Says("Duration of the budget in whole minutes; required with a schedule.")] = (
        None
    )


class Disruption(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Karpenter's own disruption; if absent, Karpenter only replaces drifted nodes, a tenth of the nodes at a time."""

    consolidation_policy: Annotated[
        Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"],
        Says("Nodes that Karpenter may consolidate."),
    ] = "WhenEmpty"
    consolidate_after: Annotated[
        Duration | Literal["Never"], Says("How long a node must qualify; Never leaves removal to reconciler.")
    ] = "Never"
    budgets: Annotated[list[Budget], Says("Limits on disrupted nodes; empty means safe defaults."), Within(most=50)] = (
        msgspec.field(default_factory=list)
    )


class SmartPods(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Placeholder pods that make Karpenter launch capacity for demand that Karpenter does not see."""

    namespace: Annotated[str, Says("Namespace of the smart pods."), NAMESPACE] = names.SMART_PODS_NAMESPACE
    image: Annotated[str, Says("Container image."), Within(1, 512)] = "registry.k8s.io/pause:3.9"
    active_deadline_seconds: Annotated[int, Says("Maximum lifetime."), Within(1, 86_400), Unit("s")] = 600
    max_retry_attempts: Annotated[int, Says("Maximum number of other launch options to try."), Within(0, 100)] = 3
    cleanup_interval: Annotated[Duration, Says("Time between cleanups of finished and orphaned smart pods.")] = (
        Duration(30_000)
    )
    template: Annotated[str, Says("Template of a smart pod, a path below templates/."), Within(1, 200), TEMPLATE] = (
        "smart_pod.yaml.j2"
    )


class GpuPool(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The nodes of a pool and how Karpenter launches them."""

    suspend: Annotated[bool, Says("Suspends planning for the pool.")] = False
    mode: Annotated[Literal["Observe", "Enforce"], Says("Observe plans and reports without writing; Enforce acts.")] = (
        "Observe"
    )
    devices: Annotated[Devices, Says("The GPUs of one node.")]
    instance_types: Annotated[
        list[InstanceType],
        Says("Instance types of the pool. Smart pods try them in order; otherwise Karpenter takes the cheapest."),
        Within(1, 60),
        MergeKey(("name",), ordered=True),
    ]
    capacity_types: Annotated[
        list[CapacityType],
        Says("Allowed capacity types. Smart pods try them in order; otherwise Karpenter prefers reserved, then spot."),
        Within(1, 3),
    ] = msgspec.field(default_factory=lambda: ["on-demand"])
    committed_nodes: Annotated[
        int, Says("Nodes paid for whether used or not: removing them saves nothing."), Within(0, 100_000), Unit("nodes")
    ] = 0
    node_class_ref: Annotated[NodeClassRef, Says("Node class of the nodes.")]
    labels: Annotated[
        Annotated[dict[str, Annotated[str, LABEL_VALUE]], LABEL_KEY], Says("Further labels of the nodes.")
    ] = msgspec.field(default_factory=dict)
    annotations: Annotated[
        Annotated[dict[str, Annotated[str, Within(most=1024)]], LABEL_KEY], Says("Annotations of the nodes.")
    ] = msgspec.field(default_factory=dict)
    taints: Annotated[list[PoolTaint], Says("Taints of the nodes."), Within(most=50), MergeKey(("key", "effect"))] = (
        msgspec.field(default_factory=list)
    )
    startup_taints: Annotated[
        list[PoolTaint],
        Says("Taints of new nodes that another program, such as Cilium, removes; pods need not tolerate them."),
        Within(most=50),
        MergeKey(("key", "effect")),
    ] = msgspec.field(default_factory=list)
    requirements: Annotated[
        list[Requirement],
        Says(
            "Further requirements on the nodes, such as zones. Exists with the key node.kubernetes.io/instance-type or "
            "karpenter.sh/capacity-type omits instanceTypes or capacityTypes from the NodePool."
        ),
        Within(most=90),
    ] = msgspec.field(default_factory=list)
    limits: Annotated[Resources, Says("Maximum size of the pool: nodes, cpu, memory, nvidia.com/gpu.")] = msgspec.field(
        default_factory=dict
    )
    weight: Annotated[
        int | None,
        Says(
            "Weight of the NodePool; Karpenter tries the highest weight first. Absent: derived from the order of "
            "provisioners."
        ),
        Within(1, 100),
    ] = None
    serves_pods_without_gpus: Annotated[
        bool, Says("Whether nodes are launched and kept for pods that request no GPU.")
    ] = False
    expire_after: Annotated[
        Duration | Literal["Never"], Says("Age at which Karpenter replaces a node, outside all budgets.")
    ] = "Never"
    termination_grace_period: Annotated[
        Duration | None, Says("How long Karpenter waits for the pods of a node it removes.")
    ] = None
    disruption: Annotated[Disruption, Says("What Karpenter may disrupt on its own.")] = Disruption()
    allocation: Annotated[
        Allocation,
        Says(
            "What gives containers the GPUs of a GpuClaim. plugin: the kubelet with a device plugin, which chooses the "
            "GPUs itself. agent: reconciler's node agent, which gives exactly the chosen GPUs."
        ),
    ] = "plugin"
    adopt: Annotated[
        bool,
        Says("Takes over an existing NodePool of this name, without drift of its nodes."),
    ] = False
    template: Annotated[
        str,
        Says("Template of the manifests, a path below templates/."),
        Within(1, 200),
        TEMPLATE,
    ] = "node_pool.yaml.j2"
    smart_pods: Annotated[SmartPods, Says("Smart pods of the pool.")] = SmartPods()

    @property
    def is_enforced(self) -> bool:
        """Whether plans for the pool are carried out."""
        return self.mode == "Enforce" and not self.suspend


# --- GpuClaim: a workload's request for GPUs.


class ClaimedDevices(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The requested GPUs, and their topology."""

    count: Annotated[int, Says("Number of GPUs per pod."), Within(1, 16), Unit("GPUs")]
    policy: Annotated[
        Literal["any", "contiguous", "requireContiguous"],
        Says(
            "contiguous prefers GPUs of one island; requireContiguous requires them. Best effort on pools with "
            "allocation: plugin, where the kubelet chooses the GPUs."
        ),
    ] = "any"
    model: Annotated[str | None, Says("Model of the GPUs; absent means any."), Within(1, 63), NAME] = None
    memory: Annotated[Quantity | None, Says("Minimum memory of each GPU.")] = None


class GpuClaim(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """GPUs for pods that name the claim in the annotation gpu.scheduling/claim."""

    suspend: Annotated[bool, Says("Suspends the allocation of GPUs to its pods.")] = False
    devices: Annotated[ClaimedDevices, Says("The requested GPUs.")]
    pool_name: Annotated[str | None, Says("Required pool; absent means any that fits."), Refers("GpuPool")] = None
    gang_ref: Annotated[
        str | None,
        Says(
            "Name of a gang. Pods whose claims have the same gangRef in one namespace are drained together or not "
            "at all, and their capacity gates are removed together."
        ),
        NAME,
    ] = None


_Pods = Annotated[int | None, Within(most=2**31)]
_Gbps = Annotated[int | None, Within(most=2**31), Unit("GB/s")]


class GpuScore(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The quality of the GPUs of a pod."""

    one_island: Annotated[bool | None, Says("Whether fast links connect all of the GPUs.")] = None
    sum_gbps: Annotated[_Gbps, Says("Bandwidth of all pairs of the GPUs.")] = msgspec.field(
        name="sumGBps", default=None
    )
    best_gbps: Annotated[_Gbps, Says("The largest bandwidthGBps of the claim on such a node without other pods.")] = (
        msgspec.field(name="bestGBps", default=None)
    )


class PodGpus(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The GPUs of one pod, or why it waits for them."""

    pod_uid: Annotated[str, Says("Uid of the pod."), Within(1, 128)] = msgspec.field(name="podUID")
    pod: Annotated[str | None, Says("Name of the pod."), Within(1, 253)] = None
    phase: Annotated[
        Literal["Waiting", "Bound", "Ended"] | None,
        Says("Waiting: without a node. Bound: on a node, with its GPUs. Ended: has succeeded or failed."),
    ] = None
    node: Annotated[str | None, Says("Node of the GPUs."), Within(1, 253)] = None
    devices: Annotated[
        list[Annotated[int, Within(0, 63)]],
        Says("Ids of the GPUs on their node; with allocation: plugin, the kubelet may choose others."),
        Within(most=16),
    ] = msgspec.field(default_factory=list)
    uuids: Annotated[
        list[Annotated[str, Within(1, 96)]], Says("UUIDs of the GPUs, in the order of devices."), Within(most=16)
    ] = msgspec.field(default_factory=list)
    bandwidth_gbps: Annotated[
        _Gbps, Says("The smallest bandwidth between two of the GPUs; absent if unknown, and for one GPU.")
    ] = msgspec.field(name="bandwidthGBps", default=None)
    score: Annotated[GpuScore | None, Says("The quality of the GPUs.")] = None
    reason: Annotated[str | None, Says("Why the pod waits, as one word."), Within(1, 128)] = None
    message: Annotated[str | None, Says("Why the pod waits."), Within(most=1024)] = None
    change: Annotated[
        str | None, Says("The cheapest change of the claim that gives a new pod its GPUs."), Within(most=1024)
    ] = None


class GpuClaimReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The pods of the claim and their GPUs."""

    pods: Annotated[_Pods, Says("Pods that name the claim.")] = None
    waiting: Annotated[_Pods, Says("Pods without a node.")] = None
    bound: Annotated[_Pods, Says("Pods on a node.")] = None
    summary: Annotated[str | None, Says("Bound pods of those that need GPUs: 1 of 3."), Within(most=64)] = None
    best_effort_pools: Annotated[
        list[Annotated[str, Within(1, 253)]],
        Says("Pools with allocation: plugin that serve the claim, and where one island is best effort."),
        Within(most=1_000),
    ] = msgspec.field(default_factory=list)
    allocations: Annotated[
        list[PodGpus], Says("Pods by uid, waiting ones first; at most 100."), Within(most=100), MergeKey(("podUID",))
    ] = msgspec.field(default_factory=list)


# --- GpuNodeStatus: the agent's report of the GPUs of a node.


class Device(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One GPU."""

    id: Annotated[int, Says("Index of the GPU on its node."), Within(0, 63)]
    uuid: Annotated[str | None, Says("Identifier that is stable across reboots."), Within(1, 96)] = None
    model: Annotated[str | None, Says("Model, as used in pools."), Within(1, 63), NAME] = None
    memory: Annotated[Quantity | None, Says("Memory of the GPU.")] = None
    island: Annotated[str | None, Says("GPUs of one island are connected by fast links."), LABEL_VALUE] = None
    bandwidth_gbps: Annotated[
        int | None, Says("Bandwidth to the other GPUs of the island."), Within(0, 1_000_000), Unit("GB/s")
    ] = msgspec.field(name="bandwidthGBps", default=None)
    health: Annotated[Literal["Healthy", "Unhealthy", "Unknown"], Says("Whether the GPU can be allocated.")] = "Unknown"


class GpuNodeReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The status of a GpuNodeStatus, written by the agent."""

    devices: Annotated[list[Device], Says("GPUs of the node."), Within(most=64), MergeKey(("id",))] = msgspec.field(
        default_factory=list
    )


class GpuNodeStatus(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The GPUs of the node of the same name, as its agent reports them in the status."""

    suspend: Annotated[bool, Says("Suspends new allocations of the node's GPUs.")] = False
