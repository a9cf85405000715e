"""What the API server makes of a pod as it is made: its class becomes a priority, a gate says that it holds.

A class that is not known is refused where we ask. Where others put a pod it stays as it is: a cluster that was seen
does not tell of its classes.
"""

import msgspec

from reconciler.model.instant import Instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.conditions import condition, with_condition
from reconciler.simulate.objects import ObjectStore

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
