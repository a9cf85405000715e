"""Conditions of NodeClaims, read and written as JSON has them."""

from reconciler.model.instant import Instant, instant, timestamp
from reconciler.protocol.preconditions import Object

LAUNCHED = "Launched"
REGISTERED = "Registered"
INITIALIZED = "Initialized"
DRIFTED = "Drifted"
DRAINED = "Drained"
TERMINATING = "InstanceTerminating"
DISRUPTION = "DisruptionReason"


def condition(body: Object, name: str) -> Object | None:
    """The one of that type."""
    conditions = (body.get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == name), None)


def says(body: Object | None, name: str) -> bool:
    """Whether it is True."""
    found = condition(body, name) if body is not None else None
    return found is not None and found["status"] == "True"


def since(body: Object, name: str) -> Instant:
    """When it last changed; 0 where that is not told."""
    found = condition(body, name)
    text = found.get("lastTransitionTime", "") if found is not None else ""
    return instant(text) if text else Instant(0)


def new_condition(name: str, now: Instant, status: str = "True", reason: str = "") -> Object:
    """A condition that changes now."""
    return {"type": name, "status": status, "reason": reason or name, "lastTransitionTime": timestamp(now)}


def with_condition(body: Object, new: Object) -> list[Object]:
    """All of the body's, this one in place of its like."""
    return [*without(body, new["type"]), new]


def without(body: Object, name: str) -> list[Object]:
    return [each for each in (body.get("status") or {}).get("conditions") or () if each["type"] != name]
