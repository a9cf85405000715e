"""Built-in controllers: pod garbage collection, taint eviction, and PodDisruptionBudgets."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from reconciler.fleet.filters.node import tolerated
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import instant
from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.workloads import READY, how, owner_of
from reconciler.simulate.objects import (
    Key,
    ObjectWrite,
    is_finished,
    is_leaving,
    labels_of,
    node_of,
    ref_of,
    taints_of,
)
from reconciler.simulate.stage import Batch, Stage

# --- Garbage collection: pods of deleted nodes, Leases of deleted nodes, and pods that finished long ago.
#
# Owner of the pods on each node, and of finished pods, in order of completion.

POD_GARBAGE_COLLECTOR = "pod-garbage-collector"
_DELAY_MS = 40_000
_MOST_ENDED = 12_500  # number of finished pods that are kept


class Collector:
    def __init__(self) -> None:
        self._on: dict[str, dict[Key, None]] = {}
        self._ended: dict[Key, None] = {}

    def start(self, stage: Stage) -> None:
        self._stage = stage
        stage.world.follow(self._noted, "Node", "Pod")
        for name in tuple(self._on):
            if stage.world.at(("Node", "", name)) is None:
                self._collect_later(name)

    def _noted(self, written: ObjectWrite) -> None:
        kind, before, after = written.key[0], written.before, written.after
        if kind == "Node" and after is None:
            self._collect_later(written.key[2])
        if kind != "Pod":
            return
        if (was := node_of(before)) != (now := node_of(after)):
            self._move(written.key, was, now)
        if after is None:
            self._ended.pop(written.key, None)
        elif is_finished(after) and written.key not in self._ended:
            self._ended[written.key] = None
            if len(self._ended) > _MOST_ENDED:
                self._stage.engine.after(0, "an old finished pod is deleted", self._clear_oldest)

    def _move(self, key: Key, was: str, now: str) -> None:
        if was and (there := self._on.get(was)) is not None:
            there.pop(key, None)
            if not there:
                del self._on[was]
        if now:
            self._on.setdefault(now, {})[key] = None

    def _collect_later(self, node: str) -> None:
        self._stage.engine.after(_DELAY_MS, f"objects of {node} are collected", lambda: self._collect(node))

    def _collect(self, node: str) -> None:
        world = self._stage.world
        if world.at(("Node", "", node)) is not None:
            return  # a new node of the same name exists
        for key in tuple(self._on.get(node, ())):
            world.remove(Ref(*key), POD_GARBAGE_COLLECTOR)
        for lease in [each for each in world.of("Lease") if _belongs_to(each, node)]:
            world.remove(ref_of(lease), POD_GARBAGE_COLLECTOR)

    def _clear_oldest(self) -> None:
        if len(self._ended) > _MOST_ENDED:
            self._stage.world.remove(Ref(*next(iter(self._ended))), POD_GARBAGE_COLLECTOR)


def _belongs_to(body: Object, node: str) -> bool:
    owners = body["metadata"].get("ownerReferences") or ()
    return any((each.get("kind"), each.get("name")) == ("Node", node) for each in owners)


# --- Taint eviction: pods that do not tolerate a NoExecute taint of their node are deleted, immediately or after
# tolerationSeconds.
#
# Owner of the scheduled deletions; when one is due, the taint is checked again.

TAINT_EVICTION_CONTROLLER = "taint-eviction-controller"
_WHY = "DeletionByTaintManager"
_TAINTS_DELAY_MS = 100
_NO_EXECUTE = "NoExecute"
_BORNE_BY_ALL_SECONDS = 300  # admission adds tolerations with this duration unless the pod has its own
_BORNE_BY_ALL = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class TaintEvictionController:
    def __init__(self) -> None:
        self._due_at: dict[str, int] = {}  # uid of a pod -> time

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._touched = Batch(stage.engine, "untolerated taints are checked", self._look, _TAINTS_DELAY_MS)
        stage.world.follow(self._noted, "Node", "Pod")

    def _noted(self, written: ObjectWrite) -> None:
        kind, before, after = written.key[0], written.before, written.after
        if kind == "Pod" and after is None and before is not None:
            self._due_at.pop(before["metadata"]["uid"], None)
        node = _node_of(written)
        if node is not None and (kind == "Node" or _drives_out(self._stage.world.at(node))):
            self._touched.note(node)

    def _look(self, touched: Sequence[Key]) -> None:
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
            self._stage.world.disrupt(pod, _WHY, TAINT_EVICTION_CONTROLLER)
        elif uid not in self._due_at:
            self._due_at[uid] = due_at = self._stage.now + seconds * 1_000
            what = f"{pod.title} has reached the end of its tolerationSeconds"
            self._stage.engine.after(seconds * 1_000, what, lambda: self._come_due(pod, due_at))

    def _come_due(self, pod: Pod, due_at: int) -> None:
        if self._due_at.get(pod.metadata.uid) != due_at:
            return
        del self._due_at[pod.metadata.uid]
        if self._borne_seconds(pod) is not None:
            self._stage.world.disrupt(pod, _WHY, TAINT_EVICTION_CONTROLLER)

    def _borne_seconds(self, pod: Pod) -> int | None:
        """How long the pod tolerates its node's current taints; None: forever."""
        node: Node | None = self._stage.world.read_object(("Node", "", pod.node))
        taints = [each for each in node.spec.taints if each.effect == _NO_EXECUTE] if node is not None else ()
        return _shortest(_borne_of(each, pod) for each in taints)


