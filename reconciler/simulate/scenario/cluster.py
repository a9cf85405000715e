"""What a scenario begins with and what runs on it: the cluster, its workloads, and mixes of jobs."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import LABEL_KEY, LABEL_VALUE, NAME, NAMESPACE, MergeKey, Says, Shaped, Unit, Within
from reconciler.model.policy.gpu import CapacityType, Effect, PoolTaint, Resources
from reconciler.model.quantity import Duration, Money, Percent

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
    nodes: Annotated[list[NodeSet], Says("Nodes, some at a time."), Within(most=1_000)] = msgspec.field(
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


# --- A Mix: jobs of all sizes, as in production, and what share of them is of which size.

_Share = Annotated[int, Within(0, 1_000)]


class Shares(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """How many jobs are of which size, in proportion to one another."""

    cpu_only: Annotated[_Share, Says("Jobs without a GPU.")] = 10
    part_of_gpu: Annotated[_Share, Says("Jobs that use part of one GPU; they are given a whole one.")] = 20
    one_gpu: Annotated[_Share, Says("Jobs with one GPU.")] = 45
    two_gpus: Annotated[_Share, Says("Jobs with two GPUs.")] = 8
    four_gpus: Annotated[_Share, Says("Jobs with four GPUs.")] = 6
    eight_gpus: Annotated[_Share, Says("Jobs with eight GPUs; a quarter of them on two nodes or more.")] = 11


class Mix(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What production looks like: many small jobs, few large ones, most of them short and some very long."""

    per_day: Annotated[int, Says("How many jobs on average."), Within(1, 1_000_000), Unit("per day")]
    shares: Annotated[Shares, Says("How many are of which size.")] = Shares()
    quietest_percent: Annotated[Percent, Says("What share of the busiest hour's jobs come in the quietest.")] = Percent(
        4_000
    )
    busiest_hour: Annotated[int, Says("When it is busiest, in UTC."), Within(0, 23), Unit("h")] = 14


# --- A Workload: pods that are alike, and how they come and go.

# The ways in which pods come, by their fields; of those after the first two, each pod runs for a time and is done.
WAYS = ("constant", "inference", "steady", "diurnal", "bursts", "gangs", "mix", "trace")
JOBS = frozenset({"steady", "diurnal", "bursts", "gangs"})  # that don't say by themselves how long

_Rate = Annotated[int, Within(1, 1_000_000), Unit("per hour")]


