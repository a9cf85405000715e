"""Gauges that features declare; owner of which label values have been published."""

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Gauge

from reconciler.model.plan.cycle_result import CycleResult
from reconciler.plan.feature.feature import Feature, FeatureGauge


class FeatureGauges:
    """A Publisher."""

    def __init__(self, registry: CollectorRegistry, features: Iterable[Feature]) -> None:
        declared = [gauge for feature in features for gauge in feature.gauges]
        self._families = [_Family(each, registry) for each in declared]

    def publish(self, cycled: CycleResult) -> None:
        if cycled.plan is not None:
            for family in self._families:
                family.publish(cycled)


class _Family:
    """One gauge, and the label values that were published so far."""

    def __init__(self, declared: FeatureGauge, registry: CollectorRegistry) -> None:
        self._declared = declared
        self._gauge = Gauge(declared.name, declared.sentence, declared.labels, registry=registry)
        self._published: set[tuple[str, ...]] = set()

    def publish(self, cycled: CycleResult) -> None:
        values = self._declared.values(cycled)
        self._published |= values.keys()
        for labels in self._published:
            child = self._gauge.labels(*labels) if labels else self._gauge
            child.set(values.get(labels, 0))