def _node_of(written: ObjectWrite) -> Key | None:
    """The node whose pods may have to be evicted: its taints have changed, or a pod was bound to it."""
    before, after = written.before, written.after
    if after is None:
        return None
    if written.key[0] == "Node":
        same = before is not None and before["spec"].get("taints") == after["spec"].get("taints")
        return None if same or not (_drives_out(before) or _drives_out(after)) else written.key
    on = node_of(after)
    return ("Node", "", on) if on and not node_of(before) else None


def _drives_out(node: Object | None) -> bool:
    return any(each["effect"] == _NO_EXECUTE for each in taints_of(node))


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


# --- Owner of the pods selected by each PodDisruptionBudget, and of the budget's status.
#
# As in the disruption controller: an evicted pod counts as gone immediately, though it still runs. Percentages and
# maxUnavailable refer to the replicas of the pods' owners; if an owner has no replica count, no disruption is allowed.

DISRUPTION_CONTROLLER = "disruption-controller"
_BUDGETS_DELAY_MS = 100
_BELIEVED_MS = 120_000  # how long an evicted pod is expected to terminate
_SCALELESS = frozenset({"DaemonSet", "Job", "Node"})


class _Meant:
    """The pods selected by one budget."""

    def __init__(self, budget: Object) -> None:
        selector = (budget.get("spec") or {}).get("selector")
        self.selector = None if selector is None else msgspec.convert(selector, LabelSelector)
        self.pods: dict[Key, tuple[bool, Key | None]] = {}  # whether the pod is healthy, and its owner
        self.healthy = 0
        self.owners: Counter[Key | None] = Counter()

    def put(self, key: Key, pod: Object | None) -> bool:
        """Returns whether anything has changed."""
        before = self.pods.pop(key, None)
        owner = owner_of(pod) if pod is not None else None
        after = None if pod is None else (how(pod) == READY, owner[0] if owner else None)
        if before is not None:
            self.healthy -= before[0]
            self.owners[before[1]] -= 1
            if not self.owners[before[1]]:
                del self.owners[before[1]]
        if after is not None:
            self.pods[key] = after
            self.healthy += after[0]
            self.owners[after[1]] += 1
        return before != after

    def means(self, pod: Object) -> bool:
        return self.selector is not None and not is_finished(pod) and self.selector.matches(labels_of(pod))


