"""What the eviction API does: it weighs PodDisruptionBudgets, as the API server's own code does, rule by rule."""

from collections.abc import Iterable
from typing import Any

import msgspec

from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.action import Evict
from reconciler.protocol.preconditions import Object, WriteResult
from reconciler.simulate.objects import Write, begin_deletion

SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."

# What the API server notes on a pod that it evicts.
DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}

# Of these nothing is lost when they go.
_WEIGHTLESS = frozenset({"Succeeded", "Failed", "Pending"})


def evicted(act: Evict, pod: Object, budgets: Iterable[Object], now: Instant) -> WriteResult | tuple[Write, ...]:
    """Why not, or what is written: the budget that it costs, and the pod that goes."""
    gone = begin_deletion(_with_disruption_condition(pod, now), now, act.grace_seconds)
    if (pod.get("status") or {}).get("phase", "Pending") in _WEIGHTLESS:
        return (gone,)
    own = [each for each in budgets if _selects(each, pod)]
    if len(own) > 1:
        return WriteResult("refused", f"the API server says 500: {SEVERAL}")
    if not own or _may_go_unhealthy(own[0], pod):
        return (gone,)
    budget = own[0]
    status: dict[str, Any] = budget.get("status") or {}
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"]["generation"]:
        return WriteResult("retry", f"The disruption budget {name} is still being processed by the server.")
    if status.get("disruptionsAllowed", 0) <= 0:
        return WriteResult("retry", f"The disruption budget {name} {_why_none(status)}")
    spent = {
        **status,
        "disruptionsAllowed": status["disruptionsAllowed"] - 1,
        "disruptedPods": {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: timestamp(now)},
    }
    return Write({**budget, "status": spent}), gone


def _why_none(status: dict[str, Any]) -> str:
    healthy, wanted = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if healthy > wanted:
        return "does not allow evicting pods currently"
    return f"needs {wanted} healthy pods and has {healthy} currently"


def _with_disruption_condition(pod: Object, now: Instant) -> Object:
    status = pod.get("status") or {}
    others = [each for each in status.get("conditions") or () if each["type"] != DISRUPTED["type"]]
    entries = {**DISRUPTED, "lastTransitionTime": timestamp(now)}
    return {**pod, "status": {**status, "conditions": [*others, entries]}}


def _selects(budget: Object, pod: Object) -> bool:
    if budget["metadata"].get("namespace") != pod["metadata"].get("namespace"):
        return False
    selector = (budget.get("spec") or {}).get("selector")
    if selector is None:
        return False
    return msgspec.convert(selector, LabelSelector).matches(pod["metadata"].get("labels") or {})


def _may_go_unhealthy(budget: Object, pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    if any(each["type"] == "Ready" and each["status"] == "True" for each in conditions):
        return False
    status = budget.get("status") or {}
    wanted = status.get("desiredHealthy", 0)
    always = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return always or (wanted > 0 and status.get("currentHealthy", 0) >= wanted)
