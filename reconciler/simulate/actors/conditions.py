"""Conditions, in which objects tell how they are: at most one of a type, with when it last turned."""

from reconciler.model.instant import Instant, timestamp
from reconciler.protocol.preconditions import Object


def condition(type: str, status: str, now: Instant, reason: str = "") -> Object:  # noqa: A002
    """One of them."""
    result = {"type": type, "status": status, "lastTransitionTime": timestamp(now)}
    if reason:
        result["reason"] = reason
    return result


def with_condition(body: Object, new: Object) -> list[Object]:
    """All that an object tells, one of them anew."""
    conditions: list[Object] = (body.get("status") or {}).get("conditions") or []
    return [*(each for each in conditions if each["type"] != new["type"]), new]


def says(body: Object, type: str) -> str:  # noqa: A002 - what Kubernetes calls it
    """True, False or Unknown; nothing where nothing is told."""
    for each in (body.get("status") or {}).get("conditions") or ():
        if each["type"] == type:
            return str(each["status"])
    return ""
