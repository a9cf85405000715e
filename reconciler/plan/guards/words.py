"""The words of facts that guards give."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.model.cluster.set_aside import DecodeRefusal
from reconciler.model.plan.guard_verdict import Measure
from reconciler.model.plan.reason import Facts
from reconciler.plan.guards.frozen import FreezeScope
from reconciler.plan.guards.observing import Observation
from reconciler.plan.guards.reasons import GuardSum
from reconciler.plan.guards.set_aside import BehindSetAside

MEASURES: Mapping[Measure, str] = {
    "removed_nodes": "removed nodes",
    "removed_percent": "removed percent",
    "disrupted_gpus": "disrupted GPUs",
    "deleted_node_pools": "deleted NodePools",
}


def _sum(each: GuardSum) -> str:
    """40 of 24 removed nodes."""
    words = f"{each.counted} of {each.allowed} {MEASURES[each.measure]}"
    return f"{words} of {each.pool}" if each.pool else words


def _other(facts: BehindSetAside) -> str:
    other = facts.other
    return "/".join(part for part in (other.kind, other.namespace, other.name or "(without a name)") if part)


def _refusal(refusal: DecodeRefusal) -> str:
    return refusal.why


def _scope(scope: FreezeScope) -> str:
    return scope.words


def _observation(observation: Observation) -> str:
    return observation.causes_text


# By the type of a fact.
WORDS: Mapping[type, Callable[[Any], str]] = {
    GuardSum: _sum,
    Observation: _observation,
    DecodeRefusal: _refusal,
    FreezeScope: _scope,
}

# By code, what stands in its template and is no fact, or is written otherwise than by its type.
PARTS: Mapping[type[Facts], Mapping[str, Callable[[Any], str]]] = {
    BehindSetAside: {"other": _other},
}
