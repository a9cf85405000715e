"""Records executed decisions as Events on the subject and related objects; best effort, rate-limited.

`kubectl describe` finds an Event by name, kind and uid of its object, so the Event of a new object has the uid that the
API server returned. A repeated Event within some minutes increments the series of the first one, as in Kubernetes' own
recorder. The same action on many nodes of a pool is one Event on the pool.
"""

import socket
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime

import msgspec

from reconciler.kube.api_server import MERGE_PATCH, ApiRequest, BadPath, Unreachable, Writer, below, folder_in
from reconciler.kube.apply.fenced_writer import Bucket
from reconciler.kube.apply.verbs import kind_of
from reconciler.kube.placeholders import served_version
from reconciler.model import names
from reconciler.model.plan.decision import Decision, Ref, Status
from reconciler.protocol.write_order import verb_of
from reconciler.report.decision_text import note_of

_LONGEST_NOTE_BYTES = 1024
_LONGEST_NAME = 230  # leaves room for a timestamp suffix
_CLUSTER_WIDE = "default"  # namespace for Events of cluster-scoped objects
_OUR_BOOKKEEPING = frozenset({"ConfigMap", "Lease"})
_OF_MANY_NODES = frozenset({"NodePool", "GpuPool"})
_NAMED = 3  # nodes named by an Event of a pool
_SERIES_SECONDS = 360.0  # as long as client-go keeps a series open
_MOST_SERIES = 4_096


class EventNote(msgspec.Struct, frozen=True):
    """One Event; equal ones form a series."""

    regarding: Ref
    reason: str
    action: str
    note: str


class _Series(msgspec.Struct):
    path: str
    began: float
    count: int = 1


def is_reported(decision: Decision) -> bool:
    """Statuses and internal bookkeeping have no Events."""
    return not isinstance(decision.act, Status) and decision.subject.kind not in _OUR_BOOKKEEPING


def event_notes(decision: Decision, uid: str = "") -> Iterator[EventNote]:
    """Events of the subject, of the pods evicted with it, and, for a node, of its NodeClaim.

    `uid`: of a subject that the write created.
    """
    note = note_of(decision.reason)
    single = [each for each in decision.about if each.kind not in _OF_MANY_NODES]
    for ref in (*decision.refs, *single):
        known = msgspec.structs.replace(ref, uid=uid) if uid and not ref.uid and ref == decision.subject else ref
        yield EventNote(known, decision.reason.code, _action(decision), note)


def pool_event_notes(decisions: Iterable[Decision]) -> Iterator[EventNote]:
    """Events on pools for actions on their nodes: one for all nodes with the same action and reason."""
    alike: dict[tuple[Ref, str, str], list[Decision]] = {}
    for decision in decisions:
        for ref in decision.about:
            if ref.kind in _OF_MANY_NODES:
                alike.setdefault((ref, decision.reason.code, _action(decision)), []).append(decision)
    for (ref, reason, action), several in sorted(alike.items(), key=lambda each: each[0]):
        nodes = sorted(each.subject.name for each in several)
        note = note_of(min(several, key=lambda each: each.subject.name).reason)
        if len(nodes) > 1:
            more = f" and {len(nodes) - _NAMED} more" if len(nodes) > _NAMED else ""
            note = f"{len(nodes)} nodes ({', '.join(nodes[:_NAMED])}{more}): {note}"
        yield EventNote(ref, reason, action, note)


class Events:
    """Owner of the open series. Drops Events beyond the rate limit, and Events that the API server refuses."""

    def __init__(self, server: Writer, per_second: float, burst: int) -> None:
        self._server = server
        # Events of many nodes must leave tokens for the pool's summary Event.
        self._bucket, self._of_pools = Bucket(per_second, burst), Bucket(per_second, burst)
        self._instance = socket.gethostname()
        self._lock = threading.Lock()
        self._series: OrderedDict[EventNote, _Series] = OrderedDict()

    def tell(self, note: EventNote) -> None:
        """Sends the Event or drops it. Never raises or waits."""
        bucket = self._of_pools if note.regarding.kind in _OF_MANY_NODES else self._bucket
        if not bucket.try_take():
            return
        with suppress(Unreachable, BadPath):
            request = self._again(note) or self._first(note)
            answer = self._server.send(request)
            if request.method == "PATCH" and answer.status == 404:  # the Event expired or was deleted
                with self._lock:
                    self._series.pop(note, None)

    def _again(self, note: EventNote) -> ApiRequest | None:
        with self._lock:
            known = self._series.get(note)
            if known is None or time.monotonic() - known.began > _SERIES_SECONDS:
                return None
            known.count += 1
            body = {"series": {"count": known.count, "lastObservedTime": _time(time.time_ns())}}
            return ApiRequest("PATCH", known.path, msgspec.json.encode(body), MERGE_PATCH)

    def _first(self, note: EventNote) -> ApiRequest:
        now_nanoseconds = time.time_ns()
        namespace = note.regarding.namespace or _CLUSTER_WIDE
        name = f"{note.regarding.name[:_LONGEST_NAME].rstrip('-.')}.{now_nanoseconds:x}"
        folder_path = folder_in(namespace, "events.k8s.io", "events")
        with self._lock:
            self._series[note] = _Series(below(folder_path, name), time.monotonic())
            self._series.move_to_end(note)
            while len(self._series) > _MOST_SERIES:
                self._series.popitem(last=False)
        event = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": _time(now_nanoseconds),
            "type": "Normal",
            "reason": note.reason,
            "action": note.action,
            "note": note.note.encode()[:_LONGEST_NOTE_BYTES].decode(errors="ignore"),
            "regarding": _regarding(note.regarding),
            "reportingController": names.EVENT_SOURCE,
            "reportingInstance": self._instance,
        }
        return ApiRequest("POST", folder_path, msgspec.json.encode(event))


def _action(decision: Decision) -> str:
    return verb_of(decision).capitalize()


def _time(nanoseconds: int) -> str:
    at = datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat(timespec="microseconds")
    return at.replace("+00:00", "Z")


def _regarding(subject: Ref) -> dict[str, str]:
    entries = {
        "apiVersion": served_version(kind_of(subject)),
        "kind": subject.kind,
        "namespace": subject.namespace,
        "name": subject.name,
        "uid": subject.uid,
    }
    return {key: value for key, value in entries.items() if value}
