"""The kubelets: pods start some time after they are bound, run as long as they say or may, and end within their grace.

A pod whose kubelet is gone neither starts nor ends: nobody is there to say so.
"""

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.conditions import condition
from reconciler.simulate.marks import RUN_SECONDS, SAVE_SECONDS
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.stage import Stage

_FINISHED = frozenset({"Succeeded", "Failed"})


class KubeletTiming(msgspec.Struct, frozen=True):
    """How long things take a kubelet."""

    least_start_ms: int = 1_000
    most_start_ms: int = 10_000
    notice_ms: int = 500  # that a pod which has ended is to go


class Kubelets:
    """All of them; what they know stands on the pods."""

    def __init__(self, pace: KubeletTiming | None = None) -> None:
        self._pace = pace or KubeletTiming()
        self.late_ms = 0  # beside what things usually take

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._chance = stage.engine.stream("kubelets")
        for body in stage.world.of("Pod"):
            self._noted(ObjectWrite(key_of(body), None, body))
        stage.world.subscribe(self._noted, "Pod")

    def resume(self, node: str) -> None:
        """The kubelet of the node is back, and finds its pods as they are."""
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
        """It was bound, or was there before the simulation began."""
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
        """Until it is done, or has had its time."""
        self._finish_later(key, pod, began)
        seconds = pod["spec"].get("activeDeadlineSeconds")
        if seconds is not None:
            uid, due = pod["metadata"]["uid"], Instant(began + int(seconds) * 1_000)
            self._stage.engine.at(due, f"{key[1]}/{key[2]} has had its time", lambda: self._stop(key, uid))

    def _stop(self, key: Key, uid: str) -> None:
        """It has run for as long as it may."""
        pod = self._living(key, uid)
        if pod is None or pod["status"].get("phase") in _FINISHED:
            return
        now, why = self._stage.now, "DeadlineExceeded"
        conditions = [condition("PodScheduled", "True", now), condition("Ready", "False", now, "PodFailed")]
        message = "Pod was active on the node longer than the specified deadline"
        status = {"phase": "Failed", "reason": why, "message": message, "conditions": conditions}
        self._stage.world.edit(Ref(*key), {"status": status})

    def _save_later(self, key: Key, pod: Object, text: str) -> None:
        """What runs there saves its work, and says so on its pod."""
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
        """The same pod, if somebody is there who could do something about it."""
        pod = self._stage.world.at(key)
        if pod is None or pod["metadata"]["uid"] != uid:
            return None
        node = pod["spec"].get("nodeName", "")
        is_gone = node in self._stage.silent_nodes or self._stage.world.at(("Node", "", node)) is None
        return None if is_gone else pod


def _evict_at(pod: Object | None) -> str:
    return str((((pod or {}).get("metadata") or {}).get("annotations") or {}).get(names.EVICT_AT, ""))
