"""Simulated kubelets: pods start after a delay, run for their duration or deadline, and end within their grace period.

A pod whose kubelet is gone neither starts nor ends.
"""

from collections import Counter

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import RUN_SECONDS, SAVE_SECONDS, Key, ObjectWrite, condition, key_of, with_condition
from reconciler.simulate.stage import Stage

_FINISHED = frozenset({"Succeeded", "Failed"})


class KubeletTiming(msgspec.Struct, frozen=True):
    """Delays of a kubelet."""

    least_start_ms: int = 1_000
    most_start_ms: int = 10_000
    notice_ms: int = 500  # until a finished pod is noticed


class Kubelets:
    """All kubelets; their state is stored on the pods."""

    def __init__(self, pace: KubeletTiming | None = None) -> None:
        self._pace = pace or KubeletTiming()
        self.late_ms = 0  # additional delay

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = stage.engine.stream("kubelets")
        for body in stage.world.of("Pod"):
            self._noted(ObjectWrite(key_of(body), None, body))
        stage.world.subscribe(self._noted, "Pod")

    def resume(self, node: str) -> None:
        """The node's kubelet is back, and continues with its pods."""
        bodies = [each for each in self._stage.world.of("Pod") if (each.get("spec") or {}).get("nodeName") == node]
        for body in bodies:
            self._noted(ObjectWrite(key_of(body), None, body))

    def _noted(self, written: ObjectWrite) -> None:
        before, after = written.before, written.after
        if written.key[0] != "Pod" or after is None or not (node := after["spec"].get("nodeName")):
            return
        was_bound = before is not None and before["spec"].get("nodeName")
        if leaves_at := after["metadata"].get("deletionTimestamp"):
            if not (was_bound and before and before["metadata"].get("deletionTimestamp") == leaves_at):
                self._end_later(written.key, after)
        elif not was_bound:
            self._begin_later(written.key, after, node)
        elif (text := _evict_at(after)) and text != _evict_at(before):
            self._save_later(written.key, after, text)

    def _begin_later(self, key: Key, pod: Object, node: str) -> None:
        """The pod was just bound, or existed at the start of the simulation."""
        phase = (pod.get("status") or {}).get("phase", "Pending")
        uid, engine = pod["metadata"]["uid"], self._stage.engine
        if phase == "Running":
            began = pod["status"].get("startTime")
            self._run(key, pod, instant(began) if began else self._stage.now)
        elif phase not in _FINISHED:
            delay_ms = self._chance.randint(self._pace.least_start_ms, self._pace.most_start_ms) + self.late_ms
            engine.after(delay_ms, f"{key[1]}/{key[2]} starts on {node}", lambda: self._begin(key, uid))

    def _begin(self, key: Key, uid: str) -> None:
        pod = self._living(key, uid)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        now = self._stage.now
        conditions = [condition(each, "True", now) for each in ("PodScheduled", "Ready")]
        status = {"phase": "Running", "startTime": timestamp(now), "conditions": conditions}
        self._stage.world.edit(Ref(*key), {"status": status})
        self._run(key, pod, now)

    def _run(self, key: Key, pod: Object, began: Instant) -> None:
        """Until the pod completes or reaches its deadline."""
        self._finish_later(key, pod, began)
        seconds = pod["spec"].get("activeDeadlineSeconds")
        if seconds is not None:
            uid, due = pod["metadata"]["uid"], Instant(began + int(seconds) * 1_000)
            self._stage.engine.at(due, f"{key[1]}/{key[2]} reaches its deadline", lambda: self._stop(key, uid))

    def _stop(self, key: Key, uid: str) -> None:
        """The pod reached activeDeadlineSeconds."""
        pod = self._living(key, uid)
        if pod is None or pod["status"].get("phase") in _FINISHED:
            return
        now, why = self._stage.now, "DeadlineExceeded"
        conditions = [condition("PodScheduled", "True", now), condition("Ready", "False", now, "PodFailed")]
        message = "Pod was active on the node longer than the specified deadline"
        status = {"phase": "Failed", "reason": why, "message": message, "conditions": conditions}
        self._stage.world.edit(Ref(*key), {"status": status})

    def _save_later(self, key: Key, pod: Object, text: str) -> None:
        """The pod writes a checkpoint, and annotates itself."""
        seconds = pod["metadata"]["annotations"].get(SAVE_SECONDS)
        if seconds is None or (pod.get("status") or {}).get("phase") != "Running":
            return
        uid = pod["metadata"]["uid"]
        saved_at = Instant(self._stage.now + int(seconds) * 1_000)
        self._stage.engine.at(saved_at, f"{key[1]}/{key[2]} has saved its work", lambda: self._save(key, uid, text))

    def _save(self, key: Key, uid: str, text: str) -> None:
        pod = self._living(key, uid)
        if pod is not None and _evict_at(pod) == text and pod["status"].get("phase") == "Running":
            saved = {names.CHECKPOINTED_AT: timestamp(self._stage.now)}
            self._stage.world.edit(Ref(*key), {"metadata": {"annotations": saved}})

    def _finish_later(self, key: Key, pod: Object, began: Instant) -> None:
        seconds = (pod["metadata"].get("annotations") or {}).get(RUN_SECONDS)
        if seconds is None:
            return
        uid = pod["metadata"]["uid"]
        ends_at = Instant(began + int(seconds) * 1_000)
        self._stage.engine.at(ends_at, f"{key[1]}/{key[2]} is done", lambda: self._finish(key, uid))

    def _finish(self, key: Key, uid: str) -> None:
        pod = self._living(key, uid)
        if pod is None or pod["status"].get("phase") in _FINISHED:
            return
        now = self._stage.now
        conditions = [condition("PodScheduled", "True", now), condition("Ready", "False", now, "PodCompleted")]
        self._stage.world.edit(Ref(*key), {"status": {"phase": "Succeeded", "conditions": conditions}})

    def _end_later(self, key: Key, pod: Object) -> None:
        metadata = pod["metadata"]
        is_running = (pod.get("status") or {}).get("phase") == "Running"
        leaves_at = max(instant(metadata["deletionTimestamp"]), self._stage.now) if is_running else self._stage.now
        when = Instant(leaves_at + self._pace.notice_ms + self.late_ms)
        uid = metadata["uid"]
        self._stage.engine.at(when, f"{key[1]}/{key[2]} has ended", lambda: self._end(key, uid))

    def _end(self, key: Key, uid: str) -> None:
        if self._living(key, uid) is not None:
            self._stage.world.remove(Ref(*key))

    def _living(self, key: Key, uid: str) -> Object | None:
        """The same pod, if its kubelet is alive."""
        pod = self._stage.world.at(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return None
        node = pod["spec"].get("nodeName", "")
        is_gone = node in self._stage.silent_nodes or self._stage.world.at(("Node", "", node)) is None
        return None if is_gone else pod


def _evict_at(pod: Object | None) -> str:
    return str((((pod or {}).get("metadata") or {}).get("annotations") or {}).get(names.EVICT_AT, ""))


# --- Nodes whose machine or kubelet is gone: after a delay they are marked, then their pods are deleted.
#
# A node with a silent kubelet becomes unreachable after 40 s. Its pods are deleted when their tolerations of the taint
# end (`builtin_controllers.py`). Since no kubelet confirms the deletion, they stay Terminating until the Node object is
# deleted. The Node object is deleted with the NodeClaim of a dead machine; without a NodeClaim it stays. If only the
# kubelet is gone, the machine continues and the Node object stays.

MANAGER = "node-controller"
_UNREACHABLE = "node.kubernetes.io/unreachable"


class Delays(msgspec.Struct, frozen=True):
    """Delays after a death."""

    noticed_ms: int = 40_000
    collected_ms: int = 120_000


class Deaths:
    """The stage keeps which machines and kubelets are gone."""

    def __init__(self, delays: Delays | None = None) -> None:
        self._delays = delays or Delays()

    def start(self, stage: Stage) -> None:
        self._stage = stage
        stage.world.subscribe(self._noted, "Node")

    def kill(self, node: str) -> None:
        """Terminates the machine. Raises KeyError if there is no such node."""
        found = self._stage.world.at(("Node", "", node))
        if found is None:
            raise KeyError(f"the node {node} does not exist")
        self._stage.dead_nodes.add(node)
        self.silence(node)
        engine = self._stage.engine
        engine.after(self._delays.collected_ms, f"the dead machine of {node} is detected", lambda: self._collect(node))

    def silence(self, node: str) -> str:
        """Stops the kubelet; returns the uid of the node. Raises KeyError if there is no such node."""
        found = self._stage.world.at(("Node", "", node))
        if found is None:
            raise KeyError(f"the node {node} does not exist")
        uid: str = found["metadata"]["uid"]
        self._stage.silent_nodes.add(node)
        delay_ms = self._delays.noticed_ms
        self._stage.engine.after(delay_ms, f"{node} is unreachable", lambda: self._notice(node, uid))
        return uid

    def revive(self, node: str, uid: str) -> bool:
        """Restarts the kubelet if the node is the same and its machine is alive; returns whether it did."""
        world = self._stage.world
        found = world.at(("Node", "", node))
        if found is None or found["metadata"]["uid"] != uid or node in self._stage.dead_nodes:
            return False
        self._stage.silent_nodes.discard(node)
        ready = condition("Ready", "True", self._stage.now, "KubeletReady")
        taints = [each for each in found["spec"].get("taints") or () if each["key"] != _UNREACHABLE]
        patch = {"spec": {"taints": taints}, "status": {"conditions": with_condition(found, ready)}}
        world.edit(Ref("Node", "", node), patch, MANAGER)
        for pod in self._pods_on(node):
            if pod.status.phase == "Running":
                self._tell(pod, "True")
        return True

    def _noted(self, written: ObjectWrite) -> None:
        if written.key[0] == "Node" and written.after is None:
            self._stage.dead_nodes.discard(written.key[2])
            self._stage.silent_nodes.discard(written.key[2])

    def _notice(self, node: str, uid: str) -> None:
        world, now = self._stage.world, self._stage.now
        found = world.at(("Node", "", node))
        if found is None or found["metadata"]["uid"] != uid or node not in self._stage.silent_nodes:
            return
        taints = [each for each in found["spec"].get("taints") or () if each["key"] != _UNREACHABLE]
        taints += [{"key": _UNREACHABLE, "effect": each} for each in ("NoSchedule", "NoExecute")]
        taints[-1]["timeAdded"] = timestamp(now)
        silent = condition("Ready", "Unknown", now, "NodeStatusUnknown")
        patch = {"spec": {"taints": taints}, "status": {"conditions": with_condition(found, silent)}}
        world.edit(Ref("Node", "", node), patch, MANAGER)
        for pod in self._pods_on(node):
            self._tell(pod, "False")

    def _pods_on(self, node: str) -> tuple[Pod, ...]:
        fleet = self._stage.snapshot()
        return fleet.pods_of_row(fleet.rows.row_of[node])

    def _tell(self, pod: Pod, status: str) -> None:
        """Sets the pod's Ready condition."""
        world, ref = self._stage.world, Ref("Pod", pod.metadata.namespace, pod.name)
        body = world.get(ref)
        if body is None:
            return
        reason = "" if status == "True" else "NodeStatusUnknown"
        entries = condition("Ready", status, self._stage.now, reason)
        world.edit(ref, {"status": {"conditions": with_condition(body, entries)}}, MANAGER)

    def _collect(self, node: str) -> None:
        if node not in self._stage.dead_nodes:
            return
        world = self._stage.world
        for claim in [each for each in world.of("NodeClaim") if (each.get("status") or {}).get("nodeName") == node]:
            world.delete(Ref(*key_of(claim)), MANAGER)


# --- Nodes that are temporarily not ready while their kubelets run: nothing is scheduled there, and their pods do not
# count as healthy. If this lasts too long, their pods are deleted (`builtin_controllers.py`).
#
# Owner of the number of active lapses per node.

_NOT_READY = "node.kubernetes.io/not-ready"


class Lapses:
    """Lapses of all nodes."""

    def __init__(self) -> None:
        self._going_on: Counter[str] = Counter()  # by uid of the node

    def start(self, stage: Stage) -> None:
        self._stage = stage

    def begin(self, node: str) -> str:
        """Makes the node not ready; returns its uid. Raises KeyError if there is no such node."""
        found = self._stage.world.at(("Node", "", node))
        if found is None:
            raise KeyError(f"the node {node} does not exist")
        uid: str = found["metadata"]["uid"]
        self._going_on[uid] += 1
        if self._going_on[uid] == 1:
            self._tell(node, is_ready=False)
        return uid

    def end(self, node: str, uid: str) -> None:
        """Ends a lapse: the node is ready if it is the same, alive, and without other lapses."""
        self._going_on[uid] -= 1
        self._going_on = +self._going_on
        found = self._stage.world.at(("Node", "", node))
        is_same = found is not None and found["metadata"]["uid"] == uid
        if is_same and uid not in self._going_on and node not in self._stage.silent_nodes:
            self._tell(node, is_ready=True)

    def _tell(self, name: str, *, is_ready: bool) -> None:
        world, now = self._stage.world, self._stage.now
        node = world.at(("Node", "", name)) or {}
        kept = [each for each in (node.get("spec") or {}).get("taints") or () if each["key"] != _NOT_READY]
        added = [] if is_ready else [{"key": _NOT_READY, "effect": each} for each in ("NoSchedule", "NoExecute")]
        entries = condition("Ready", "True" if is_ready else "False", now, "KubeletReady" if is_ready else "NotReady")
        patch = {"spec": {"taints": [*kept, *added]}, "status": {"conditions": with_condition(node, entries)}}
        world.edit(Ref("Node", "", name), patch, MANAGER)
        snapshot = self._stage.snapshot()
        for pod in snapshot.pods_of_row(snapshot.rows.row_of[name]):
            self._tell_of(pod, is_ready)

    def _tell_of(self, pod: Pod, is_ready: bool) -> None:
        ref = Ref("Pod", pod.metadata.namespace, pod.name)
        body = self._stage.world.get(ref)
        if body is None or (body.get("status") or {}).get("phase") != "Running":
            return
        entries = condition("Ready", "True" if is_ready else "False", self._stage.now)
        self._stage.world.edit(ref, {"status": {"conditions": with_condition(body, entries)}}, MANAGER)
