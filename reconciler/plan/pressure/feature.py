"""The pressure feature: PressurePolicies decide from which nodes elastic pods move away."""

from reconciler.model import names
from reconciler.model.right import RightLimits
from reconciler.plan.feature.feature import Feature, declared_in
from reconciler.plan.feature.write_rights import Enforced, WriteRight
from reconciler.plan.pressure import reasons, resize_reasons
from reconciler.plan.pressure.gauges import GAUGES
from reconciler.plan.pressure.invariants import INVARIANTS
from reconciler.plan.pressure.memory import settle
from reconciler.plan.pressure.planner import pressure
from reconciler.plan.pressure.report import PressureReport
from reconciler.plan.pressure.words import WORDS

_ELASTIC_PODS = RightLimits("resize elastic pods", annotation=names.ELASTIC)


def _pressed(enforced: Enforced) -> set[str]:
    """The namespaces whose pods are evicted: all, if a PressurePolicy moves pods of any pool."""
    return {""} if enforced.is_any or enforced.pressed else set()


def _elastic(enforced: Enforced) -> set[str]:
    """The namespaces whose pods are resized: all, if a PressurePolicy is in force for any pool."""
    return {""} if enforced.is_any or enforced.elastic else set()


FEATURE = Feature(
    name=reasons.PLANNER,
    plan=pressure,
    settle=settle,
    needs=("nodes", "pods", "budgets"),
    report=PressureReport,
    reasons=(*declared_in(reasons), *declared_in(resize_reasons)),
    words=WORDS,
    rights=(
        WriteRight(
            _pressed,
            "",
            ("pods/eviction",),
            ("create",),
            "Evict elastic pods from nodes under pressure: the API server enforces PodDisruptionBudgets.",
        ),
        WriteRight(
            _elastic, "", ("pods/resize",), ("patch",), "Resize elastic pods in place to their permits.", _ELASTIC_PODS
        ),
    ),
    gauges=GAUGES,
    invariants=INVARIANTS,
)
