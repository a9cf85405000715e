"""The API server's behavior on writes: admission, defaults, and field ownership."""

from collections.abc import Iterable
from random import Random
from typing import Any

import msgspec

from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.decision import Decision, Evict
from reconciler.plan.manifests.compare import traits
from reconciler.protocol.preconditions import Object, WriteResult, leaves, no_longer_whole
from reconciler.simulate.objects import (
    Key,
    ObjectStore,
    Write,
    begin_deletion,
    condition,
    key_of,
    phase_of,
    says,
    selects,
    with_condition,
)

# --- Pod admission: the PriorityClass sets the priority, and scheduling gates set a condition.
#
# Unknown classes are refused for reconciler's pods. Pods of others are stored unchanged, since an observed cluster does
# not contain PriorityClasses.

_BY_DEFAULT = "PreemptLowerPriority"
_HELD = "Scheduling is blocked due to non-empty scheduling gates"


class _Granted(msgspec.Struct, frozen=True):
    """Defaults from a PriorityClass."""

    priority: int = 0
    policy: str = _BY_DEFAULT


# Built into each cluster.
_SYSTEM = {"system-cluster-critical": _Granted(2_000_000_000), "system-node-critical": _Granted(2_000_001_000)}


def admitted(pod: Object, objects: ObjectStore) -> Object:
    spec = pod.get("spec") or {}
    name = spec.get("priorityClassName", "")
    granted = _granted(name, objects) if name else None if "priority" in spec else _default(objects)
    if granted is not None:
        spec = {**spec, "priority": granted.priority, "preemptionPolicy": granted.policy}
        pod = {**pod, "spec": spec}
    if spec.get("schedulingGates"):
        held = {**condition("PodScheduled", "False", objects.now, "SchedulingGated"), "message": _HELD}
        status = {"phase": "Pending"} | (pod.get("status") or {})
        pod = {**pod, "status": {**status, "conditions": with_condition(pod, held)}}
    return pod


def refusal(pod: Object, objects: ObjectStore) -> str:
    """Why the pod is refused; empty if it is admitted."""
    spec = pod.get("spec") or {}
    name = spec.get("priorityClassName", "")
    granted = _granted(name, objects) if name else _default(objects) or _Granted()
    if granted is None:
        return f"no PriorityClass with name {name} was found"
    for field, computed in (("priority", granted.priority), ("preemptionPolicy", granted.policy)):
        given = spec.get(field)
        if given is not None and given != computed:
            return f"{field} {given} must not be provided, the PriorityClass comes to {computed}"
    return ""


def _granted(name: str, objects: ObjectStore) -> _Granted | None:
    for body in objects.of("PriorityClass"):
        if body["metadata"]["name"] == name:
            return _read(body)
    return _SYSTEM.get(name)


def _default(objects: ObjectStore) -> _Granted | None:
    """For pods without a class; None if there is no default class."""
    found = (each for each in objects.of("PriorityClass") if each.get("globalDefault"))
    return next(map(_read, found), None)


def _read(body: Object) -> _Granted:
    return _Granted(int(body.get("value") or 0), body.get("preemptionPolicy") or _BY_DEFAULT)


# --- The eviction API: checks PodDisruptionBudgets, rule by rule as in the API server's code.

SEVERAL = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."

# The condition that the API server sets on an evicted pod.
DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}

# Pods that may always be evicted.
_WEIGHTLESS = frozenset({"Succeeded", "Failed", "Pending"})


def evicted(act: Evict, pod: Object, budgets: Iterable[Object], now: Instant) -> WriteResult | tuple[Write, ...]:
    """The refusal, or the writes: the updated budget and the deleted pod."""
    conditions = with_condition(pod, {**DISRUPTED, "lastTransitionTime": timestamp(now)})
    marked = {**pod, "status": {**(pod.get("status") or {}), "conditions": conditions}}
    gone = begin_deletion(marked, now, act.grace_seconds)
    if phase_of(pod) in _WEIGHTLESS:
        return (gone,)
    own = [each for each in budgets if selects(each, pod)]
    if len(own) > 1:
        return WriteResult("refused", f"the API server responded 500: {SEVERAL}")
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


def _may_go_unhealthy(budget: Object, pod: Object) -> bool:
    if says(pod, "Ready"):
        return False
    status = budget.get("status") or {}
    wanted = status.get("desiredHealthy", 0)
    always = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow"
    return always or (wanted > 0 and status.get("currentHealthy", 0) >= wanted)


# --- Failing evictions: a simulated API server responds with 429 or 500, or not at all.
#
# Some unanswered evictions take effect.


class Failure(msgspec.Struct, frozen=True):
    """A failed response, and whether the eviction takes effect anyway."""

    result: WriteResult
    takes_effect: bool = False


_WAYS = (
    Failure(WriteResult("retry", "the API server responded 429: too many requests")),
    Failure(WriteResult("retry", "the API server responded 500: an error on the server")),
    Failure(WriteResult("unknown", "no answer came")),
    Failure(WriteResult("unknown", "no answer came"), takes_effect=True),
)


