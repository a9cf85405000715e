"""Gauges of the gpu feature: waiting pods of claims by reason, and GPUs of each pool."""

from collections import Counter
from collections.abc import Mapping

from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.feature.feature import CycleGauge
from reconciler.plan.gpu.claim_report import ClaimReport
from reconciler.plan.gpu.claim_uses import NEEDED


def _report(cycled: CycleResult) -> ClaimReport | None:
    """None if the report is empty because a needed kind can't be read: the gauges keep their values."""
    if cycled.plan is None or cycled.inputs is None:
        return None
    observed, kinds = cycled.inputs.observed, (*NEEDED, "gpuclaims.gpu.scheduling")
    if observed.unread_among(*kinds) or observed.quiet_among(*kinds):
        return None
    return cycled.plan.report(ClaimReport)


def _waiting(cycled: CycleResult) -> Mapping[tuple[str, ...], float] | None:
    report = _report(cycled)
    return None if report is None else {(each.reason,): each.pods for each in report.waiting}


def _gpus(cycled: CycleResult) -> Mapping[tuple[str, ...], float] | None:
    report = _report(cycled)
    if report is None:
        return None
    values: Counter[tuple[str, ...]] = Counter()
    for each in report.pools:
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
