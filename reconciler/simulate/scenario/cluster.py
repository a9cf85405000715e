"""Scenario fields: initial cluster, market, workloads, and job mixes."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import LABEL_KEY, LABEL_VALUE, NAME, NAMESPACE, MergeKey, Says, Shaped, Unit, Within
from reconciler.model.policy.gpu import CapacityType, ClaimedDevices, Effect, PoolTaint, Resources
from reconciler.model.quantity import Duration, Money, Percent

Labels = Annotated[dict[str, Annotated[str, LABEL_VALUE]], LABEL_KEY]
LabelKey = Annotated[str, Shaped(LABEL_KEY.pattern, LABEL_KEY.words)]
LabelValue = Annotated[str, Within(1, 63), LABEL_VALUE]
Name = Annotated[str, Within(1, 253), NAME]
File = Annotated[str, Within(1, 1024)]  # a path relative to the scenario
Hour = Annotated[int, Within(0, 23), Unit("h")]


class NodeSet(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A group of equal nodes."""

    pool: Annotated[Name, Says("GpuPool of the nodes, from the first policies.")] = ""
    name: Annotated[str, Says("Name prefix; absent: the pool's name."), Within(1, 200), NAME] = ""
    count: Annotated[int, Says("Number of nodes."), Within(1, 20_000), Unit("nodes")]
    instance_type: Annotated[LabelValue, Says("Instance type; absent: the pool's first.")] = ""
    capacity_type: Annotated[CapacityType | None, Says("Capacity type; absent: the pool's first.")] = None
    zone: Annotated[LabelValue, Says("Zone; absent: all zones in turn.")] = ""
    capacity: Annotated[Resources, Says("Capacity per node; absent: from the pool's instance type.")] = {}
    labels: Annotated[Labels, Says("Further labels.")] = {}
    taints: Annotated[
        list[PoolTaint], Says("Taints of nodes without a pool."), Within(most=50), MergeKey(("key", "effect"))
    ] = []


