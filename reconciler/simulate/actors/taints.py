"""Pods that do not bear a NoExecute taint of their node are deleted: at once, or when they have borne it long enough.

Owner of the deletions that are to come; one that comes due looks again whether the taint is still there.
"""

from collections.abc import Iterable, Sequence

from reconciler.fleet.filters.taints import tolerated
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.conditions import condition, with_condition
from reconciler.simulate.objects import Key, ObjectWrite, key_of
from reconciler.simulate.stage import Stage

MANAGER = "taint-eviction-controller"
_DELAY_MS = 100
_NO_EXECUTE = "NoExecute"
_BORNE_BY_ALL_SECONDS = 300  # admission makes each pod bear these for so long, unless it says otherwise
_BORNE_BY_ALL = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class TaintEvictionController:
    """For all nodes."""

    def __init__(self) -> None:
        self._touched: dict[Key, None] = {}
        self._due_at: dict[str, int] = {}  # uid of a pod -> when

    def start(self, stage: Stage) -> None:
        self._stage = stage
        for body in stage.world.of("Node"):
            self._noted(ObjectWrite(key_of(body), None, body))
        stage.world.subscribe(self._noted, "Node", "Pod")

    def _noted(self, written: ObjectWrite) -> None:
        kind, before, after = written.key[0], written.before, written.after
        if kind == "Pod" and after is None and before is not None:
            self._due_at.pop(before["metadata"]["uid"], None)
        node = _node_of(written)
        if node is not None and (kind == "Node" or _drives_out(self._stage.world.at(node))):
            if not self._touched:
                self._stage.engine.after(_DELAY_MS, "pods that do not bear a taint are looked for", self._look)
            self._touched[node] = None

    def _look(self) -> None:
        touched = tuple(self._touched)
        self._touched.clear()
        fleet = self._stage.snapshot()
        for _, _, name in touched:
            row = fleet.rows.row_of.get(name)
            for pod in fleet.pods_of_row(row) if row is not None else ():
                self._judge(pod)

    def _judge(self, pod: Pod) -> None:
        seconds = self._borne_seconds(pod)
        uid = pod.metadata.uid
        if pod.metadata.leaving or seconds is None:
            self._due_at.pop(uid, None)
        elif seconds == 0:
            self._delete(pod)
        elif uid not in self._due_at:
            self._due_at[uid] = due_at = self._stage.now + seconds * 1_000
            what = f"{pod.title} has borne a taint for long enough"
            self._stage.engine.after(seconds * 1_000, what, lambda: self._come_due(pod, due_at))

    def _come_due(self, pod: Pod, due_at: int) -> None:
        if self._due_at.get(pod.metadata.uid) != due_at:
            return
        del self._due_at[pod.metadata.uid]
        if self._borne_seconds(pod) is not None:
            self._delete(pod)

    def _borne_seconds(self, pod: Pod) -> int | None:
        """How long it bears the taints of its node as they are now; None: for ever."""
        node: Node | None = self._stage.world.read_object(("Node", "", pod.node))
        taints = [each for each in node.spec.taints if each.effect == _NO_EXECUTE] if node is not None else ()
        return _shortest(_borne_of(each, pod) for each in taints)

    def _delete(self, pod: Pod) -> None:
        world, ref = self._stage.world, Ref("Pod", pod.metadata.namespace, pod.name)
        body = world.get(ref)
        if body is None or body["metadata"]["uid"] != pod.metadata.uid or body["metadata"].get("deletionTimestamp"):
            return
        entries = condition("DisruptionTarget", "True", self._stage.now, "DeletionByTaintManager")
        world.edit(ref, {"status": {"conditions": with_condition(body, entries)}}, MANAGER)
        world.delete(ref, MANAGER)


def _node_of(written: ObjectWrite) -> Key | None:
    """The node whose pods may have to go: its taints are others, or a pod came to it."""
    before, after = written.before, written.after
    if after is None or written.key[0] not in {"Node", "Pod"}:
        return None
    if written.key[0] == "Node":
        same = before is not None and before["spec"].get("taints") == after["spec"].get("taints")
        return None if same or not (_drives_out(before) or _drives_out(after)) else written.key
    on = after["spec"].get("nodeName")
    return ("Node", "", on) if on and (before is None or not before["spec"].get("nodeName")) else None


def _drives_out(node: Object | None) -> bool:
    taints = (node.get("spec") or {}).get("taints") or () if node is not None else ()
    return any(each["effect"] == _NO_EXECUTE for each in taints)


def _borne_of(taint: NodeTaint, pod: Pod) -> int | None:
    bearing = [each for each in pod.spec.tolerations if tolerated(taint, (each,))]
    if not bearing:
        if taint.key not in _BORNE_BY_ALL:
            return 0
        return None if pod.is_daemon_or_mirror else _BORNE_BY_ALL_SECONDS
    return _shortest(each.toleration_seconds for each in bearing)


def _shortest(lengths: Iterable[int | None]) -> int | None:
    said: Sequence[int] = [each for each in lengths if each is not None]
    return max(0, min(said)) if said else None