class WorkloadToleration(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A taint that the pods put up with."""

    key: Annotated[str, Says("Key of the taint; absent, any."), Shaped(LABEL_KEY.pattern, LABEL_KEY.words)] = ""
    value: Annotated[str | None, Says("Value of the taint; absent, any."), LABEL_VALUE] = None
    effect: Annotated[Effect | None, Says("Effect of the taint; absent, any.")] = None


class Constant(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """So many pods all the time; one that is lost is made anew."""

    pods: Annotated[int, Says("How many."), Within(0, 100_000), Unit("pods")]


class Inference(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Replicas that follow the hour of the day, as an autoscaler would set them."""

    least: Annotated[int, Says("Replicas in the quietest hour."), Within(0, 100_000), Unit("pods")]
    most: Annotated[int, Says("Replicas in the busiest hour."), Within(1, 100_000), Unit("pods")]
    busiest_hour: Annotated[int, Says("When that is, in UTC."), Within(0, 23), Unit("h")] = 14
    every: Annotated[Duration, Says("How often the number is set.")] = Duration(300_000)


class Steady(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Jobs that come one by one, each whenever it likes."""

    per_hour: Annotated[_Rate, Says("How many on average.")]


class Diurnal(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Jobs that come one by one, more of them by day."""

    per_hour: Annotated[_Rate, Says("How many on average in the busiest hour.")]
    quietest_percent: Annotated[Percent, Says("What share of that in the quietest hour.")] = Percent(2_000)
    busiest_hour: Annotated[int, Says("When it is busiest, in UTC."), Within(0, 23), Unit("h")] = 14


class Bursts(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Many jobs at once, again and again."""

    jobs: Annotated[int, Says("How many at once."), Within(1, 100_000), Unit("jobs")]
    every: Annotated[Duration, Says("How often; the first comes at once.")]


class GangWorkload(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Training jobs of several pods, of which none is of use without the others."""

    pods: Annotated[int, Says("Pods of one gang."), Within(2, 10_000), Unit("pods")]
    per_day: Annotated[int, Says("How many gangs on average."), Within(1, 100_000), Unit("per day")]


class Trace(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a cluster really did, from a file."""

    openb_pods: Annotated[
        str, Says("A pod list of the openb trace. A path from the folder of the scenario."), Within(1, 1024)
    ]
    from_: Annotated[Duration, Says("Where in the trace to begin.")] = msgspec.field(name="from", default=Duration(0))


class ScenarioWorkload(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Pods that are alike, and exactly one way in which they come."""

    name: Annotated[str, Says("What it is called."), Within(1, 40), NAME]
    namespace: Annotated[str, Says("Namespace of its pods."), Within(1, 63), NAMESPACE] = "default"
    gpus: Annotated[int, Says("GPUs of one pod."), Within(0, 16), Unit("GPUs")] = 0
    resources: Annotated[Resources, Says("What else one pod asks for.")] = msgspec.field(default_factory=dict)
    priority: Annotated[int, Says("Who goes first."), Within(-1_000_000_000, 1_000_000_000)] = 0
    tolerations: Annotated[list[WorkloadToleration], Says("Taints that its pods put up with."), Within(most=50)] = (
        msgspec.field(default_factory=list)
    )
    node_selector: Annotated[Labels, Says("Labels of the nodes it can run on.")] = msgspec.field(default_factory=dict)
    waits_for_capacity: Annotated[
        bool, Says("Whether its pods wait behind the gate gpu.scheduling/capacity until a node that fits is usable.")
    ] = False
    gates: Annotated[
        list[Annotated[str, Shaped(LABEL_KEY.pattern, LABEL_KEY.words)]],
        Says("Other scheduling gates that its pods are made with."),
        Within(most=10),
    ] = msgspec.field(default_factory=list)
    do_not_disrupt: Annotated[bool, Says("Whether its pods carry karpenter.sh/do-not-disrupt.")] = False
    max_unavailable: Annotated[
        int | None, Says("Of a PodDisruptionBudget; absent, there is none."), Within(0, 100_000), Unit("pods")
    ] = None
    grace: Annotated[Duration, Says("How long a pod takes to end once it is asked to.")] = Duration(30_000)
    checkpoint: Annotated[
        Duration | None, Says("How long its pods ask to have to save their work before they are evicted.")
    ] = None
    saves_within: Annotated[
        Duration | None, Says("How long that takes a pod once it is told; absent, it never says that it has.")
    ] = None
    runs_for: Annotated[Duration | None, Says("How long a job runs; on average where it varies.")] = None
    varies: Annotated[
        Literal["No", "Mildly", "Widely"],
        Says("How much run times differ: Mildly by half, Widely so that some take ten times as long."),
    ] = "No"
    begins: Annotated[Duration, Says("When the first pod comes.")] = Duration(0)
    ends: Annotated[Duration | None, Says("After which none comes any more; what always runs goes then.")] = None
    constant: Annotated[Constant | None, Says("So many pods all the time.")] = None
    inference: Annotated[Inference | None, Says("Replicas that follow the hour of the day.")] = None
    steady: Annotated[Steady | None, Says("Jobs, one by one.")] = None
    diurnal: Annotated[Diurnal | None, Says("Jobs, one by one, more by day.")] = None
    bursts: Annotated[Bursts | None, Says("Many jobs at once.")] = None
    gangs: Annotated[GangWorkload | None, Says("Training jobs of several pods.")] = None
    mix: Annotated[Mix | None, Says("Jobs of all sizes, as in production.")] = None
    trace: Annotated[Trace | None, Says("What a cluster really did.")] = None
