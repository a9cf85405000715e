"""Owner of which workloads are to be looked at again; each is, a little after something happened to it or its pods."""

from collections.abc import Sequence

from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.workloads.create_pod import take_down
from reconciler.simulate.actors.workloads.daemons import keep_daemon
from reconciler.simulate.actors.workloads.jobs import keep_job
from reconciler.simulate.actors.workloads.owned_pods import Kinship
from reconciler.simulate.actors.workloads.replicas import keep_ordinals, keep_replicas
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.stage import Stage

_KINDS = frozenset({"ReplicaSet", "StatefulSet", "Job", "DaemonSet"})
_DELAY_MS = 100


class Workloads:
    """The controllers of those kinds."""

    def __init__(self, delay_ms: int = _DELAY_MS) -> None:
        self._delay_ms = delay_ms
        self.late_ms = 0  # beside that
        self._kinship = Kinship(self._befallen)
        self._due: dict[Key, None] = {}

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._kinship.begin(stage.world.of("Pod"))
        for kind in sorted(_KINDS):
            for body in stage.world.of(kind):
                self._look_at(key_of(body))
        stage.world.subscribe(self._noted)

    def _noted(self, written: ObjectWrite) -> None:
        kind, before, after = written.key[0], written.before, written.after
        if kind == "Pod":
            self._kinship.note(written)
        elif kind in _KINDS:
            if after is None and before is not None:
                self._bereave(before["metadata"]["uid"])
            elif after is not None and (before is None or before["spec"] != after["spec"]):
                self._look_at(written.key)
        elif kind == "Node" and after is not None and _lets_others_in(before, after):
            for each in self._stage.world.of("DaemonSet"):
                self._keep_daemon_later(key_of(each), written.key)

    def _befallen(self, owner: Key, written: ObjectWrite) -> None:
        """Something happened to one of its pods."""
        if owner[0] != "DaemonSet":
            self._look_at(owner)
        elif written.after is None and written.before is not None:
            self._keep_daemon_later(owner, ("Node", "", written.before["spec"].get("nodeName", "")))

    def _look_at(self, owner: Key) -> None:
        if owner[0] not in _KINDS:
            return
        if not self._due:
            self._stage.engine.after(self._delay_ms + self.late_ms, "workloads are looked at", self._look)
        self._due[owner] = None

    def _look(self) -> None:
        due = tuple(self._due)
        self._due.clear()
        for key in due:
            owner = self._stage.world.at(key)
            if owner is not None and not owner["metadata"].get("deletionTimestamp"):
                self._keep(owner)

    def _keep(self, owner: Object) -> None:
        world, kin = self._stage.world, self._kinship.of(owner["metadata"]["uid"])
        match owner["kind"]:
            case "ReplicaSet":
                keep_replicas(world, owner, kin)
            case "StatefulSet":
                keep_ordinals(world, owner, kin)
            case "Job":
                keep_job(self._stage, owner, kin)
            case "DaemonSet":
                keep_daemon(world, owner, tuple(world.of("Node")), kin)

    def _keep_daemon_later(self, owner: Key, node: Key) -> None:
        name = f"{owner[2]} has its pod on {node[2]}"
        self._stage.engine.after(self._delay_ms + self.late_ms, name, lambda: self._keep_daemon(owner, node))

    def _keep_daemon(self, owner: Key, node: Key) -> None:
        found, there = self._stage.world.at(owner), self._stage.world.at(node)
        if found is not None and there is not None:
            keep_daemon(self._stage.world, found, (there,), self._kinship.of(found["metadata"]["uid"]))

    def _bereave(self, uid: str) -> None:
        """Its pods go after it."""
        if left := self._kinship.bereave(uid):
            self._stage.engine.after(
                self._delay_ms + self.late_ms, "pods go after their owner", lambda: self._take_down(left)
            )

    def _take_down(self, pods: Sequence[Key]) -> None:
        for key in pods:
            take_down(self._stage.world, key)


def _lets_others_in(before: Object | None, after: Object) -> bool:
    """Whether a DaemonSet might have a pod there now that had none."""
    if before is None or before["metadata"].get("labels") != after["metadata"].get("labels"):
        return True
    return bool((before.get("spec") or {}).get("taints") != (after.get("spec") or {}).get("taints"))
