"""Workloads of a simulated cluster: arrivals and departures of pods."""

import math
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import GPU_MILLI, RUN_SECONDS, SAVE_SECONDS, WORKLOAD
from reconciler.simulate.scenario.cluster import (
    Bursts,
    Diurnal,
    GangWorkload,
    Inference,
    Mix,
    ScenarioWorkload,
    Shares,
    Steady,
    WorkloadToleration,
)
from reconciler.simulate.stage import Stage

# --- The objects of a workload, as a user would apply them.

_KEPT_SECONDS = 60  # ttlSecondsAfterFinished
WHOLE_GPU_MILLI = 1_000


class Job(msgspec.Struct, frozen=True):
    """Pods that start together, run for a time and complete."""

    name: str
    seconds: int  # 0: runs until deleted
    pods: int = 1
    gpus: int | None = None  # per pod, if different from the workload
    gpu_milli: int = WHOLE_GPU_MILLI  # used share of one GPU; a whole one is allocated
    requests: Mapping[str, str] | None = None
    models: tuple[str, ...] = ()  # allowed GPU models; empty: all
    priority: int | None = None


def job_of(workload: ScenarioWorkload, job: Job) -> Object:
    """A batch/v1 Job; all its pods run at once."""
    spec: Object = {
        "parallelism": job.pods,
        "completions": job.pods,
        "ttlSecondsAfterFinished": _KEPT_SECONDS,
        "template": _template(workload, job),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(workload, job.name), "spec": spec}


