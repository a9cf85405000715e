"""Owner of a simulated cluster: its objects and time. Verbs and refusals are those of a real API server.

Nothing happens by itself: there is no kubelet, Karpenter or scheduler; actors write with put, edit and remove. An
observation costs what has changed, plus a tuple per changed kind.
"""

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.kinds import ResourceKind
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Evict, Outcome, Ref, pod_ref
from reconciler.ports import Fence
from reconciler.protocol.preconditions import DONE, NO_LONGER_OURS, Object, WriteResult
from reconciler.protocol.write_order import WriteOrder, verb_of
from reconciler.simulate import api_server
from reconciler.simulate.api_server import Partly, admitted, evicted, failure_of
from reconciler.simulate.effects import edited_by, effect_of
from reconciler.simulate.objects import (
    Key,
    ObjectStore,
    ObjectWrite,
    Write,
    begin_deletion,
    condition,
    created,
    grace_seconds_of,
    is_leaving,
    key_of,
    ref_of,
    with_condition,
)
from reconciler.simulate.observer import SimulatedObserver

_BEGINNING = Instant(0)

Listener = Callable[[ObjectWrite], None]


class ProcessKilled(BaseException):
    """Raised by `on_write`: the process that writes was killed."""


class PodRefused(Exception):
    """The admission webhook refuses a pod; the message says why."""


