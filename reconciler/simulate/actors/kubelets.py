"""Simulated kubelets: pods start after a delay, run for their duration or deadline, and end within their grace period.

A pod whose kubelet is gone neither starts nor ends.
"""

from collections import Counter
from collections.abc import Sequence
from functools import partial

from reconciler.model import names
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import Ref, pod_ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import (
    RUN_SECONDS,
    SAVE_SECONDS,
    Key,
    ObjectWrite,
    annotations_of,
    condition,
    created,
    is_finished,
    is_leaving,
    node_of,
    phase_of,
    ref_of,
    taints_of,
    with_condition,
)
from reconciler.simulate.stage import Stage

_LEAST_START_MS, _MOST_START_MS = 1_000, 10_000
_NOTICE_MS = 500  # until a finished pod is noticed


class Kubelets:
    """All kubelets; their state is stored on the pods."""

    def __init__(self) -> None:
        self.late_ms = 0  # additional delay

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = stage.engine.stream("kubelets")
        stage.world.follow(self._noted, "Pod")

    def resume(self, node: str) -> None:
        """The node's kubelet is back, and continues with its pods."""
        for body in [each for each in self._stage.world.of("Pod") if node_of(each) == node]:
            self._noted(created(body))

    def _noted(self, written: ObjectWrite) -> None:
        key, before, after = written.key, written.before, written.after
        if after is None or not (node := node_of(after)):
            return
        was_bound = bool(node_of(before))
        if leaves_at := after["metadata"].get("deletionTimestamp"):
            if not (was_bound and before and before["metadata"].get("deletionTimestamp") == leaves_at):
                self._end_later(key, after)
        elif was_bound:
            self._save_later(key, before, after)
        elif phase_of(after) == "Running":
            began = after["status"].get("startTime")
            self._run(key, after, instant(began) if began else self._stage.now)
        elif not is_finished(after):
            delay_ms = self._chance.randint(_LEAST_START_MS, _MOST_START_MS) + self.late_ms
            uid = after["metadata"]["uid"]
            self._stage.engine.after(delay_ms, f"{key[1]}/{key[2]} starts on {node}", lambda: self._begin(key, uid))

    def _begin(self, key: Key, uid: str) -> None:
        pod = self._living(key, uid)
        if pod is None or is_leaving(pod):
            return
        now = self._stage.now
        conditions = [condition(each, "True", now) for each in ("PodScheduled", "Ready")]
        status = {"phase": "Running", "startTime": timestamp(now), "conditions": conditions}
        self._stage.world.edit(Ref(*key), {"status": status})
        self._run(key, pod, now)

    def _run(self, key: Key, pod: Object, began: Instant) -> None:
        """Until the pod completes or reaches its deadline."""
        run_seconds, deadline_seconds = annotations_of(pod).get(RUN_SECONDS), pod["spec"].get("activeDeadlineSeconds")
        if run_seconds is not None:
            finish = partial(self._finish, key, pod, "PodCompleted", {"phase": "Succeeded"})
            self._stage.engine.at(_after(began, run_seconds), f"{key[1]}/{key[2]} is done", finish)
        if deadline_seconds is not None:
            message = "Pod was active on the node longer than the specified deadline"
            status = {"phase": "Failed", "reason": "DeadlineExceeded", "message": message}
            what = f"{key[1]}/{key[2]} reaches its deadline"
            fail = partial(self._finish, key, pod, "PodFailed", status)
            self._stage.engine.at(_after(began, deadline_seconds), what, fail)

    def _finish(self, key: Key, pod: Object, reason: str, status: Object) -> None:
        living, now = self._living(key, pod["metadata"]["uid"]), self._stage.now
        if living is not None and not is_finished(living):
            conditions = [condition("PodScheduled", "True", now), condition("Ready", "False", now, reason)]
            self._stage.world.edit(Ref(*key), {"status": {**status, "conditions": conditions}})

    def _save_later(self, key: Key, before: Object | None, pod: Object) -> None:
        """A pod that is notified of its eviction writes a checkpoint, and annotates itself."""
        annotations, uid = annotations_of(pod), pod["metadata"]["uid"]
        evict_at, seconds = annotations.get(names.EVICT_AT, ""), annotations.get(SAVE_SECONDS)
        is_notified = evict_at and evict_at != annotations_of(before).get(names.EVICT_AT, "")
        if not is_notified or seconds is None or phase_of(pod) != "Running":
            return

        def save() -> None:
            living = self._living(key, uid)
            is_asked = living is not None and annotations_of(living).get(names.EVICT_AT, "") == evict_at
            if living is not None and is_asked and phase_of(living) == "Running":
                saved = {names.CHECKPOINTED_AT: timestamp(self._stage.now)}
                self._stage.world.edit(Ref(*key), {"metadata": {"annotations": saved}})

        self._stage.engine.after(int(seconds) * 1_000, f"{key[1]}/{key[2]} has saved its work", save)

    def _end_later(self, key: Key, pod: Object) -> None:
        metadata, now = pod["metadata"], self._stage.now
        leaves_at = max(instant(metadata["deletionTimestamp"]), now) if phase_of(pod) == "Running" else now

        def end() -> None:
            if self._living(key, metadata["uid"]) is not None:
                self._stage.world.remove(Ref(*key))

        when = Instant(leaves_at + _NOTICE_MS + self.late_ms)
        self._stage.engine.at(when, f"{key[1]}/{key[2]} has ended", end)

    def _living(self, key: Key, uid: str) -> Object | None:
        """The same pod, if its kubelet is alive."""
        pod = self._stage.world.at(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return None
        node = node_of(pod)
        is_gone = node in self._stage.silent_nodes or self._stage.world.at(("Node", "", node)) is None
        return None if is_gone else pod


def _after(began: Instant, seconds: str | int) -> Instant:
    return Instant(began + int(seconds) * 1_000)


# --- Nodes that fail.
#
# A node with a silent kubelet becomes unreachable after 40 s. Its pods are deleted when their tolerations of the taint
# end (`builtin_controllers.py`). Since no kubelet confirms the deletion, they stay Terminating until the Node object is
# deleted. The Node object is deleted with the NodeClaim of a dead machine; without a NodeClaim it stays. If only the
# kubelet is gone, the machine continues and the Node object stays.
#
# In a lapse, a node is temporarily not ready while its kubelet runs: nothing is scheduled there, and its pods do not
# count as healthy. If this lasts too long, its pods are deleted as well.

MANAGER = "node-controller"
_UNREACHABLE, _NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
_NOTICED_MS = 40_000  # after a death
_COLLECTED_MS = 120_000


class NodeFailures:
    """Owner of the number of active lapses per node; the stage keeps which machines and kubelets are gone.

    Methods that name a node raise KeyError if it does not exist.
    """

    def __init__(self) -> None:
        self._lapses: Counter[str] = Counter()  # by uid of the node

    def start(self, stage: Stage) -> None:
        self._stage = stage
        stage.world.subscribe(self._noted, "Node")

    def kill(self, node: str) -> None:
        """Terminates the machine."""
        self.silence(node)
        self._stage.dead_nodes.add(node)
        what = f"the dead machine of {node} is detected"
        self._stage.engine.after(_COLLECTED_MS, what, lambda: self._collect(node))

    def silence(self, node: str) -> str:
        """Stops the kubelet; returns the uid of the node."""
        uid = self._uid(node)
        self._stage.silent_nodes.add(node)
        self._stage.engine.after(_NOTICED_MS, f"{node} is unreachable", lambda: self._notice(node, uid))
        return uid

    def revive(self, node: str, uid: str) -> bool:
        """Restarts the kubelet if the node is the same and its machine is alive; returns whether it did."""
        found = self._same(node, uid)
        if found is None or node in self._stage.dead_nodes:
            return False
        self._stage.silent_nodes.discard(node)
        self._set_ready(found, _UNREACHABLE, ("True", "KubeletReady"))
        return True

    def begin_lapse(self, node: str) -> str:
        """Makes the node not ready; returns its uid."""
        uid = self._uid(node)
        self._lapses[uid] += 1
        if self._lapses[uid] == 1 and (found := self._same(node, uid)):
            self._set_ready(found, _NOT_READY, ("False", "NotReady"), _both_effects(_NOT_READY))
        return uid

    def end_lapse(self, node: str, uid: str) -> None:
        """Ends a lapse: the node is ready if it is the same, alive, and without other lapses."""
        self._lapses[uid] -= 1
        self._lapses = +self._lapses
        found = self._same(node, uid)
        if found is not None and uid not in self._lapses and node not in self._stage.silent_nodes:
            self._set_ready(found, _NOT_READY, ("True", "KubeletReady"))

    def _uid(self, node: str) -> str:
        found = self._stage.world.at(("Node", "", node))
        if found is None:
            raise KeyError(f"the node {node} does not exist")
        return str(found["metadata"]["uid"])

    def _same(self, node: str, uid: str) -> Object | None:
        found = self._stage.world.at(("Node", "", node))
        return found if found is not None and found["metadata"]["uid"] == uid else None

    def _noted(self, written: ObjectWrite) -> None:
        if written.after is None:
            self._stage.dead_nodes.discard(written.key[2])
            self._stage.silent_nodes.discard(written.key[2])

    def _notice(self, node: str, uid: str) -> None:
        found = self._same(node, uid)
        if found is not None and node in self._stage.silent_nodes:
            taints = _both_effects(_UNREACHABLE)
            taints[-1]["timeAdded"] = timestamp(self._stage.now)
            self._set_ready(found, _UNREACHABLE, ("Unknown", "NodeStatusUnknown"), taints)

    def _set_ready(self, node: Object, key: str, ready: tuple[str, str], added: Sequence[Object] = ()) -> None:
        """Replaces the node's taints with the key; sets the Ready condition of the node and of its pods."""
        world, now, (status, reason) = self._stage.world, self._stage.now, ready
        others = [each for each in taints_of(node) if each["key"] != key]
        conditions = with_condition(node, condition("Ready", status, now, reason))
        patch = {"spec": {"taints": [*others, *added]}, "status": {"conditions": conditions}}
        world.edit(ref_of(node), patch, MANAGER)
        of_pods = condition("Ready", "True", now) if status == "True" else condition("Ready", "False", now)
        if status == "Unknown":
            of_pods["reason"] = reason
        snapshot = self._stage.snapshot()
        for pod in snapshot.pods_of_row(snapshot.rows.row_of[node["metadata"]["name"]]):
            body = world.get(pod_ref(pod))
            if body is not None and (status == "Unknown" or phase_of(body) == "Running"):
                world.set_condition(body, of_pods, MANAGER)

    def _collect(self, node: str) -> None:
        if node not in self._stage.dead_nodes:
            return
        world = self._stage.world
        for claim in [each for each in world.of("NodeClaim") if (each.get("status") or {}).get("nodeName") == node]:
            world.delete(ref_of(claim), MANAGER)


def _both_effects(key: str) -> list[Object]:
    return [{"key": key, "effect": each} for each in ("NoSchedule", "NoExecute")]
