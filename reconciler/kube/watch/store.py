"""Owner of the observed objects: applies changes and returns an immutable Observed, the same one while nothing changes.

Events of a watch are ordered: an event no newer than the observed version of its kind is a duplicate and ignored.
Whether a kind counts as read depends on its last confirmation (a list, an event, a bookmark, or that it is not served)
and on the clock, never on the state of a connection.
"""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import msgspec

from reconciler.kube.decode import WatchEvent
from reconciler.kube.placeholders import each_once, parted
from reconciler.kube.watch.changes import (
    Absent,
    Change,
    Clock,
    Identity,
    Listed,
    ObjectEvent,
    ReadFailure,
    WatchOpened,
    is_newer,
    wall_clock,
)
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import QUIET_MS, Observed, Quiet, Unread
from reconciler.model.cluster.refusal import SetAside
from reconciler.model.instant import Instant, timestamp

STALE_MS = 300_000
# Without other changes, seen_at advances in these steps; otherwise each bookmark would create a new Observed.
OBSERVED_STEP_MS = 30_000
NOT_YET = "has not been read yet"
# The cluster's identity needs one of these; without an identity, they count as unread.
CLUSTER = "namespaces"

Key = tuple[str, str]  # namespace and name


class _KindSnapshot(msgspec.Struct):
    objects: dict[Key, Any] = {}  # objects that are set aside are StandIns
    shown: tuple[Any, ...] = ()
    set_aside: tuple[SetAside, ...] = ()  # of `shown`
    is_shown: bool = True  # whether `shown` is up to date with `objects`
    version: str = ""
    confirmed_at: Instant | None = None
    is_absent: bool = False
    trouble: str = ""
    is_refused: bool = False

    def confirm(self, at: Instant, version: str = "") -> None:
        self.confirmed_at, self.version = at, version or self.version
        self.trouble, self.is_refused = "", False

    def show(self) -> None:
        """Rebuilds `shown`, with stand-ins for objects that are set aside."""
        self.shown, self.set_aside = parted(tuple(self.objects.values()))
        self.is_shown = True

    def is_stale(self, now: Instant) -> bool:
        return self.confirmed_at is not None and now - self.confirmed_at > STALE_MS

    def why_unread(self, now: Instant) -> str:
        """Why the objects are unreliable; empty if they are reliable."""
        if self.is_refused:
            return self.trouble
        if self.confirmed_at is None:
            return self.trouble or NOT_YET
        if not self.is_stale(now):
            return ""
        since = f"no confirmation since {timestamp(self.confirmed_at)}"
        return f"{since}: {self.trouble}" if self.trouble else since


