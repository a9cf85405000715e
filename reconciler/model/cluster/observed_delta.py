"""What is different between two Observed of one cluster, so that only that need be handed on or kept.

Objects are told apart by identity: what a store saw no change of is the same object in both. So the cost of a
difference is a walk over the kinds of which anything changed, and its size that of the changes.
"""

from typing import Any

import msgspec

from reconciler.model.cluster.observed import Observed

Key = tuple[str, str, str, str]  # apiVersion and kind where an object has them, namespace, name

# All else of an Observed is told whole.
OBJECTS = tuple(
    field.name
    for field in msgspec.structs.fields(Observed)
    if field.name not in {"cluster_uid", "own_namespace", "seen_at", "unread", "quiet", "absent", "set_aside"}
)


class ObservedDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """Puts come in place of what has their key; in `put`, what is no object is as it is afterwards."""

    put: Observed
    gone: dict[str, tuple[Key, ...]] = {}  # by field


def difference(before: Observed, after: Observed) -> ObservedDelta:
    """What makes `after` of `before`."""
    put: dict[str, tuple[Any, ...]] = {}
    gone: dict[str, tuple[Key, ...]] = {}
    for field in OBJECTS:
        old, new = getattr(before, field), getattr(after, field)
        if old is new:
            put[field] = ()
            continue
        known, kept = set(map(id, old)), set(map(id, new))
        put[field] = tuple(each for each in new if id(each) not in known)
        left = {key_of(each) for each in old if id(each) not in kept} - {key_of(each) for each in put[field]}
        if left:
            gone[field] = tuple(sorted(left))
    return ObservedDelta(msgspec.structs.replace(after, **put), gone)


class Replica:
    """Owner of a copy of an Observed that follows by differences; what did not change stays the same object."""

    def __init__(self) -> None:
        self._observed = Observed()
        self._by_key: dict[str, dict[Key, Any]] = {field: {} for field in OBJECTS}

    @property
    def observed(self) -> Observed:
        return self._observed

    def take(self, change: ObservedDelta) -> Observed:
        """The copy as it is after the change."""
        if change == ObservedDelta(self._observed_without_objects()):
            return self._observed
        objects: dict[str, tuple[Any, ...]] = {}
        for field in OBJECTS:
            put, gone = getattr(change.put, field), change.gone.get(field, ())
            if not put and not gone:
                objects[field] = getattr(self._observed, field)
                continue
            known = self._by_key[field]
            for key in gone:
                known.pop(key, None)
            known.update((key_of(each), each) for each in put)
            objects[field] = tuple(known.values())
        self._observed = msgspec.structs.replace(change.put, **objects)
        return self._observed

    def _observed_without_objects(self) -> Observed:
        return msgspec.structs.replace(self._observed, **dict.fromkeys(OBJECTS, ()))


def key_of(each: Any) -> Key:
    """No two objects of one field share it."""
    metadata = each.metadata
    return getattr(each, "api_version", ""), getattr(each, "kind", ""), metadata.namespace, metadata.name