def replicas_of(workload: ScenarioWorkload, replicas: int) -> Object:
    """An apps/v1 ReplicaSet."""
    selector = {"matchLabels": {WORKLOAD: workload.name}}
    template = _template(workload, Job(workload.name, 0))
    spec: Object = {"replicas": replicas, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": _metadata(workload, workload.name), "spec": spec}


def budget_of(workload: ScenarioWorkload) -> Object:
    """A PodDisruptionBudget for all its pods."""
    spec = {"maxUnavailable": workload.max_unavailable, "selector": {"matchLabels": {WORKLOAD: workload.name}}}
    metadata = _metadata(workload, workload.name)
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def _metadata(workload: ScenarioWorkload, name: str) -> Object:
    return {"name": name, "namespace": workload.namespace, "labels": {WORKLOAD: workload.name}}


def _template(workload: ScenarioWorkload, job: Job) -> Object:
    requests = {key: str(value) for key, value in sorted(workload.resources.items())} | dict(job.requests or {})
    gpus = workload.gpus if job.gpus is None else job.gpus
    if gpus:
        requests[names.NVIDIA_GPU] = str(gpus)
    limits = {names.NVIDIA_GPU: str(gpus)} if gpus else {}
    spec: Object = {
        "containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}],
        "terminationGracePeriodSeconds": workload.grace.milliseconds // 1_000,
        "priority": workload.priority if job.priority is None else job.priority,
        "tolerations": [_toleration(each) for each in workload.tolerations],
    }
    if workload.claim:
        spec["schedulerName"] = names.GPU_SCHEDULER
    if gates := dict.fromkeys([names.CAPACITY_GATE] * workload.waits_for_capacity + workload.gates):
        spec["schedulingGates"] = [{"name": each} for each in gates]
    if workload.node_selector:
        spec["nodeSelector"] = dict(sorted(workload.node_selector.items()))
    if job.models:
        spec["affinity"] = {"nodeAffinity": _one_of(job.models)}
    metadata = {"labels": {WORKLOAD: workload.name}, "annotations": _annotations(workload, job)}
    return {"metadata": metadata, "spec": spec}


def _annotations(workload: ScenarioWorkload, job: Job) -> dict[str, str]:
    annotations = {RUN_SECONDS: str(job.seconds)} if job.seconds else {}
    if job.gpu_milli < WHOLE_GPU_MILLI:
        annotations[GPU_MILLI] = str(job.gpu_milli)
    if workload.do_not_disrupt:
        annotations[names.DO_NOT_DISRUPT] = "true"
    if workload.checkpoint is not None:
        annotations[names.CHECKPOINT] = str(workload.checkpoint)
    if workload.saves_within is not None:
        annotations[SAVE_SECONDS] = str(workload.saves_within.milliseconds // 1_000)
    if workload.waits_for_capacity:
        annotations[names.WAIT_FOR_CAPACITY] = "true"
    if workload.claim:
        annotations[names.CLAIM] = workload.claim
    return annotations


def _toleration(toleration: WorkloadToleration) -> dict[str, str]:
    operator = "Exists" if toleration.value is None else "Equal"
    found = {"key": toleration.key or None, "value": toleration.value, "effect": toleration.effect}
    return {"operator": operator} | {key: text for key, text in found.items() if text is not None}


def _one_of(models: tuple[str, ...]) -> dict[str, Any]:
    expression = {"key": names.GPU_TYPE, "operator": "In", "values": list(models)}
    terms = [{"matchExpressions": [expression]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


# --- Workloads as an actor: creates each Job, ReplicaSet and budget at its time.
#
# Each workload has its own random stream, and schedules only its next arrival, so future arrivals use no memory.


def always_runs(workload: ScenarioWorkload) -> bool:
    """Whether the workload runs permanently from the start."""
    return bool(workload.constant or workload.inference) and not workload.begins.milliseconds


class Arrivals:
    """An Actor: owner of the number of arrivals of one workload. `traced`: the jobs of its trace, by time."""

    def __init__(
        self, workload: ScenarioWorkload, traced: tuple[tuple[int, Job], ...] = (), warm_up_ms: int = 0
    ) -> None:
        self._workload = workload
        self._traced = traced
        self._warm_up_ms = warm_up_ms  # time from the actor's start to the start of the scenario
        self._come = 0

    def start(self, stage: Stage) -> None:
        workload, self._stage = self._workload, stage
        story = stage.now + self._warm_up_ms
        begins = Instant(story + workload.begins.milliseconds) if workload.begins.milliseconds else stage.now
        self._chance: Random = stage.engine.stream(f"workload/{workload.name}")
        self._ends = None if workload.ends is None else Instant(story + workload.ends.milliseconds)
        if workload.max_unavailable is not None:
            self._at(begins, lambda: stage.world.put(budget_of(workload)))
        if workload.constant or workload.inference:
            self._at(begins, self._appear)
        elif workload.trace:
            self._next_traced(begins)
        elif bursts := workload.bursts:
            self._at(begins, lambda: self._burst(bursts))
        else:
            self._wait(begins)

    def _at(self, when: Instant, do: Callable[[], object]) -> None:
        self._stage.engine.at(when, f"workload {self._workload.name}", do)

    def _is_over(self, when: Instant) -> bool:
        return self._ends is not None and when >= self._ends

    # Permanent workloads.

    def _appear(self) -> None:
        workload, curve = self._workload, self._workload.inference
        replicas = workload.constant.pods if workload.constant else self._wanted(curve) if curve else 0
        self._stage.world.put(replicas_of(workload, replicas))
        if curve:
            self._scale_later(curve)
        if self._ends is not None:
            self._at(self._ends, lambda: self._set(0))

    def _wanted(self, curve: Inference) -> int:
        return round(curve.least + (curve.most - curve.least) * share(self._stage.now, curve.busiest_hour, 0.0))

    def _scale_later(self, curve: Inference) -> None:
        def scale() -> None:
            if not self._is_over(self._stage.now):
                self._set(self._wanted(curve))
                self._scale_later(curve)

        self._stage.engine.after(curve.every.milliseconds, f"scale {self._workload.name}", scale)

    def _set(self, replicas: int) -> None:
        workload = self._workload
        ref = Ref("ReplicaSet", workload.namespace, workload.name)
        self._stage.world.edit(ref, {"spec": {"replicas": replicas}}, "autoscaler")

    # Jobs.

    def _burst(self, bursts: Bursts) -> None:
        if self._is_over(self._stage.now):
            return
        for _ in range(bursts.jobs):
            self._put(Job(self._next_name(), run_seconds(self._chance, self._workload)))
        self._at(Instant(self._stage.now + bursts.every.milliseconds), lambda: self._burst(bursts))

    def _wait(self, since: Instant) -> None:
        when = Instant(since + gap_ms(self._chance, self._per_day()))
        if not self._is_over(when):
            self._at(when, self._arrive)

    def _per_day(self) -> float:
        """At the busiest hour."""
        match self._workload:
            case ScenarioWorkload(steady=Steady(per_hour=rate)) | ScenarioWorkload(diurnal=Diurnal(per_hour=rate)):
                return 24 * rate
            case ScenarioWorkload(mix=Mix(per_day=average) as mix):
                return average * 2 / (1 + _least(mix))
            case ScenarioWorkload(gangs=GangWorkload(per_day=per_day)):
                return per_day
        raise ValueError(f"workload {self._workload.name} has no arrival pattern")

    def _arrive(self) -> None:
        workload, now = self._workload, self._stage.now
        self._wait(now)
        curve = workload.diurnal or workload.mix
        if curve and not comes_now(self._chance, curve, now):
            return
        if workload.mix:
            self._put(draw(self._chance, self._next_name(), workload.mix.shares, workload.gpus or 8))
            return
        pods = workload.gangs.pods if workload.gangs else 1
        self._put(Job(self._next_name(), run_seconds(self._chance, workload), pods))

    def _next_traced(self, begins: Instant) -> None:
        """Schedules the next job of the trace, in order of time."""
        if self._come == len(self._traced):
            return
        after_ms, job = self._traced[self._come]
        when = Instant(begins + after_ms)
        if not self._is_over(when):
            self._at(when, lambda: self._take(job, begins))

    def _take(self, job: Job, begins: Instant) -> None:
        self._come += 1
        self._put(job)
        self._next_traced(begins)

    def _next_name(self) -> str:
        self._come += 1
        return f"{self._workload.name}-{self._come}"

    def _put(self, job: Job) -> None:
        self._stage.world.put(job_of(self._workload, job))


# --- A production-like job mix: mostly one GPU or less for minutes, sometimes many nodes for a day.
#
# The shares are of the order published for large shared GPU clusters: three of four jobs request at most one GPU, yet
# most GPU time is used by jobs that request whole nodes. Run times have a heavy tail: see `widely`.

_TENTH_MILLI = 100


# Mean run times, by share.
_SECONDS = {
    "cpu_only": 900,
    "part_of_gpu": 1_500,
    "one_gpu": 3_000,
    "two_gpus": 5_400,
    "four_gpus": 7_200,
}
_GPUS = {"cpu_only": 0, "part_of_gpu": 1, "one_gpu": 1, "two_gpus": 2, "four_gpus": 4, "eight_gpus": 8}
# For jobs with eight GPUs: per mille, number of pods, and run time.
_GANGS = ((700, 1, 10_800), (210, 2, 18_000), (65, 4, 36_000), (25, 8, 64_800))


def draw(chance: Random, name: str, shares: Shares, most_gpus: int) -> Job:
    """The next job; a pod requests at most `most_gpus`."""
    sizes = [each for each in shares.__struct_fields__ if getattr(shares, each)]
    (size,) = chance.choices(sizes, [getattr(shares, each) for each in sizes])
    pods, average = 1, _SECONDS.get(size, 0)
    if size == "eight_gpus":
        ((_, pods, average),) = chance.choices(_GANGS, [per_mille for per_mille, _, _ in _GANGS])
    milli = _TENTH_MILLI * chance.randrange(1, 10) if size == "part_of_gpu" else WHOLE_GPU_MILLI
    return Job(name, widely(chance, average), pods, min(_GPUS[size], most_gpus), milli)


# --- Random arrivals and run times, and the time of day.
#
# The arrival rate relative to the busiest hour follows a cosine: 1 at that hour, and the minimum half a day later.

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS

_LONGEST_TIMES = 50  # multiple of the average


def gap_ms(chance: Random, per_day: float) -> int:
    """Time to the next arrival of a Poisson process."""
    return max(1, round(chance.expovariate(per_day / DAY_MS)))


def share(now_ms: int, busiest_hour: int, least: float) -> float:
    """The rate relative to the busiest hour."""
    hours = now_ms % DAY_MS / HOUR_MS
    return least + (1 - least) * (1 + math.cos(2 * math.pi * (hours - busiest_hour) / 24)) / 2


def _least(curve: Diurnal | Mix) -> float:
    return curve.quietest_percent.basis_points / 10_000


def comes_now(chance: Random, curve: Diurnal | Mix, now: Instant) -> bool:
    """Whether an arrival of the busiest hour's rate is accepted now."""
    return chance.random() < share(now, curve.busiest_hour, _least(curve))


def run_seconds(chance: Random, workload: ScenarioWorkload) -> int:
    average = (workload.runs_for.milliseconds if workload.runs_for else 0) / 1_000
    match workload.varies:
        case "No":
            return max(1, round(average))
        case "Mildly":
            return max(1, round(average * chance.uniform(0.5, 1.5)))
        case "Widely":
            return widely(chance, average)


def widely(chance: Random, average: float) -> int:
    """Log-normal, as run times in production: most are short, a few very long."""
    sigma = 1.2
    drawn = chance.lognormvariate(math.log(max(1.0, average)) - sigma**2 / 2, sigma)
    return max(1, round(min(drawn, average * _LONGEST_TIMES)))
