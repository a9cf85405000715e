"""A Workload: pods that are alike, and how they come and go."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import LABEL_KEY, LABEL_VALUE, NAME, NAMESPACE, Says, Shaped, Unit, Within
from reconciler.model.policy.gpu_pool import Effect, Resources
from reconciler.model.quantity import Duration, Percent
from reconciler.simulate.scenario.cluster import Labels
from reconciler.simulate.scenario.mix import Mix

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
