"""What an API server does with what is written: who may, what is filled in, and whose it is then."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import Any

import msgspec

from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.decision import Decision, Evict
from reconciler.plan.manifests.compare import traits
from reconciler.protocol.preconditions import Object, WriteResult, leaves, no_longer_whole
from reconciler.simulate.objects import Key, ObjectStore, Write, begin_deletion, condition, key_of, with_condition

# --- What the API server makes of a pod as it is made: its class becomes a priority, a gate says that it holds.
#
# A class that is not known is refused where we ask. Where others put a pod it stays as it is: a cluster that was seen
# does not tell of its classes.

_BY_DEFAULT = "PreemptLowerPriority"
_HELD = "Scheduling is blocked due to non-empty scheduling gates"


class _Granted(msgspec.Struct, frozen=True):
    """What comes of a class."""

    priority: int = 0
    policy: str = _BY_DEFAULT


# There on each cluster.
_SYSTEM = {"system-cluster-critical": _Granted(2_000_000_000), "system-node-critical": _Granted(2_000_001_000)}


def admitted(pod: Object, objects: ObjectStore, now: Instant) -> Object:
    """The pod as it is stored."""
    spec = pod.get("spec") or {}
    name = spec.get("priorityClassName", "")
    granted = _granted(name, objects) if name else None if "priority" in spec else _default(objects)
    if granted is not None:
        spec = {**spec, "priority": granted.priority, "preemptionPolicy": granted.policy}
        pod = {**pod, "spec": spec}
    if spec.get("schedulingGates"):
        held = {**condition("PodScheduled", "False", now, "SchedulingGated"), "message": _HELD}
        status = {"phase": "Pending"} | (pod.get("status") or {})
        pod = {**pod, "status": {**status, "conditions": with_condition(pod, held)}}
    return pod


def refusal(pod: Object, objects: ObjectStore) -> str:
    """Why it is not let in; nothing where it is."""
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
    """Of pods that name no class; None where there is nothing said."""
    found = (each for each in objects.of("PriorityClass") if each.get("globalDefault"))
    return next(map(_read, found), None)


def _read(body: Object) -> _Granted:
    return _Granted(int(body.get("value") or 0), body.get("preemptionPolicy") or _BY_DEFAULT)


# --- What the eviction API does: it weighs PodDisruptionBudgets, as the API server's own code does, rule by rule.

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


# --- Evictions that fail whatever budgets say: an API server in trouble answers 429 or 500, or not at all.
#
# Of those that are not answered some take effect. Owner of whether it is so now.


class Failure(msgspec.Struct, frozen=True):
    """What is told of one, and whether it takes effect all the same."""

    result: WriteResult
    takes_effect: bool = False


_WAYS = (
    Failure(WriteResult("retry", "the API server says 429: too many requests")),
    Failure(WriteResult("retry", "the API server says 500: an error on the server")),
    Failure(WriteResult("unknown", "no answer came")),
    Failure(WriteResult("unknown", "no answer came"), takes_effect=True),
)


class Failing:
    """Of a world; it fails while somebody has begun and not ended it."""

    def __init__(self) -> None:
        self._going_on = 0
        self._chance = Random(0)  # noqa: S311 - whoever begins brings another

    def begin(self, chance: Random) -> None:
        self._going_on += 1
        self._chance = chance

    def end(self) -> None:
        self._going_on -= 1

    @property
    def goes_on(self) -> bool:
        return self._going_on > 0

    def of(self, decision: Decision) -> Failure | None:
        """One in three is answered as usual."""
        if not self.goes_on or not isinstance(decision.act, Evict) or self._chance.random() < 1 / 3:
            return None
        return self._chance.choice(_WAYS)


# --- Who set which field, kept as the API server keeps it: managedFields, an entry for each manager and way of writing.
#
# A field belongs to whoever set it last; by server-side apply several may set the same to the same. Lists count as one
# value each: Kubernetes takes some of them apart by keys, and for what is rendered here that makes no difference.

Tree = dict[str, Any]
Entries = list[Object]

# Of metadata, only these have owners.
_OWNED_METADATA = ("labels", "annotations")


def fields_of(body: Object) -> Tree:
    """All fields that a manifest sets."""
    return _tree(_owned(body), (), traits(body["kind"]).atomic_maps)


def changed_fields(before: Object, after: Object) -> Tree:
    """Those that differ."""
    return _differing(_owned(before), _owned(after), (), traits(after["kind"]).atomic_maps)


def applied(entries: Entries, mine: Object, changed: Tree) -> Entries:
    """After a server-side apply: the entry `mine` takes the place of what that manager applied before."""
    others = [each for each in entries if not _same_writer(each, mine)]
    return [*_without(others, changed), mine]


def updated(entries: Entries, manager: str, changed: Tree) -> Entries:
    """After a write of another kind: what it changed is that manager's, and no longer anybody else's."""
    if not changed:
        return entries
    mine = entry(manager, "Update", changed)
    before: Tree = next((each["fieldsV1"] for each in entries if _same_writer(each, mine)), {})
    others = [each for each in entries if not _same_writer(each, mine)]
    return [*_without(others, changed), entry(manager, "Update", _union(before, changed))]


def entry(manager: str, operation: str, fields: Tree, subresource: str = "") -> Object:
    """One line of managedFields."""
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


# --- Pods that are asked to leave together: what comes of it, one after the other, as on a real cluster.

_BUDGETS = "PodDisruptionBudget"


class Partly(msgspec.Struct, frozen=True):
    """Some of it was done, and then it ended so."""

    writes: tuple[Write, ...]
    settled: WriteResult


def left_together(
    act: Evict, subject: Object, objects: ObjectStore, now: Instant
) -> WriteResult | Partly | tuple[Write, ...]:
    """All are asked by a dry run; then the others, and the subject last."""
    asked: list[tuple[Evict, Object]] = []
    for each in act.others:
        found = objects.get(each.ref)
        if found is None or leaves(each.ref, found):
            return no_longer_whole(each.ref)
        asked.append((Evict(grace_seconds=each.grace_seconds), found))
    asked.append((act, subject))
    for one, pod in asked:
        if isinstance(dry := evicted(one, pod, objects.of(_BUDGETS), now), WriteResult):
            return dry
    return _in_earnest(asked, objects, now)


def _in_earnest(
    asked: Sequence[tuple[Evict, Object]], objects: ObjectStore, now: Instant
) -> Partly | tuple[Write, ...]:
    """What one costs of a budget the next one lacks."""
    budgets: dict[Key, Object] = {key_of(each): each for each in objects.of(_BUDGETS)}
    writes: list[Write] = []
    refused: list[WriteResult] = []
    for act, pod in asked:
        done = evicted(act, pod, budgets.values(), now)
        if isinstance(done, WriteResult):
            refused.append(done)
            continue
        writes += done
        budgets |= {key_of(each.body): each.body for each in done if each.body["kind"] == _BUDGETS}
    return Partly(tuple(writes), refused[0]) if refused else tuple(writes)