class ScenarioClaim(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A GpuClaim."""

    name: Annotated[Name, Says("Name of the claim.")]
    namespace: Annotated[str, Says("Namespace of the claim and its pods."), Within(1, 63), NAMESPACE] = "default"
    devices: Annotated[ClaimedDevices, Says("The GPUs of each pod.")]
    pool_name: Annotated[Name, Says("Required pool; absent: any that fits.")] = ""


_Id = Annotated[int, Within(0, 15)]


class NodeBoard(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The GPUs of each node of a pool, as the node agent reports them."""

    pool: Annotated[Name, Says("GpuPool of the nodes.")]
    islands: Annotated[
        list[Annotated[int, Within(1, 16)]], Says("Number of GPUs in each island of fast links."), Within(1, 16)
    ]
    bandwidth_gbps: Annotated[
        int, Says("Bandwidth between GPUs of one island."), Within(0, 1_000_000), Unit("GB/s")
    ] = msgspec.field(name="bandwidthGBps", default=600)
    unhealthy: Annotated[list[_Id], Says("Ids of unhealthy GPUs."), Within(most=16)] = []


class InitialCluster(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The initial state: a dump of a real cluster, listed nodes, or both."""

    dump: Annotated[
        File, Says("A dump or kubectl output; its workloads continue. A path relative to the scenario.")
    ] = ""
    openb_nodes: Annotated[File, Says("A node list of the openb trace. A path relative to the scenario.")] = ""
    nodes: Annotated[list[NodeSet], Says("Groups of nodes."), Within(most=1_000)] = []
    objects: Annotated[
        list[Annotated[str, Within(1, 100_000)]],
        Says("Existing objects, one YAML text each: workloads, budgets, claims, pods."),
        Within(most=1_000),
    ] = []
    claims: Annotated[list[ScenarioClaim], Says("Existing GpuClaims."), Within(most=1_000)] = []
    boards: Annotated[
        list[NodeBoard],
        Says("What node agents report, by pool; absent: nodes without a report."),
        Within(most=100),
        MergeKey(("pool",)),
    ] = []
    webhook: Annotated[bool, Says("Whether new pods with a GpuClaim pass the admission webhook.")] = True


class ScenarioMachine(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A machine type that can be launched."""

    name: Annotated[LabelValue, Says("Instance type.")]
    capacity: Annotated[Resources, Says("Capacity, including GPUs.")]
    price_per_hour: Annotated[dict[CapacityType, Money], Says("Dollars per hour, by capacity type.")]
    zones: Annotated[list[LabelValue], Says("Zones; absent: all zones."), Within(most=20)] = []
    labels: Annotated[Labels, Says("Further labels of the nodes.")] = {}


class ScenarioMarket(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Machines that Karpenter can launch: instance types declared in policies, and those added here."""

    zones: Annotated[list[LabelValue], Says("Zones with machines."), Within(1, 20)] = msgspec.field(
        default_factory=lambda: ["zone-a", "zone-b", "zone-c"]
    )
    machines: Annotated[
        list[ScenarioMachine],
        Says("Further machines, or replacements of declared ones."),
        Within(most=1_000),
        MergeKey(("name",)),
    ] = []
    launch_delay: Annotated[Duration, Says("From the NodeClaim to the launch.")] = Duration(3_000)
    registration_delay: Annotated[Duration, Says("From the launch to the registered node.")] = Duration(90_000)
    initialization_delay: Annotated[Duration, Says("From registration to readiness with GPUs.")] = Duration(60_000)


# --- A job mix: jobs of all sizes, as in production, with the share of each size.

_Share = Annotated[int, Within(0, 1_000)]


class Shares(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Relative number of jobs by size."""

    cpu_only: Annotated[_Share, Says("Jobs without a GPU.")] = 10
    part_of_gpu: Annotated[_Share, Says("Jobs that use part of one GPU; they get a whole one.")] = 20
    one_gpu: Annotated[_Share, Says("Jobs with one GPU.")] = 45
    two_gpus: Annotated[_Share, Says("Jobs with two GPUs.")] = 8
    four_gpus: Annotated[_Share, Says("Jobs with four GPUs.")] = 6
    eight_gpus: Annotated[_Share, Says("Jobs with eight GPUs; a quarter of them on two nodes or more.")] = 11


class Mix(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A production-like mix: many small jobs, few large ones; most are short and some very long."""

    per_day: Annotated[int, Says("Average number of jobs."), Within(1, 1_000_000), Unit("per day")]
    shares: Annotated[Shares, Says("Relative number of jobs by size.")] = Shares()
    quietest_percent: Annotated[Percent, Says("Quietest hour's arrivals relative to the busiest hour.")] = Percent(
        4_000
    )
    busiest_hour: Annotated[Hour, Says("Busiest hour in UTC.")] = 14


# --- A Workload: equal pods, and their arrival pattern.

# Arrival patterns, by field. With all except the first two, each pod runs for a limited time.
WAYS = ("constant", "inference", "steady", "diurnal", "bursts", "gangs", "mix", "trace")
JOBS = frozenset({"steady", "diurnal", "bursts", "gangs"})  # patterns that require runsFor

_Rate = Annotated[int, Within(1, 1_000_000), Unit("per hour")]


class WorkloadToleration(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A toleration of the pods."""

    key: Annotated[LabelKey, Says("Key of the taint; absent: any.")] = ""
    value: Annotated[str | None, Says("Value of the taint; absent: any."), LABEL_VALUE] = None
    effect: Annotated[Effect | None, Says("Effect of the taint; absent: any.")] = None


class Constant(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A constant number of pods; lost pods are recreated."""

    pods: Annotated[int, Says("Number of pods."), Within(0, 100_000), Unit("pods")]


class Inference(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Replicas that follow the time of day, as set by an autoscaler."""

    least: Annotated[int, Says("Replicas in the quietest hour."), Within(0, 100_000), Unit("pods")]
    most: Annotated[int, Says("Replicas in the busiest hour."), Within(1, 100_000), Unit("pods")]
    busiest_hour: Annotated[Hour, Says("Busiest hour in UTC.")] = 14
    every: Annotated[Duration, Says("Interval of scaling.")] = Duration(300_000)


class Steady(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Jobs with random independent arrivals."""

    per_hour: Annotated[_Rate, Says("Average number of jobs.")]


class Diurnal(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Jobs with random arrivals, more by day."""

    per_hour: Annotated[_Rate, Says("Average number of jobs in the busiest hour.")]
    quietest_percent: Annotated[Percent, Says("Quietest hour's arrivals relative to the busiest hour.")] = Percent(
        2_000
    )
    busiest_hour: Annotated[Hour, Says("Busiest hour in UTC.")] = 14


class Bursts(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Many jobs at once, repeatedly."""

    jobs: Annotated[int, Says("Number of jobs per burst."), Within(1, 100_000), Unit("jobs")]
    every: Annotated[Duration, Says("Interval of bursts; the first is immediate.")]


class GangWorkload(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Training jobs of several pods that are useless alone."""

    pods: Annotated[int, Says("Pods per gang."), Within(2, 10_000), Unit("pods")]
    per_day: Annotated[int, Says("Average number of gangs."), Within(1, 100_000), Unit("per day")]


class Trace(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Recorded workload of a real cluster, from a file."""

    openb_pods: Annotated[File, Says("A pod list of the openb trace. A path relative to the scenario.")]
    from_: Annotated[Duration, Says("Start time in the trace.")] = msgspec.field(name="from", default=Duration(0))


class ScenarioWorkload(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Equal pods, with exactly one arrival pattern."""

    name: Annotated[str, Says("Name of the workload."), Within(1, 40), NAME]
    namespace: Annotated[str, Says("Namespace of the pods."), Within(1, 63), NAMESPACE] = "default"
    gpus: Annotated[int, Says("GPUs per pod."), Within(0, 16), Unit("GPUs")] = 0
    claim: Annotated[Name, Says("GpuClaim of each pod: the scheduler gpu-scheduler chooses its GPUs.")] = ""
    resources: Annotated[Resources, Says("Other requested resources per pod.")] = {}
    priority: Annotated[int, Says("Priority of the pods."), Within(-1_000_000_000, 1_000_000_000)] = 0
    tolerations: Annotated[list[WorkloadToleration], Says("Tolerations of the pods."), Within(most=50)] = []
    node_selector: Annotated[Labels, Says("Node selector of the pods.")] = {}
    waits_for_capacity: Annotated[
        bool, Says("Whether the pods have the scheduling gate gpu.scheduling/capacity until a suitable node is usable.")
    ] = False
    gates: Annotated[list[LabelKey], Says("Further scheduling gates of the pods."), Within(most=10)] = []
    do_not_disrupt: Annotated[bool, Says("Whether the pods have karpenter.sh/do-not-disrupt.")] = False
    max_unavailable: Annotated[
        int | None, Says("maxUnavailable of the PodDisruptionBudget; absent: none."), Within(0, 100_000), Unit("pods")
    ] = None
    grace: Annotated[Duration, Says("Time that a pod takes to terminate.")] = Duration(30_000)
    checkpoint: Annotated[Duration | None, Says("Requested time for a checkpoint before eviction.")] = None
    saves_within: Annotated[
        Duration | None, Says("Actual time of a checkpoint; absent: the pod never reports one.")
    ] = None
    runs_for: Annotated[Duration | None, Says("Run time of a job, on average if it varies.")] = None
    varies: Annotated[
        Literal["No", "Mildly", "Widely"],
        Says("Variation of run times: Mildly by half, Widely with some ten times as long."),
    ] = "No"
    begins: Annotated[Duration, Says("Time of the first arrival.")] = Duration(0)
    ends: Annotated[Duration | None, Says("End of arrivals; permanent pods are deleted then.")] = None
    constant: Annotated[Constant | None, Says("A constant number of pods.")] = None
    inference: Annotated[Inference | None, Says("Replicas that follow the time of day.")] = None
    steady: Annotated[Steady | None, Says("Jobs with random arrivals.")] = None
    diurnal: Annotated[Diurnal | None, Says("Jobs with random arrivals, more by day.")] = None
    bursts: Annotated[Bursts | None, Says("Many jobs at once.")] = None
    gangs: Annotated[GangWorkload | None, Says("Training jobs of several pods.")] = None
    mix: Annotated[Mix | None, Says("Jobs of all sizes, as in production.")] = None
    trace: Annotated[Trace | None, Says("Recorded workload of a real cluster.")] = None
