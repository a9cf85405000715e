"""Gauges of the gpu feature: waiting pods of claims by reason, and GPUs of each pool."""

from collections import Counter
from collections.abc import Mapping

from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.feature.feature import CycleGauge
from reconciler.plan.gpu.claim_report import ClaimReport


def _waiting(cycled: CycleResult) -> Mapping[tuple[str, ...], float] | None:
    if cycled.plan is None:
        return None
    return {(each.reason,): each.pods for each in cycled.plan.report(ClaimReport).waiting}


def _gpus(cycled: CycleResult) -> Mapping[tuple[str, ...], float] | None:
    if cycled.plan is None:
        return None
    values: Counter[tuple[str, ...]] = Counter()
    for each in cycled.plan.report(ClaimReport).pools:
        values[each.pool, "lent"] += each.lent
        values[each.pool, "free"] += each.free
    return values


GAUGES = (
    CycleGauge(
        "reconciler_claim_pods_waiting",
        "Pods that wait for the GPUs of their GpuClaim, by reason of the first pod of the claim.",
        ("reason",),
        _waiting,
    ),
    CycleGauge("reconciler_claim_gpus", "GPUs of pools by state: lent to claims, or free.", ("pool", "state"), _gpus),
)