class ObservedStore:
    """The objects by kind, namespace and name."""

    def __init__(
        self,
        resource_kinds: Iterable[ResourceKind] = RESOURCE_KINDS,
        clock: Clock = wall_clock,
        own_namespace: str = names.OWN_NAMESPACE,
    ) -> None:
        self._clock = clock
        self._sights = {each: _KindSnapshot() for each in resource_kinds}
        self._by_field: dict[str, list[_KindSnapshot]] = {}
        for each, kind_snapshot in self._sights.items():
            self._by_field.setdefault(each.field, []).append(kind_snapshot)
        self._identity = Identity()
        self._observed = Observed(own_namespace=own_namespace)

    def take(self, changes: Iterable[Change]) -> None:
        """Applies changes; changes of one kind are in order."""
        for change in changes:
            if isinstance(change, Identity):
                self._identity = change
            else:
                _take(self._sights[change.resource_kind], change)

    @property
    def is_settled(self) -> bool:
        """Whether each kind has a final state: listed, not served, or forbidden."""
        known = self._identity.uid or self._identity.why
        return bool(known) and all(each.confirmed_at or each.is_refused for each in self._sights.values())

    def observed(self) -> Observed:
        """The current snapshot."""
        now, before = self._clock(), self._observed
        entries = {"cluster_uid": self._identity.uid, "unread": self._unread(now)}
        entries |= {"quiet": self._quiet(now), "absent": self._absent(now)}
        changed: dict[str, Any] = {name: value for name, value in entries.items() if value != getattr(before, name)}
        changed |= self._objects()
        sights = self._sights.values()
        if (aside := each_once(each for sight in sights for each in sight.set_aside)) != before.set_aside:
            changed["set_aside"] = aside
        seen_at = min((each.confirmed_at for each in sights if each.confirmed_at is not None), default=Instant(0))
        if changed or seen_at < before.seen_at or seen_at >= before.seen_at + OBSERVED_STEP_MS:
            self._observed = msgspec.structs.replace(before, seen_at=seen_at, **changed)
        return self._observed

    def _unread(self, now: Instant) -> tuple[Unread, ...]:
        found = {each.title: kind_snapshot.why_unread(now) for each, kind_snapshot in self._sights.items()}
        if not self._identity.uid:
            found[CLUSTER] = self._identity.why or NOT_YET
        return tuple(Unread(kind, why) for kind, why in sorted(found.items()) if why)

    def _quiet(self, now: Instant) -> tuple[Quiet, ...]:
        """Kinds that are silent. A kind that is not served cannot change; an unread kind is reported as unread."""
        read = (each for each in self._sights.items() if not each[1].is_absent and not each[1].why_unread(now))
        since = ((kind.title, kind_snapshot.confirmed_at) for kind, kind_snapshot in read)
        return tuple(sorted(Quiet(title, at) for title, at in since if at is not None and now - at > QUIET_MS))

    def _absent(self, now: Instant) -> tuple[str, ...]:
        read = (each for each in self._sights.items() if each[1].is_absent and not each[1].why_unread(now))
        return tuple(sorted(kind.title for kind, _ in read))

    def _objects(self) -> dict[str, tuple[Any, ...]]:
        changed = {}
        for field, sights in self._by_field.items():
            if all(each.is_shown for each in sights):
                continue
            for each in sights:
                if not each.is_shown:
                    each.show()
            only = sights[0].shown
            changed[field] = only if len(sights) == 1 else tuple(chain.from_iterable(each.shown for each in sights))
        return changed


def _take(kind_snapshot: _KindSnapshot, change: Listed | ObjectEvent | WatchOpened | Absent | ReadFailure) -> None:
    match change:
        case Listed(items=items, version=version, at=at):
            _replace(kind_snapshot, items)
            kind_snapshot.is_absent = False
            kind_snapshot.confirm(at, version)
        case ObjectEvent(event=event, at=at):
            if is_newer(event.resource_version, kind_snapshot.version):
                _heed(kind_snapshot, event)
            kind_snapshot.confirm(at)
        case WatchOpened():
            kind_snapshot.trouble, kind_snapshot.is_refused = "", False
        case Absent(at=at):
            _replace(kind_snapshot, ())
            kind_snapshot.is_absent = True
            kind_snapshot.confirm(at)
        case ReadFailure(why=why, is_refusal=is_refusal):
            kind_snapshot.trouble, kind_snapshot.is_refused = why, is_refusal


def _heed(kind_snapshot: _KindSnapshot, event: WatchEvent) -> None:
    kind_snapshot.version = event.resource_version or kind_snapshot.version
    if event.object is None:
        return
    key = _key(event.object)
    if event.type != "DELETED":
        kind_snapshot.objects[key] = event.object
    elif kind_snapshot.objects.pop(key, None) is None:
        return
    kind_snapshot.is_shown = False


def _replace(kind_snapshot: _KindSnapshot, items: tuple[Any, ...]) -> None:
    """Replaces the objects of a kind. Unchanged objects, and an unchanged tuple, keep their identity."""
    held = kind_snapshot.objects
    found = {}
    for item in items:
        key = _key(item)
        old = held.get(key)
        same = old is not None and old.metadata.resource_version == item.metadata.resource_version
        found[key] = old if same else item
    if len(found) != len(held) or any(held.get(key) is not item for key, item in found.items()):
        kind_snapshot.objects, kind_snapshot.is_shown = found, False


def _key(item: Any) -> Key:
    return item.metadata.namespace, item.metadata.name