class World(ObjectStore):
    """Deterministic and single-threaded.

    `on_write` is called with each object that a decision wrote; an exception in
    `on_write` ends the apply there, like a crash.
    """

    def __init__(
        self, now: Instant = _BEGINNING, cluster_uid: str = "world", own_namespace: str = names.OWN_NAMESPACE
    ) -> None:
        super().__init__(now)
        self.on_write: Callable[[Ref], None] = lambda _: None
        self.failing: Random | None = None  # while evictions fail: the chance of each failure
        self.webhook: Callable[[Object], Object] | None = None  # changes new pods, or raises PodRefused
        self.own_namespace = own_namespace  # the controller's namespace
        self._simulated_observer = SimulatedObserver(cluster_uid, own_namespace=own_namespace)
        self._subscribers: list[tuple[Listener, tuple[str, ...]]] = []
        self._listeners: dict[str, tuple[Listener, ...]] = {}  # by kind, in subscription order
        for name in ("default", "kube-system", own_namespace, names.SMART_PODS_NAMESPACE, names.LEASES_NAMESPACE):
            labels = {"kubernetes.io/metadata.name": name}
            self.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}})

    def put(self, manifest: Object, manager: str = "") -> Ref:
        """Creates or replaces an object, as another client; the Ref has its uid. Raises PodRefused.

        With a manager, field ownership is tracked.
        """
        body: Object = msgspec.json.decode(msgspec.json.encode(manifest))
        key = key_of(body)
        before, metadata = self.at(key), body["metadata"]
        if before is not None:
            kept = {key: before["metadata"][key] for key in ("uid", "creationTimestamp", "generation")}
            metadata = metadata | kept
        elif key[0] == "Pod":
            body = admitted(self.webhook(body) if self.webhook is not None else body, self)
        if manager:
            fields = api_server.entry(manager, "Update", api_server.fields_of(body))
            metadata = {**metadata, "managedFields": [fields]}
        stored = self._write(Write({**body, "metadata": metadata}), manager)
        return Ref(*key, stored["metadata"]["uid"])

    def edit(self, ref: Ref, patch: Object, manager: str = "") -> None:
        """A JSON merge patch by another client; an object that is being deleted goes with its last finalizer."""
        found = self.get(ref)
        if found is None:
            raise KeyError(f"{ref.title} does not exist")
        after = edited_by(found, patch, manager)
        if after == found:
            return
        waits = after["kind"] == "Pod" or after["metadata"].get("finalizers")
        self._write(Write(after, is_gone=is_leaving(after) and not waits), manager)

    def set_condition(self, body: Object, new: Object, manager: str = "") -> None:
        """Replaces the condition of the same type."""
        self.edit(ref_of(body), {"status": {"conditions": with_condition(body, new)}}, manager)

    def disrupt(self, pod: Pod, reason: str, manager: str) -> None:
        """Deletes the pod, if it is the same and not being deleted, with the condition DisruptionTarget."""
        body = self.get(pod_ref(pod))
        if body is None or body["metadata"]["uid"] != pod.metadata.uid or is_leaving(body):
            return
        self.set_condition(body, condition("DisruptionTarget", "True", self.now, reason), manager)
        self.delete(ref_of(body), manager)

    def follow(self, listener: Listener, *kinds: str) -> None:
        """Calls the listener with each existing object of these kinds, as if created, then subscribes it."""
        for kind in kinds:
            for body in self.of(kind):
                listener(created(body))
        self.subscribe(listener, *kinds)

    def subscribe(self, listener: Listener, *kinds: str) -> None:
        """Calls the listener with each write of these kinds, or of all if none is named.

        The call is synchronous, for any writer. A listener may update metrics, but must not write.
        """
        self._subscribers.append((listener, kinds))
        self._listeners.clear()

    def unsubscribe(self, listener: Listener) -> None:
        """Not during a write."""
        self._subscribers = [each for each in self._subscribers if each[0] != listener]
        self._listeners.clear()

    def remove(self, ref: Ref, manager: str = "") -> None:
        """Removes the object at once, ignoring finalizers."""
        if (found := self.get(ref)) is not None:
            self._write(Write(found, is_gone=True), manager)

    def delete(self, ref: Ref, manager: str = "", grace_seconds: int | None = None) -> None:
        """Deletion by another client: waits for finalizers and running pods.

        For an object that is being deleted, the grace period can only be shortened.
        """
        found = self.get(ref)
        if found is None or (is_leaving(found) and grace_seconds is None):
            return
        grace = grace_seconds if grace_seconds is not None else grace_seconds_of(found)
        write = begin_deletion(found, self.now, grace)
        if write.is_gone or write.body is not found:
            self._write(write, manager)

    def evict(self, ref: Ref, manager: str = "") -> WriteResult:
        """Eviction by another client through the eviction API; returns the result."""
        found = self.get(ref)
        if found is None or is_leaving(found):
            return DONE
        act = Evict(grace_seconds=grace_seconds_of(found))
        effect = evicted(act, found, self.of("PodDisruptionBudget"), self.now)
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
        """The decoded object, as in `observe`."""
        self._look()
        return self._simulated_observer.get(key)

    def known(self, resource_kind: ResourceKind, key: Key, body: Object) -> Any:
        """The decoded object, if it is of the last observed version."""
        return self._simulated_observer.known(resource_kind, key, body)

    def apply(self, decisions: Sequence[Decision], fence: Fence) -> Iterator[Outcome]:
        """Executes decisions in order, during iteration only."""
        turns = WriteOrder(decisions)
        while ready := turns.ready():
            for decision in ready:
                settled = self._carried_out(decision, fence)
                outcome = Outcome(decision.subject, verb_of(decision), settled.result, settled.detail)
                turns.ended(outcome)
                yield outcome
        yield from turns.left()

    def _carried_out(self, decision: Decision, fence: Fence) -> WriteResult:
        failure = failure_of(decision, self.failing) if self.failing is not None else None
        if failure is not None and not failure.takes_effect:
            return failure.result
        effect = effect_of(decision, self)
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
        for key in self._take_changed():
            self._simulated_observer.take(key, self.at(key))

    def _write(self, write: Write, by: str) -> Object:
        key = key_of(write.body)
        before, stored = self.at(key), self._store(write)
        written = ObjectWrite(key, before, None if write.is_gone else stored, by)
        listeners = self._listeners.get(key[0])
        if listeners is None:
            listeners = tuple(listener for listener, kinds in self._subscribers if not kinds or key[0] in kinds)
            self._listeners[key[0]] = listeners
        for each in listeners:
            each(written)
        return stored
