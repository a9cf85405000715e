"""When two values of a field mean the same to Kubernetes, although they are written differently.

Rules go by the name of a field and of the field around it: there are no schemas here. Where none applies, values are
the same when they are equal. Custom resources are kept as they were written: there an empty list is not the same as
none, and Karpenter hashes it otherwise. Built-in kinds drop what is empty.
"""

from typing import Any

import msgspec

from reconciler.model.quantity import Quantity
from reconciler.plan.karpenter.durations import nanoseconds
from reconciler.plan.manifests.kind_traits import Path

# What stands in these, each under the name of a resource, is an amount: "1000m" is 1, and 8 is "8".
_AMOUNTS = frozenset({"limits", "requests", "overhead", "capacity"})
_DURATIONS = frozenset({"expireAfter", "terminationGracePeriod", "consolidateAfter", "duration"})
# Lists that Karpenter and the scheduler read as sets.
_UNORDERED = frozenset({"requirements", "taints", "startupTaints", "values", "reasons"})
# Texts of people: "60m" in a label is no duration.
_TEXTS = frozenset({"labels", "annotations", "matchLabels", "nodeSelector"})
# Elsewhere an empty map says something: `selector: {}` selects all, `emptyDir: {}` is a volume.
_EMPTY_SAYS_NOTHING = _AMOUNTS | _TEXTS | {"metadata", "resources", "securityContext"}


def same(one: Any, other: Any, path: Path, drops_empty: bool) -> bool:
    """Whether two values of the field mean the same; None is no value."""
    if one == other:
        return True
    name, around = path[-1], path[-2] if len(path) > 1 else ""
    if drops_empty:
        one, other = _without_empty(one, name), _without_empty(other, name)
    return bool(_plain(one, name, around) == _plain(other, name, around))


def _without_empty(value: Any, name: str) -> Any:
    if isinstance(value, dict):
        inner = {key: _without_empty(each, key) for key, each in value.items()}
        said = {key: each for key, each in inner.items() if each is not None}
        return said if said or name not in _EMPTY_SAYS_NOTHING else None
    if isinstance(value, list):
        return [_without_empty(each, "") for each in value] or None
    return value


def _plain(value: Any, name: str, around: str) -> Any:
    """The same for all that means the same."""
    if isinstance(value, dict):
        return {key: _plain(each, key, name) for key, each in value.items()}
    if isinstance(value, list):
        items = [_plain(each, "", name) for each in value]
        if name in _UNORDERED:
            items.sort(key=lambda each: msgspec.json.encode(each, order="sorted"))
        return items
    return _measure(value, name, around)


def _measure(value: Any, name: str, around: str) -> Any:
    try:
        if (around in _AMOUNTS or name == "sizeLimit") and isinstance(value, str | int) and not isinstance(value, bool):
            return Quantity.parse(str(value)).milli
        if name in _DURATIONS and around not in _TEXTS and isinstance(value, str):
            return nanoseconds(value)
    except ValueError:  # Never, or finer than is kept: only equal texts are the same
        return value
    return value
