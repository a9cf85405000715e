"""The kinds about GPUs: GpuPool, GpuClaim and GpuNodeStatus."""

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
TEMPLATE = Shaped(r"^[A-Za-z0-9_][A-Za-z0-9_./-]*$", "a relative path")
Resources = Annotated[
    dict[str, Quantity], KeyPattern(r"^[A-Za-z0-9./-]{1,317}$", "a resource name, such as cpu or nvidia.com/gpu")
]


class Devices(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The GPUs of one node."""

    model: Annotated[str, Says("Model of the GPUs, in the word that claims use: a100, l4."), Within(1, 63), NAME]
    count: Annotated[int, Says("GPUs of one node."), Within(1, 16), Unit("GPUs")]
    memory: Annotated[Quantity, Says("Memory of one GPU.")]


class InstanceType(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A machine that a node of the pool can be."""

    name: Annotated[
        str, Says("Name of the instance type, as Karpenter and the cloud call it."), Within(1, 63), LABEL_VALUE
    ]
    capacity: Annotated[
        Resources, Says("What one node has, besides its GPUs; needed while no node of the type is alive.")
    ] = msgspec.field(default_factory=dict)
    price_per_hour: Annotated[
        dict[CapacityType, Money], Says("Dollars an hour of one node, by capacity type; quoted, never a float.")
    ] = msgspec.field(default_factory=dict)


class NodeClassRef(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Karpenter's description of the machine's image, network and disks."""

    group: Annotated[str, Says("API group of the node class."), Within(1, 253), NAME]
    kind: Annotated[str, Says("Kind of the node class."), Shaped(r"^[A-Za-z][A-Za-z0-9]{0,62}$", "a kind's name")]
    name: Annotated[str, Says("Name of the node class."), NAME]


class PoolTaint(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Keeps pods away that do not tolerate it."""

    key: Annotated[str, Says("Key of the taint."), Shaped(LABEL_KEY.pattern, LABEL_KEY.words)]
    value: Annotated[str, Says("Value of the taint."), LABEL_VALUE] = ""
    effect: Annotated[Effect, Says("What happens to pods that do not tolerate it.")]


class Requirement(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A further demand on the nodes, in Karpenter's words."""

    key: Annotated[str, Says("Label of the node."), Shaped(LABEL_KEY.pattern, LABEL_KEY.words)]
    operator: Annotated[
        Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"], Says("How the label is compared.")
    ]
    values: Annotated[list[Annotated[str, LABEL_VALUE]], Says("Values to compare with."), Within(most=100)] = (
        msgspec.field(default_factory=list)
    )
    min_values: Annotated[
        int | None, Says("How many different values Karpenter must be able to choose between."), Within(1, 50)
    ] = None


class Budget(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How many nodes Karpenter may disrupt at once."""

    nodes: Annotated[
        str, Says("A number of nodes or a percentage of them."), Shaped(r"^((100|[0-9]{1,2})%|[0-9]+)$", "10 or 10%")
    ]
    reasons: Annotated[
        list[Literal["Empty", "Underutilized", "Drifted"]], Says("For which reasons; empty means all.")
    ] = msgspec.field(default_factory=list)
    schedule: Annotated[
        str | None,
        Says("When the budget begins to count, in UTC: five fields of cron, or @daily and the like; absent, always."),
        Within(1, 200),
        Shaped(
            r"^(@(annually|yearly|monthly|weekly|daily|midnight|hourly)|[^ @]+( [^ ]+){4})$",
            "five fields of cron, such as 0 9 * * 1-5, or @daily",
        ),
    ] = None
    duration: Annotated[
        Duration | None, Says("How long it counts from then on, in whole minutes; given with a schedule.")
    ] = None


class Disruption(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Karpenter's own initiative; absent, it is quiet and only replaces drifted nodes, a tenth at a time."""

    consolidation_policy: Annotated[
        Literal["WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"],
        Says("Which nodes Karpenter takes away by itself."),
    ] = "WhenEmpty"
    consolidate_after: Annotated[
        Duration | Literal["Never"], Says("How long a node must be so; Never leaves it to the reconciler.")
    ] = "Never"
    budgets: Annotated[list[Budget], Says("How many nodes at once; empty means the safe ones."), Within(most=50)] = (
        msgspec.field(default_factory=list)
    )


class SmartPods(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Pods that ask Karpenter for capacity which it could not see otherwise."""

    namespace: Annotated[str, Says("Namespace they are made in."), NAMESPACE] = names.SMART_PODS_NAMESPACE
    image: Annotated[str, Says("Image they run."), Within(1, 512)] = "registry.k8s.io/pause:3.9"
    active_deadline_seconds: Annotated[int, Says("How long one may live."), Within(1, 86_400), Unit("s")] = 600
    max_retry_attempts: Annotated[int, Says("How often another type or zone is tried."), Within(0, 100)] = 3
    cleanup_interval: Annotated[Duration, Says("How often finished and orphaned ones are looked for.")] = Duration(
        30_000
    )
    template: Annotated[
        str, Says("Template that yields one of them, a path below templates/."), Within(1, 200), TEMPLATE
    ] = "smart_pod.yaml.j2"


class GpuPool(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a node of the pool is and how Karpenter makes one."""

    suspend: Annotated[bool, Says("Set aside: nothing is planned for it until this is taken back.")] = False
    mode: Annotated[
        Literal["Observe", "Enforce"], Says("Observe decides and explains and writes nothing; Enforce acts.")
    ] = "Observe"
    devices: Annotated[Devices, Says("The GPUs of one node.")]
    instance_types: Annotated[
        list[InstanceType],
        Says("Machines a node can be. Smart pods ask in this order; elsewhere Karpenter takes the cheapest."),
        Within(1, 60),
        MergeKey(("name",), ordered=True),
    ]
    capacity_types: Annotated[
        list[CapacityType],
        Says("How they may be bought. Smart pods ask in this order; elsewhere Karpenter prefers reserved, then spot."),
        Within(1, 3),
    ] = msgspec.field(default_factory=lambda: ["on-demand"])
    committed_nodes: Annotated[
        int, Says("Paid for whether they run or not: removing them saves nothing."), Within(0, 100_000), Unit("nodes")
    ] = 0
    node_class_ref: Annotated[NodeClassRef, Says("The node class of its nodes.")]
    labels: Annotated[
        Annotated[dict[str, Annotated[str, LABEL_VALUE]], LABEL_KEY], Says("Further labels of its nodes.")
    ] = msgspec.field(default_factory=dict)
    annotations: Annotated[
        Annotated[dict[str, Annotated[str, Within(most=1024)]], LABEL_KEY], Says("Annotations of its nodes.")
    ] = msgspec.field(default_factory=dict)
    taints: Annotated[list[PoolTaint], Says("Taints of its nodes."), Within(most=50), MergeKey(("key", "effect"))] = (
        msgspec.field(default_factory=list)
    )
    startup_taints: Annotated[
        list[PoolTaint],
        Says("Taints of new nodes that another program removes, such as Cilium; pods need not tolerate them."),
        Within(most=50),
        MergeKey(("key", "effect")),
    ] = msgspec.field(default_factory=list)
    requirements: Annotated[
        list[Requirement],
        Says(
            "Further demands on its nodes: zones, say. Exists with the key node.kubernetes.io/instance-type or "
            "karpenter.sh/capacity-type leaves instanceTypes or capacityTypes out of the NodePool."
        ),
        Within(most=90),
    ] = msgspec.field(default_factory=list)
    limits: Annotated[Resources, Says("The most the pool may ever hold: nodes, cpu, memory, nvidia.com/gpu.")] = (
        msgspec.field(default_factory=dict)
    )
    weight: Annotated[
        int | None,
        Says("Weight of the NodePool, higher first at Karpenter; absent, it follows from the order of provisioners."),
        Within(1, 100),
    ] = None
    serves_pods_without_gpus: Annotated[
        bool, Says("Whether nodes are bought and kept for pods that ask for no GPU.")
    ] = False
    expire_after: Annotated[
        Duration | Literal["Never"], Says("Age at which Karpenter replaces a node, outside all budgets.")
    ] = "Never"
    termination_grace_period: Annotated[
        Duration | None, Says("How long Karpenter waits for the pods of a node that it removes.")
    ] = None
    disruption: Annotated[Disruption, Says("What Karpenter may do of its own accord.")] = Disruption()
    device_plugin: Annotated[bool, Says("Whether a device plugin advertises the GPUs; without one the agent does.")] = (
        True
    )
    adopt: Annotated[
        bool,
        Says("Take over the NodePool of this name that someone else made; that never makes its nodes drift."),
    ] = False
    template: Annotated[
        str,
        Says("Template of its manifests, a path below templates/."),
        Within(1, 200),
        TEMPLATE,
    ] = "node_pool.yaml.j2"
    smart_pods: Annotated[SmartPods, Says("How its smart pods behave.")] = SmartPods()


# --- GpuClaim: a workload's request for GPUs.


class ClaimedDevices(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Which GPUs, and how close to one another."""

    count: Annotated[int, Says("GPUs for each pod of the claim."), Within(1, 16), Unit("GPUs")]
    policy: Annotated[
        Literal["any", "contiguous", "requireContiguous"],
        Says("contiguous prefers GPUs of one island; requireContiguous takes nothing else."),
    ] = "any"
    model: Annotated[str | None, Says("Model of the GPUs; any, when absent."), Within(1, 63), NAME] = None
    memory: Annotated[Quantity | None, Says("Least memory of each GPU.")] = None


class GpuClaim(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """GPUs for the pods whose annotation gpu.scheduling/claim names it."""

    suspend: Annotated[bool, Says("Set aside: its pods get no GPUs until this is taken back.")] = False
    devices: Annotated[ClaimedDevices, Says("Which GPUs.")]
    pool_name: Annotated[
        str | None, Says("The pool they must be of; any that fits, when absent."), Refers("GpuPool")
    ] = None
    gang_ref: Annotated[str | None, Says("Claims that share it get their GPUs together or not at all."), NAME] = None


# --- GpuNodeStatus: what the agent of a node reports of its GPUs.


class Device(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One GPU."""

    id: Annotated[int, Says("Index of the GPU on its node."), Within(0, 63)]
    uuid: Annotated[str | None, Says("What stays the same across reboots."), Within(1, 96)] = None
    model: Annotated[str | None, Says("Model, in the word that pools use."), Within(1, 63), NAME] = None
    memory: Annotated[Quantity | None, Says("Its memory.")] = None
    island: Annotated[str | None, Says("GPUs of one island are joined by fast links."), LABEL_VALUE] = None
    bandwidth_gbps: Annotated[
        int | None, Says("Bandwidth to its island's other GPUs."), Within(0, 1_000_000), Unit("GB/s")
    ] = msgspec.field(name="bandwidthGBps", default=None)
    health: Annotated[Literal["Healthy", "Unhealthy", "Unknown"], Says("Whether it can be lent.")] = "Unknown"


class GpuNodeReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What the agent writes: the object's status."""

    devices: Annotated[list[Device], Says("The node's GPUs."), Within(most=64), MergeKey(("id",))] = msgspec.field(
        default_factory=list
    )


class GpuNodeStatus(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The GPUs of the node of the same name, as its agent sees them; the report is its status."""

    suspend: Annotated[bool, Says("Set aside: nothing new is placed on its GPUs until this is taken back.")] = False
