"""Workloads as an actor: puts each job, replica set and budget into the world when its time has come.

Each workload draws its own chance, and asks only for its next arrival: what is to come takes no room.
"""

from collections.abc import Callable
from random import Random

from reconciler.model.instant import Instant
from reconciler.model.plan.action import Ref
from reconciler.simulate.scenario.mix import Mix
from reconciler.simulate.scenario.workload import Bursts, Constant, GangWorkload, Inference, ScenarioWorkload
from reconciler.simulate.stage import Stage
from reconciler.simulate.workloads.mix import comes_in_mix, draw, mix_gap_ms
from reconciler.simulate.workloads.pods import Job, budget_of, job_of, replicas_of
from reconciler.simulate.workloads.rates import comes_now, gap_ms, run_seconds, share


def always_runs(workload: ScenarioWorkload) -> bool:
    """Whether it is there from the beginning to stay, as far as it is known then."""
    return bool(workload.constant or workload.inference) and not workload.begins.milliseconds


class Arrivals:
    """An Actor: owner of how many jobs of one workload have come. `traced` are those of its trace, by their time."""

    def __init__(
        self, workload: ScenarioWorkload, traced: tuple[tuple[int, Job], ...] = (), warm_up_ms: int = 0
    ) -> None:
        self._workload = workload
        self._traced = traced
        self._warm_up_ms = warm_up_ms  # how long the story is still to begin when it starts
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
        elif workload.bursts:
            self._at(begins, lambda: self._burst(workload.bursts))
        else:
            self._wait(begins)

    def _at(self, when: Instant, do: Callable[[], object]) -> None:
        self._stage.engine.at(when, f"workload {self._workload.name}", do)

    def _is_over(self, when: Instant) -> bool:
        return self._ends is not None and when >= self._ends

    # What always runs.

    def _appear(self) -> None:
        workload = self._workload
        replicas = workload.constant.pods if workload.constant else self._wanted(workload.inference)
        self._stage.world.put(replicas_of(workload, replicas))
        if workload.inference:
            self._stage.engine.after(workload.inference.every.milliseconds, f"scale {workload.name}", self._scale)
        if self._ends is not None:
            self._at(self._ends, lambda: self._set(0))

    def _wanted(self, curve: Inference | Constant | None) -> int:
        if not isinstance(curve, Inference):
            return 0
        level = share(self._stage.now, curve.busiest_hour, 0.0)
        return round(curve.least + (curve.most - curve.least) * level)

    def _scale(self) -> None:
        curve = self._workload.inference
        if curve is None or self._is_over(self._stage.now):
            return
        self._set(self._wanted(curve))
        self._stage.engine.after(curve.every.milliseconds, f"scale {self._workload.name}", self._scale)

    def _set(self, replicas: int) -> None:
        workload = self._workload
        ref = Ref("ReplicaSet", workload.namespace, workload.name)
        self._stage.world.edit(ref, {"spec": {"replicas": replicas}}, "autoscaler")

    # What comes, runs and is done.

    def _burst(self, bursts: Bursts | None) -> None:
        if bursts is None or self._is_over(self._stage.now):
            return
        for _ in range(bursts.jobs):
            self._put(Job(self._next_name(), run_seconds(self._chance, self._workload)))
        self._at(Instant(self._stage.now + bursts.every.milliseconds), lambda: self._burst(bursts))

    def _wait(self, since: Instant) -> None:
        mix = self._workload.mix
        gap = mix_gap_ms(self._chance, mix) if mix else gap_ms(self._chance, self._per_day())
        when = Instant(since + gap)
        if not self._is_over(when):
            self._at(when, self._arrive)

    def _per_day(self) -> float:
        match self._workload:
            case ScenarioWorkload(steady=steady) if steady:
                return 24 * steady.per_hour
            case ScenarioWorkload(diurnal=diurnal) if diurnal:
                return 24 * diurnal.per_hour
            case ScenarioWorkload(gangs=GangWorkload(per_day=per_day)):
                return per_day
        raise ValueError(f"workload {self._workload.name} says no way in which it comes")

    def _arrive(self) -> None:
        workload, now = self._workload, self._stage.now
        self._wait(now)
        if workload.diurnal and not comes_now(self._chance, workload.diurnal, now):
            return
        if workload.mix:
            self._mixed(workload.mix)
            return
        pods = workload.gangs.pods if workload.gangs else 1
        self._put(Job(self._next_name(), run_seconds(self._chance, workload), pods))

    def _mixed(self, mix: Mix) -> None:
        if comes_in_mix(self._chance, mix, self._stage.now):
            drawn = draw(self._chance, mix.shares, self._workload.gpus or 8)
            self._put(Job(self._next_name(), drawn.seconds, drawn.pods, drawn.gpus, drawn.gpu_milli))

    def _next_traced(self, begins: Instant) -> None:
        """One after the other, in the order of their times."""
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
