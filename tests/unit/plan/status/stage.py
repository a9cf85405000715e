"""What statuses are told from in tests, and what they say."""

import json
from typing import Any

import msgspec

from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Desired, Manifest
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.decision import Decision, Reason, Ref, Status
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.problem import Origin, Problem
from reconciler.plan.manifests import reasons
from reconciler.plan.status.conditions import StatusContext
from tests.unit.policy.custom_resources.stage import POLICIES as TEXT
from tests.unit.policy.custom_resources.stage import rendered, wish_of

NOW = instant("2026-11-02T08:00:00Z")
LATER = instant("2026-11-02T09:00:00Z")
SUBJECT = Ref("NodePool", "", "a100", "u")
HERE = Origin("GpuPool/a100", 0)
MADE = Reason(reasons.Missing(object=Ref("NodePool", "", "a100")), HERE)
WAITS = Reason(reasons.KindAbsent(object=Ref("NodePool", "", "a100"), kind="NodePool"), HERE)


def wish(text: str = TEXT) -> Desired:
    made = Manifest("NodePool", "", "a100", "{}", "a100", HERE, HERE)
    return msgspec.structs.replace(wish_of(text), manifests=(made,))


def plan(*decisions: Decision) -> Plan:
    return Plan("d", decisions, (), Memory(), Hints(), None)


def decision(act: Any, reason: Any = MADE, **more: Any) -> Decision:
    return Decision(reasons.PLANNER, more.pop("subject", SUBJECT), act, reason, "a100", **more)


def inputs(desired: Desired, now: Instant = NOW, objects: list[Unstructured] | None = None) -> Inputs:
    return Inputs(desired, Observed(policies=tuple(rendered(desired) if objects is None else objects)), now)


RESOURCES = StatusContext(are_resources=True)


def told(decisions: tuple[Decision, ...]) -> dict[str, dict[str, Any]]:
    """The new statuses by object."""
    return {each.subject.title: json.loads(each.act.body) for each in decisions if isinstance(each.act, Status)}


def conditions(status: dict[str, Any]) -> dict[str, str]:
    """But for the one that pools alone have, which is no part of how a policy stands."""
    return {each["type"]: each["status"] for each in status["conditions"] if each["type"] != "CapacityShort"}


def reason(status: dict[str, Any]) -> str:
    (found,) = {each["reason"] for each in status["conditions"] if each["type"] != "CapacityShort"}
    return str(found)


def after(objects: list[Unstructured], decisions: tuple[Decision, ...]) -> list[Unstructured]:
    """The objects with the statuses that were decided."""
    new = told(decisions)
    return [
        msgspec.structs.replace(each, rest={**each.rest, "status": new[f"{each.kind}/{each.name}"]})
        if f"{each.kind}/{each.name}" in new
        else each
        for each in objects
    ]


READY = {"Ready": "True", "Reconciling": "False", "Stalled": "False"}
COMING = {"Ready": "False", "Reconciling": "True", "Stalled": "False"}
STUCK = {"Ready": "False", "Reconciling": "False", "Stalled": "True"}
BROKEN = Problem("GpuPool/a100", 0, 0, "RC103", "spec.devices.count: expected an integer", "write 2")
