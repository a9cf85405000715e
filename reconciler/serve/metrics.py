"""What is measured of the cycles; owner of the counters, which one thread moves and another reads."""

from collections import Counter as Counts

from prometheus_client import CollectorRegistry, Counter, Gauge, GCCollector, PlatformCollector, ProcessCollector
from prometheus_client.exposition import generate_latest

from reconciler.model.plan.action import Hold, Ref
from reconciler.model.plan.cycle_result import CycleResult
from reconciler.model.plan.decision import Decision
from reconciler.plan.features import FEATURES
from reconciler.serve.durations import Durations
from reconciler.serve.feature_gauges import FeatureGauges
from reconciler.serve.scale_down_metrics import ScaleDownMetrics
from reconciler.serve.smart_pod_metrics import SmartPodMetrics


class Metrics:
    """A Publisher."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        for collector in (ProcessCollector, PlatformCollector, GCCollector):
            collector(registry=self.registry)
        self._count_cycles()
        self._smart_pods = SmartPodMetrics(self.registry)
        self._durations = Durations(self.registry)
        self._scale_down = ScaleDownMetrics(self.registry, self._durations)
        self._features = FeatureGauges(self.registry, FEATURES)

    def _count_cycles(self) -> None:
        self._cycles = Counter(
            "reconciler_cycles", "Cycles, by whether a plan was carried out.", ["result"], registry=self.registry
        )
        self._writes = Counter(
            "reconciler_writes", "Writes that were sent, by what came of them.", ["verb", "result"],
            registry=self.registry,
        )  # fmt: skip
        self._refused_now = Gauge(
            "reconciler_writes_refused", "Objects of which the API server refused the last write, by verb.", ["verb"],
            registry=self.registry,
        )  # fmt: skip
        self._refused: dict[Ref, str] = {}  # verb
        self._refused_verbs: set[str] = set()
        self._failures = Counter(
            "reconciler_planner_failures", "Plans in which a planner raised, by the pool that it was planning for.",
            ["planner", "pool"], registry=self.registry,
        )  # fmt: skip
        self._decisions = Gauge(
            "reconciler_decisions", "Decisions of the last plan.", ["planner", "action"], registry=self.registry
        )
        self._counted: set[tuple[str, str]] = set()
        self._cycle_at = Gauge(
            "reconciler_last_cycle_timestamp_seconds", "When the last cycle began.", registry=self.registry
        )
        self._seen_at = Gauge(
            "reconciler_seen_timestamp_seconds", "When the cluster was last seen whole.", registry=self.registry
        )
        self._problems = Gauge(
            "reconciler_policy_problems", "Problems of policies that were refused.", registry=self.registry
        )
        self._set_aside = Gauge(
            "reconciler_set_aside_objects", "Objects that cannot be understood, and are set aside.", ["kind", "reason"],
            registry=self.registry,
        )  # fmt: skip
        self._aside: set[tuple[str, str]] = set()
        self._leaderless = Gauge("reconciler_leaderless", "1 while no replica leads.", registry=self.registry)
        self._leads = Gauge("reconciler_leads", "1 while this replica leads.", registry=self.registry)

    def publish(self, cycled: CycleResult) -> None:
        self._cycles.labels("trouble" if cycled.trouble else "fine").inc()
        self._cycle_at.set(cycled.at / 1000)
        self._problems.set(len(cycled.problems))
        if cycled.inputs is not None:
            self._seen_at.set(cycled.inputs.observed.seen_at / 1000)
            self._count_set_aside(Counts((each.kind, each.code) for each in cycled.inputs.observed.set_aside))
        for outcome in cycled.outcomes:
            self._writes.labels(outcome.verb, outcome.result).inc()
        self._count_refused(cycled)
        if cycled.plan is not None:
            for trouble in cycled.plan.troubles:
                self._failures.labels(trouble.planner, trouble.pool).inc()
            counts = Counts(map(_labels, cycled.plan.decisions))
            self._counted |= set(counts)
            for labels in self._counted:  # one that is not decided any more is told as none
                self._decisions.labels(*labels).set(counts[labels])
        self._smart_pods.publish(cycled)
        self._scale_down.publish(cycled)
        self._features.publish(cycled)
        self._durations.publish(cycled)

    def _count_refused(self, cycled: CycleResult) -> None:
        """What a plan does not ask for any more was refused for good."""
        if cycled.plan is not None:
            refs = {each.subject for each in cycled.plan.decisions if not isinstance(each.act, Hold)}
            self._refused = {subject: verb for subject, verb in self._refused.items() if subject in refs}
        for outcome in cycled.outcomes:
            if outcome.result == "refused":
                self._refused[outcome.subject] = outcome.verb
            else:
                self._refused.pop(outcome.subject, None)
        counts = Counts(self._refused.values())
        self._refused_verbs |= set(counts)
        for verb in self._refused_verbs:
            self._refused_now.labels(verb).set(counts[verb])

    def _count_set_aside(self, counts: Counts[tuple[str, str]]) -> None:
        self._aside |= set(counts)
        for labels in self._aside:  # a kind of which none is set aside any more is told as none
            self._set_aside.labels(*labels).set(counts[labels])

    def leaderless(self, is_leaderless: bool) -> None:
        """Whether nobody leads now, as far as this replica can tell."""
        self._leaderless.set(is_leaderless)

    def lead(self, leads: bool) -> None:
        """Whether this replica leads now."""
        self._leads.set(leads)
        if not leads:
            self._smart_pods.forget()

    def text(self) -> bytes:
        """As Prometheus reads it."""
        return generate_latest(self.registry)


def _labels(decision: Decision) -> tuple[str, str]:
    if isinstance(decision.act, Hold):
        return decision.planner, "hold"
    return decision.planner, "would" if decision.would else type(decision.act).__name__.lower()
