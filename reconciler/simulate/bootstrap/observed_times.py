"""Times of objects that were seen, as the actors of an imagined cluster read them: a dump may hold any text."""

from typing import Any

from reconciler.model.instant import moment
from reconciler.protocol.preconditions import Object

_TERMINATION = "karpenter.sh/nodeclaim-termination-timestamp"
_TIMES = frozenset(
    {"creationTimestamp", "deletionTimestamp", "startTime", "completionTime", "startedAt", "finishedAt", _TERMINATION}
    | {"lastTransitionTime", "lastProbeTime"}
)


def with_readable_times(body: Object, now: str) -> Object:
    """The object; a time in its metadata or status that is in no calendar counts as now."""
    return {**body, **{part: _readable(body[part], now) for part in ("metadata", "status") if part in body}}


def _readable(value: Any, now: str) -> Any:
    if isinstance(value, dict):
        return {key: now if _is_unreadable(key, each) else _readable(each, now) for key, each in value.items()}
    return [_readable(each, now) for each in value] if isinstance(value, list) else value


def _is_unreadable(key: str, value: Any) -> bool:
    return key in _TIMES and isinstance(value, str) and bool(value) and moment(value) is None
