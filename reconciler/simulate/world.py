"""Owner of an imagined cluster: its objects, and the hour. The verbs and refusals are those of a real API server.

Nothing happens by itself: no kubelet, no Karpenter, no scheduler; whoever imagines those writes with put, edit and
remove. To look again costs what has changed, and a tuple of each kind that did.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.kinds import ResourceKind
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Evict, Outcome, Ref
from reconciler.ports import Fence
from reconciler.protocol.preconditions import DONE, NO_LONGER_OURS, Object, WriteResult
from reconciler.protocol.write_order import WriteOrder, verb_of
from reconciler.simulate import api_server
from reconciler.simulate.api_server import Failing, Partly, admitted, evicted
from reconciler.simulate.effects import EffectContext, edited_by, effect_of
from reconciler.simulate.objects import GRACE_SECONDS, Key, ObjectStore, ObjectWrite, Write, begin_deletion, key_of
from reconciler.simulate.observer import SimulatedObserver

_BEGINNING = Instant(0)

Listener = Callable[[ObjectWrite], None]


class World:
    """Deterministic, without threads. `now` is told, and never moves by itself; `on_write` is called with each object
    that a decision wrote, once it stands: what it raises ends the apply right there, as a crash would."""

    def __init__(
        self, now: Instant = _BEGINNING, cluster_uid: str = "world", own_namespace: str = names.OWN_NAMESPACE
    ) -> None:
        self.now = now
        self.on_write: Callable[[Ref], None] = _nothing
        self.failing = Failing()
        self._objects = ObjectStore()
        self.own_namespace = own_namespace  # the controller's
        self._simulated_observer = SimulatedObserver(cluster_uid, own_namespace=own_namespace)
        self._subscribers: list[tuple[Listener, tuple[str, ...]]] = []
        self._listeners: dict[str, tuple[Listener, ...]] = {}  # by kind, in the order in which they subscribed
        for name in ("default", "kube-system", own_namespace, names.SMART_PODS_NAMESPACE, names.LEASES_NAMESPACE):
            labels = {"kubernetes.io/metadata.name": name}
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    def put(self, manifest: Object, manager: str = "") -> Ref:
        """Makes an object, or puts another in its place, as somebody else would; the Ref has its uid. With a manager
        it is kept who set which field."""
        body: Object = msgspec.json.decode(msgspec.json.encode(manifest))
        kind, namespace, name = key_of(body)
        before = self._objects.get(Ref(kind, namespace, name))
        metadata = body["metadata"]
        if before is not None:
            kept = {key: before["metadata"][key] for key in ("uid", "creationTimestamp", "generation")}
            metadata = metadata | kept
        elif kind == "Pod":
            body = admitted(body, self._objects, self.now)
        if manager:
            fields = api_server.entry(manager, "Update", api_server.fields_of(body))
            metadata = {**metadata, "managedFields": [fields]}
        stored = self._write(Write({**body, "metadata": metadata}), manager)
        return Ref(kind, namespace, name, stored["metadata"]["uid"])

    def edit(self, ref: Ref, patch: Object, manager: str = "") -> None:
        """A JSON merge patch by somebody else; without its last finalizer, what is being deleted goes."""
        found = self._objects.get(ref)
        if found is None:
            raise KeyError(f"there is no {ref.title} to edit")
        after = edited_by(found, patch, manager)
        if after == found:
            return
        metadata = after["metadata"]
        waits = after["kind"] == "Pod" or metadata.get("finalizers")
        self._write(Write(after, is_gone=bool(metadata.get("deletionTimestamp")) and not waits), manager)

    def get(self, ref: Ref) -> Object | None:
        """The object as it stands, never to be changed; the uid of the ref is not minded."""
        return self._objects.get(ref)

    def at(self, key: Key) -> Object | None:
        """The same by its key."""
        return self._objects.at(key)

    def kinds(self) -> tuple[str, ...]:
        """The kinds of which there is or was something, in order."""
        return self._objects.kinds()

    def of(self, kind: str) -> Iterable[Object]:
        """All objects of a kind, in the order in which they were made."""
        return self._objects.of(kind)

    def subscribe(self, listener: Listener, *kinds: str) -> None:
        """Tells of each write of these kinds (of all, if none is named) from now on, whoever writes, at once: to keep
        figures by, never to write."""
        self._subscribers.append((listener, kinds))
        self._listeners.clear()

    def remove(self, ref: Ref, manager: str = "") -> None:
        """Gone at once, finalizers or not."""
        if (found := self._objects.get(ref)) is not None:
            self._write(Write(found, is_gone=True), manager)

    def delete(self, ref: Ref, manager: str = "", grace_seconds: int | None = None) -> None:
        """Deleted by somebody else: finalizers and pods on nodes are waited for. What is going already goes on so,
        unless it is given less time now."""
        found = self._objects.get(ref)
        if found is None or (found["metadata"].get("deletionTimestamp") and grace_seconds is None):
            return
        asked = (found.get("spec") or {}).get("terminationGracePeriodSeconds", GRACE_SECONDS)
        grace = grace_seconds if grace_seconds is not None else asked
        write = begin_deletion(found, self.now, grace if ref.kind == "Pod" else 0)
        if write.is_gone or write.body is not found:
            self._write(write, manager)

    def evict(self, ref: Ref, manager: str = "", grace_seconds: int | None = None) -> WriteResult:
        """Asked to leave by somebody else, by the eviction API; says how it ended."""
        found = self._objects.get(ref)
        if found is None or found["metadata"].get("deletionTimestamp"):
            return DONE
        asked = (found.get("spec") or {}).get("terminationGracePeriodSeconds", GRACE_SECONDS)
        act = Evict(grace_seconds=grace_seconds if grace_seconds is not None else asked)
        effect = evicted(act, found, self._objects.of("PodDisruptionBudget"), self.now)
        if isinstance(effect, WriteResult):
            return effect
        for write in effect:
            self._write(write, manager)
        return DONE

    def observe(self) -> Observed:
        """The same object while nothing changes."""
        self._look()
        return self._simulated_observer.observed((), self.now)

    def read_object(self, key: Key) -> Any | None:
        """One object as it is read: the same that `observe` shows."""
        self._look()
        return self._simulated_observer.get(key)

    def known(self, resource_kind: ResourceKind, key: Key, body: Object) -> Any:
        """An object as it was read, if it is the one that was last looked at."""
        return self._simulated_observer.known(resource_kind, key, body)

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        """One by one, in their order. Nothing is done before it is walked."""
        turns = WriteOrder(decisions)
        while ready := turns.ready():
            for decision in ready:
                settled = self._carried_out(decision, fence)
                outcome = Outcome(decision.subject, verb_of(decision), settled.result, settled.detail)
                turns.ended(outcome)
                yield outcome
        yield from turns.left()

    def _carried_out(self, decision: Decision, fence: Fence) -> WriteResult:
        failure = self.failing.of(decision)
        if failure is not None and not failure.takes_effect:
            return failure.result
        effect = effect_of(decision, EffectContext(self._objects, self.now))
        if isinstance(effect, WriteResult):
            return effect
        writes, settled = (effect.writes, effect.settled) if isinstance(effect, Partly) else (effect, DONE)
        for write in writes:
            if not fence.holds():
                return NO_LONGER_OURS
            self._write(write, names.FIELD_MANAGER)
            self.on_write(Ref(*key_of(write.body)))
        return failure.result if failure is not None else settled

    def _look(self) -> None:
        for key in self._objects.take_changed():
            self._simulated_observer.take(key, self._objects.at(key))

    def _write(self, write: Write, by: str) -> Object:
        key = key_of(write.body)
        before = self._objects.at(key)
        stored = self._objects.write(write, self.now)
        written = ObjectWrite(key, before, None if write.is_gone else stored, by)
        listeners = self._listeners.get(key[0])
        if listeners is None:
            listeners = tuple(listener for listener, kinds in self._subscribers if not kinds or key[0] in kinds)
            self._listeners[key[0]] = listeners
        for each in listeners:
            each(written)
        return stored


def _nothing(written: Ref) -> None:
    """Nobody wants to know."""
