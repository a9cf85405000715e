"""What there is when a scenario begins, and what can be bought."""

from typing import Annotated

import msgspec

from reconciler.model.fields import LABEL_KEY, LABEL_VALUE, NAME, MergeKey, Says, Unit, Within
from reconciler.model.policy.gpu_pool import CapacityType, PoolTaint, Resources
from reconciler.model.quantity import Duration, Money

Labels = Annotated[dict[str, Annotated[str, LABEL_VALUE]], LABEL_KEY]


class NodeSet(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Some nodes that are alike."""

    pool: Annotated[str, Says("The GpuPool of the first policies that they are of."), Within(1, 253), NAME] = ""
    name: Annotated[str, Says("How their names begin; absent, like the pool."), Within(1, 200), NAME] = ""
    count: Annotated[int, Says("How many there are."), Within(1, 20_000), Unit("nodes")]
    instance_type: Annotated[
        str, Says("Their instance type; absent, the pool's first."), Within(1, 63), LABEL_VALUE
    ] = ""
    capacity_type: Annotated[CapacityType | None, Says("How they were bought; absent, as the pool likes best.")] = None
    zone: Annotated[str, Says("Their zone; absent, one zone after another."), Within(1, 63), LABEL_VALUE] = ""
    capacity: Annotated[Resources, Says("What each has; absent, what the pool says of its instance type.")] = (
        msgspec.field(default_factory=dict)
    )
    labels: Annotated[Labels, Says("Further labels.")] = msgspec.field(default_factory=dict)
    taints: Annotated[
        list[PoolTaint], Says("Taints of nodes that are of no pool."), Within(most=50), MergeKey(("key", "effect"))
    ] = msgspec.field(default_factory=list)


class InitialCluster(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What there is at first: a dump of a real cluster, nodes written out, or both."""

    dump: Annotated[
        str,
        Says("A dump, or what kubectl printed; its load goes on. A path from the folder of the scenario."),
        Within(1, 1024),
    ] = ""
    openb_nodes: Annotated[
        str, Says("A node list of the openb trace. A path from the folder of the scenario."), Within(1, 1024)
    ] = ""
    nodes: Annotated[list[NodeSet], Says("NodeSet, some at a time."), Within(most=1_000)] = msgspec.field(
        default_factory=list
    )
    objects: Annotated[
        list[Annotated[str, Within(1, 100_000)]],
        Says("What somebody applied before, the YAML of one object each: workloads, budgets, claims, pods."),
        Within(most=1_000),
    ] = msgspec.field(default_factory=list)


class ScenarioMachine(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A machine that can be bought."""

    name: Annotated[str, Says("Its instance type."), Within(1, 63), LABEL_VALUE]
    capacity: Annotated[Resources, Says("What it has, its GPUs included.")]
    price_per_hour: Annotated[dict[CapacityType, Money], Says("Dollars an hour, by capacity type.")]
    zones: Annotated[
        list[Annotated[str, Within(1, 63), LABEL_VALUE]], Says("Where; absent, in every zone."), Within(most=20)
    ] = msgspec.field(default_factory=list)
    labels: Annotated[Labels, Says("Further labels of such a node.")] = msgspec.field(default_factory=dict)


class ScenarioMarket(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What Karpenter can buy: the instance types that policies declare, and those that are added here."""

    zones: Annotated[
        list[Annotated[str, Within(1, 63), LABEL_VALUE]], Says("Where machines can be bought."), Within(1, 20)
    ] = msgspec.field(default_factory=lambda: ["zone-a", "zone-b", "zone-c"])
    machines: Annotated[
        list[ScenarioMachine],
        Says("Further machines, or others in place of those declared."),
        Within(most=1_000),
        MergeKey(("name",)),
    ] = msgspec.field(default_factory=list)
    launch_delay: Annotated[Duration, Says("From the claim to a machine that boots.")] = Duration(3_000)
    registration_delay: Annotated[Duration, Says("From there to a node.")] = Duration(90_000)
    initialization_delay: Annotated[Duration, Says("From there to a node with its GPUs.")] = Duration(60_000)