class Budgets:
    def __init__(self) -> None:
        self._of: defaultdict[str, dict[Key, _Meant]] = defaultdict(dict)  # by namespace
        self._in: defaultdict[str, dict[Key, None]] = defaultdict(dict)  # pods by namespace

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._due = Batch(stage.engine, "disruption budgets are counted", self._tell, _BUDGETS_DELAY_MS)
        stage.world.follow(self._note_pod, "Pod")
        stage.world.follow(self._note_budget, "PodDisruptionBudget")

    def _note_pod(self, written: ObjectWrite) -> None:
        namespace = written.key[1]
        if written.after is None:
            self._in[namespace].pop(written.key, None)
        else:
            self._in[namespace][written.key] = None
        for key, meant in self._of[namespace].items():
            pod = written.after if written.after is not None and meant.means(written.after) else None
            if (pod is not None or written.key in meant.pods) and meant.put(written.key, pod):
                self._due.note(key)

    def _note_budget(self, written: ObjectWrite) -> None:
        namespace = written.key[1]
        if written.after is None:
            self._of[namespace].pop(written.key, None)
            return
        if written.before is not None and written.before.get("spec") == written.after.get("spec"):
            return
        meant = self._of[namespace][written.key] = _Meant(written.after)
        for key in self._in[namespace]:
            pod = self._stage.world.at(key)
            if pod is not None and meant.means(pod):
                meant.put(key, pod)
        self._due.note(written.key)

    def _tell(self, due: Sequence[Key]) -> None:
        for key in due:
            budget, meant = self._stage.world.at(key), self._of[key[1]].get(key)
            if budget is not None and meant is not None:
                status = self._status(budget, meant)
                # A merge patch would keep pods that are no longer listed.
                gone = dict.fromkeys(_recorded_disruptions(budget).keys() - status.get("disruptedPods", {}).keys())
                if "disruptedPods" in status:
                    status["disruptedPods"] |= gone
                self._stage.world.edit(Ref(*key), {"status": status}, DISRUPTION_CONTROLLER)

    def _status(self, budget: Object, meant: _Meant) -> dict[str, Any]:
        found = self._wanted(budget.get("spec") or {}, meant)
        if found is None:
            return {"disruptionsAllowed": 0}
        expected, desired = found
        awaited = self._awaited(budget, meant)
        healthy = meant.healthy - sum(meant.pods[key][0] for key in awaited)
        return {
            "observedGeneration": budget["metadata"]["generation"],
            "disruptionsAllowed": max(0, healthy - desired) if expected else 0,
            "currentHealthy": healthy,
            "desiredHealthy": desired,
            "expectedPods": expected,
            "disruptedPods": {key[2]: when for key, when in awaited.items()},
        }

    def _awaited(self, budget: Object, meant: _Meant) -> dict[Key, str]:
        """Evicted pods that have not terminated yet: they count as gone for a limited time."""
        result: dict[Key, str] = {}
        for name, when in _recorded_disruptions(budget).items():
            key = ("Pod", budget["metadata"]["namespace"], name)
            pod = self._stage.world.at(key) if key in meant.pods else None
            if pod is not None and not is_leaving(pod) and instant(when) + _BELIEVED_MS >= self._stage.now:
                result[key] = when
        return result

    def _wanted(self, spec: Object, meant: _Meant) -> tuple[int, int] | None:
        """Expected number of pods, and desired number of healthy ones; None: the controller cannot determine them."""
        least, most = spec.get("minAvailable"), spec.get("maxUnavailable")
        if isinstance(least, int):
            return len(meant.pods), least
        if any(owner is not None and owner[0] in _SCALELESS for owner in meant.owners):
            return None
        expected = sum(self._expected(meant))
        if least is not None:
            return expected, _share(least, expected)
        away = most if isinstance(most, int) else _share(most, expected) if most is not None else 0
        return expected, max(0, expected - away)

    def _expected(self, meant: _Meant) -> Iterator[int]:
        """For each owner; pods without an owner are not expected."""
        for owner, count in meant.owners.items():
            if owner is not None:
                body = self._stage.world.at(owner)
                yield int(body["spec"].get("replicas", 1)) if body is not None else count


def _recorded_disruptions(budget: Object) -> dict[str, str]:
    result: dict[str, str] = (budget.get("status") or {}).get("disruptedPods") or {}
    return result


def _share(percent: str, of: int) -> int:
    """Rounded up, as in the controller."""
    return -(-int(percent.rstrip("%")) * of // 100)