def failure_of(decision: Decision, chance: Random) -> Failure | None:
    """One in three evictions succeeds as usual."""
    if not isinstance(decision.act, Evict) or chance.random() < 1 / 3:
        return None
    return chance.choice(_WAYS)


# --- Field ownership as in the API server: managedFields, one entry per manager and operation.
#
# A field belongs to its last writer; with server-side apply, several managers may own a field of equal value. Lists are
# atomic here: Kubernetes merges some by keys, but for rendered manifests there is no difference.

Tree = dict[str, Any]
Entries = list[Object]

# In metadata, only these have owners.
_OWNED_METADATA = ("labels", "annotations")


def fields_of(body: Object) -> Tree:
    """All fields that a manifest sets."""
    return _tree(_owned(body), (), traits(body["kind"]).atomic_maps)


def changed_fields(before: Object, after: Object) -> Tree:
    return _differing(_owned(before), _owned(after), (), traits(after["kind"]).atomic_maps)


def applied(entries: Entries, mine: Object, changed: Tree) -> Entries:
    """After a server-side apply: `mine` replaces the manager's previous apply entry."""
    others = [each for each in entries if not _same_writer(each, mine)]
    return [*_without(others, changed), mine]


def updated(entries: Entries, manager: str, changed: Tree) -> Entries:
    """After any other write: the changed fields belong to that manager only."""
    if not changed:
        return entries
    mine = entry(manager, "Update", changed)
    before: Tree = next((each["fieldsV1"] for each in entries if _same_writer(each, mine)), {})
    others = [each for each in entries if not _same_writer(each, mine)]
    return [*_without(others, changed), entry(manager, "Update", _union(before, changed))]


def entry(manager: str, operation: str, fields: Tree, subresource: str = "") -> Object:
    managed: Object = {"manager": manager, "operation": operation, "fieldsV1": fields}
    return managed | ({"subresource": subresource} if subresource else {})


def _same_writer(one: Object, other: Object) -> bool:
    return all(one.get(key, "") == other.get(key, "") for key in ("manager", "operation", "subresource"))


def _owned(body: Object) -> Object:
    metadata = {key: body["metadata"][key] for key in _OWNED_METADATA if body["metadata"].get(key)}
    rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata", "status"}}
    return rest | ({"metadata": metadata} if metadata else {})


def _tree(value: Any, path: tuple[str, ...], atomic: frozenset[tuple[str, ...]]) -> Tree:
    if not isinstance(value, dict) or path in atomic:
        return {}
    return {f"f:{key}": _tree(each, (*path, key), atomic) for key, each in value.items()}


def _differing(before: Any, after: Any, path: tuple[str, ...], atomic: frozenset[tuple[str, ...]]) -> Tree:
    if not (isinstance(before, dict) and isinstance(after, dict)) or path in atomic:
        return {}
    keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    return {
        f"f:{key}": _differing(before[key], after[key], (*path, key), atomic)
        if key in before and key in after
        else _tree(after.get(key, before.get(key)), (*path, key), atomic)
        for key in keys
    }


def _without(entries: Entries, changed: Tree) -> Entries:
    left = [{**each, "fieldsV1": _minus(each["fieldsV1"], changed)} for each in entries]
    return [each for each in left if each["fieldsV1"]]


def _minus(fields: Tree, gone: Tree) -> Tree:
    left = {}
    for key, within in fields.items():
        if key not in gone:
            left[key] = within
        elif gone[key] and within and (kept := _minus(within, gone[key])):
            left[key] = kept
    return left


def _union(one: Tree, other: Tree) -> Tree:
    return {key: _union(one.get(key, {}), other.get(key, {})) for key in sorted({*one, *other})}


# --- Pods that are evicted together: the result, one pod after another, as on a real cluster.

_BUDGETS = "PodDisruptionBudget"


class Partly(msgspec.Struct, frozen=True):
    """Some writes were done before the final result."""

    writes: tuple[Write, ...]
    settled: WriteResult


def left_together(act: Evict, subject: Object, objects: ObjectStore) -> WriteResult | Partly | tuple[Write, ...]:
    """Dry runs for all; then the others are evicted, and the subject last."""
    asked: list[tuple[Evict, Object]] = []
    for each in act.others:
        found = objects.get(each.ref)
        if found is None or leaves(each.ref, found):
            return no_longer_whole(each.ref)
        asked.append((Evict(grace_seconds=each.grace_seconds), found))
    asked.append((act, subject))
    for one, pod in asked:
        if isinstance(dry := evicted(one, pod, objects.of(_BUDGETS), objects.now), WriteResult):
            return dry
    # Each eviction uses up the budget for the next one.
    budgets: dict[Key, Object] = {key_of(each): each for each in objects.of(_BUDGETS)}
    writes: list[Write] = []
    refused: list[WriteResult] = []
    for one, pod in asked:
        done = evicted(one, pod, budgets.values(), objects.now)
        if isinstance(done, WriteResult):
            refused.append(done)
            continue
        writes += done
        budgets |= {key_of(each.body): each.body for each in done if each.body["kind"] == _BUDGETS}
    return Partly(tuple(writes), refused[0]) if refused else tuple(writes)
