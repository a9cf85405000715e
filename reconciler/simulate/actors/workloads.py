"""Workload controllers: ReplicaSets, StatefulSets, Jobs and DaemonSets."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from reconciler.fleet.filters.node import untolerated
from reconciler.fleet.node_terms import readable, term_holds
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import PodSpec, Toleration
from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import (
    Key,
    ObjectWrite,
    condition,
    is_leaving,
    key_of,
    node_of,
    phase_of,
    ref_of,
    says,
    taints_of,
)
from reconciler.simulate.stage import Batch, Stage
from reconciler.simulate.world import PodRefused, World

# --- Writes of controllers: creating a pod from a template, and deleting a pod.

MANAGER = "kube-controller-manager"


def pod_of(owner: Object, name: str, node: str = "") -> Object:
    """A pod of the owner's template; with a node, it is created bound."""
    metadata, template = owner["metadata"], owner["spec"]["template"]
    marks = template.get("metadata") or {}
    reference = {"apiVersion": owner["apiVersion"], "kind": owner["kind"], "controller": True}
    head = {
        "name": name,
        "namespace": metadata["namespace"],
        "labels": marks.get("labels") or {},
        "annotations": marks.get("annotations") or {},
        "ownerReferences": [reference | {key: metadata[key] for key in ("name", "uid")}],
    }
    bound = {"nodeName": node} if node else {}
    spec = {"schedulerName": "default-scheduler", **template["spec"], **bound}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec, "status": {"phase": "Pending"}}


def take_down(world: World, key: Key) -> None:
    world.delete(Ref(*key), MANAGER)


# --- Owner of each workload's pods and their numbers by state, so that updates need no iteration.

WAITING, RUNNING, READY, LEAVING, SUCCEEDED, FAILED = "waiting", "running", "ready", "leaving", "succeeded", "failed"
ACTIVE = (WAITING, RUNNING, READY)


def owner_of(pod: Object) -> tuple[Key, str] | None:
    """The key and uid of its controller."""
    metadata = pod["metadata"]
    for each in metadata.get("ownerReferences") or ():
        if each.get("controller"):
            namespace = "" if each["kind"] == "Node" else metadata.get("namespace", "")
            return (each["kind"], namespace, each["name"]), each.get("uid", "")
    return None


def how(pod: Object) -> str:
    """The pod's state, one of those above."""
    phase = phase_of(pod)
    if phase in {"Succeeded", "Failed"}:
        return SUCCEEDED if phase == "Succeeded" else FAILED
    if is_leaving(pod):
        return LEAVING
    if phase != "Running":
        return WAITING
    return READY if says(pod, "Ready") else RUNNING


class Kin:
    def __init__(self) -> None:
        self.pods: dict[Key, str] = {}  # state of each pod
        self.counts = dict.fromkeys((*ACTIVE, LEAVING, SUCCEEDED, FAILED), 0)
        self.made = 0  # number of names used

    @property
    def active(self) -> int:
        """Number of pods that run or will run."""
        return sum(self.counts[each] for each in ACTIVE)

    def that_are(self, ways: Iterable[str]) -> Iterator[Key]:
        """In order of states, then of creation."""
        for way in ways:
            if self.counts[way]:
                yield from [key for key, each in self.pods.items() if each == way]

    def put(self, key: Key, way: str | None) -> None:
        """None: the pod is gone."""
        before = self.pods.pop(key, None) if way is None else self.pods.get(key)
        if before is not None:
            self.counts[before] -= 1
        if way is not None:
            self.pods[key] = way
            self.counts[way] += 1


class Kinship:
    """All workloads; returns those affected by a write."""

    def __init__(self, on_change: Callable[[Key, ObjectWrite], None]) -> None:
        self._on_change = on_change
        self._of: dict[str, Kin] = {}  # by uid of the owner
        self._bereaved: set[str] = set()  # uids of deleted owners that still have pods

    def of(self, uid: str) -> Kin:
        kin = self._of.get(uid)
        if kin is None:
            kin = self._of[uid] = Kin()
        return kin

    def bereave(self, uid: str) -> tuple[Key, ...]:
        """The owner was deleted; returns its remaining pods."""
        left = tuple(self.of(uid).pods)
        self._bereaved.add(uid)
        self._forget_if_done(uid)
        return left

    def note(self, written: ObjectWrite) -> None:
        body = written.after or written.before
        owner = owner_of(body) if body else None
        if owner is None:
            return
        key, uid = owner
        kin, way = self.of(uid), how(written.after) if written.after else None
        if kin.pods.get(written.key) != way:
            kin.put(written.key, way)
            self._on_change(key, written)
        self._forget_if_done(uid)

    def _forget_if_done(self, uid: str) -> None:
        if uid in self._bereaved and not self._of[uid].pods:
            self._bereaved.discard(uid)
            del self._of[uid]


# --- DaemonSets: one pod on each suitable node, bound directly.

# Tolerations of DaemonSet pods for node conditions.
_BORNE = tuple(
    Toleration(f"node.kubernetes.io/{name}", "Exists")
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)


def keep_daemon(world: World, owner: Object, nodes: Iterable[Object], kin: Kin) -> None:
    # Identified by node: pods of an observed cluster have names of their own.
    served = {node_of(world.at(key)) for key in kin.pods}
    for node in nodes:
        there = node["metadata"]["name"]
        if there not in served and _may_be_on(owner, node):
            world.put(pod_of(owner, f"{owner['metadata']['name']}-{there}", there), MANAGER)


def _may_be_on(owner: Object, node: Object) -> bool:
    spec, there = msgspec.convert(owner["spec"]["template"]["spec"], PodSpec), msgspec.convert(node, Node)
    labels = there.metadata.labels
    if is_leaving(node) or any(labels.get(key) != value for key, value in spec.node_selector.items()):
        return False
    terms = spec.affinity.node_affinity.required if spec.affinity is not None else None
    if terms and not any(readable(term) and term_holds(term, there) for term in terms.node_selector_terms):
        return False
    return untolerated(there.spec.taints, (*spec.tolerations, *_BORNE)) is None


# --- Jobs: run pods until enough have succeeded; evicted or lost pods are restarted.


def keep_job(stage: Stage, owner: Object, kin: Kin) -> None:
    """Runs up to `parallelism` pods, and never more than the remaining completions."""
    world, spec = stage.world, owner["spec"]
    if says(owner, "Complete"):
        return
    at_once = int(spec.get("parallelism", 1))
    to_come = int(spec.get("completions", at_once)) - kin.counts[SUCCEEDED]
    if to_come <= 0:
        _complete(stage, owner, kin)
        return
    wanted = min(at_once, to_come)
    _fill(world, owner, kin, wanted)
    for key in list(kin.that_are(ACTIVE))[wanted:]:
        take_down(world, key)


def _complete(stage: Stage, owner: Object, kin: Kin) -> None:
    conditions = [condition("Complete", "True", stage.now)]
    status = {"succeeded": kin.counts[SUCCEEDED], "conditions": conditions}
    ref = Ref(*key_of(owner), owner["metadata"]["uid"])
    stage.world.edit(ref, {"status": status}, MANAGER)
    keeps_seconds = owner["spec"].get("ttlSecondsAfterFinished")
    if keeps_seconds is not None:
        stage.engine.after(int(keeps_seconds) * 1_000, f"{ref.title} is deleted", lambda: _clear(stage, ref))


def _clear(stage: Stage, ref: Ref) -> None:
    found = stage.world.get(ref)
    if found is not None and found["metadata"]["uid"] == ref.uid:
        stage.world.delete(ref, MANAGER)


# --- ReplicaSets and StatefulSets: keep the desired number of pods; terminating and finished pods do not count.


def keep_replicas(world: World, owner: Object, kin: Kin) -> None:
    """Creates missing pods; deletes surplus ones, least active first, then youngest."""
    wanted = _wanted(owner)
    _fill(world, owner, kin, wanted)
    surplus = kin.active - wanted
    if surplus > 0:
        order = [key for way in (WAITING, RUNNING, READY) for key in reversed(list(kin.that_are((way,))))]
        for key in order[:surplus]:
            take_down(world, key)
    _tell(world, owner, kin)


def keep_ordinals(world: World, owner: Object, kin: Kin) -> None:
    """Manages numbered pods of a StatefulSet.

    A pod is replaced only once its predecessor is gone. Pods are created one after another when ready, and deleted
    one after another, unless podManagementPolicy is Parallel.
    """
    for key in list(kin.that_are((SUCCEEDED, FAILED))):
        take_down(world, key)
    in_turn = owner["spec"].get("podManagementPolicy") != "Parallel"
    wanted = _wanted(owner)
    if len(kin.pods) < wanted:
        _fill_up(world, owner, in_turn)
    surplus = sorted((key for key in kin.pods if _ordinal(key) >= wanted), key=_ordinal, reverse=True)
    if not (in_turn and any(kin.pods[key] == LEAVING for key in surplus)):
        for key in surplus[:1] if in_turn else surplus:
            take_down(world, key)
    _tell(world, owner, kin)


def _fill_up(world: World, owner: Object, in_turn: bool) -> None:
    name, namespace = owner["metadata"]["name"], owner["metadata"]["namespace"]
    for number in range(_wanted(owner)):
        pod = world.at(("Pod", namespace, f"{name}-{number}"))
        if pod is None:
            world.put(pod_of(owner, f"{name}-{number}"), MANAGER)
        if in_turn and (pod is None or how(pod) != READY):
            return


def _ordinal(key: Key) -> int:
    return int(key[2].rpartition("-")[2])


def _fill(world: World, owner: Object, kin: Kin, wanted: int) -> None:
    """Creates pods with names that the owner has not used yet."""
    metadata = owner["metadata"]
    while kin.active < wanted:
        kin.made += 1
        name = f"{metadata['name']}-{kin.made:05}"
        if world.at(("Pod", metadata["namespace"], name)) is None:
            world.put(pod_of(owner, name), MANAGER)


def _wanted(owner: Object) -> int:
    replicas = owner["spec"].get("replicas")
    return 1 if replicas is None else int(replicas)


def _tell(world: World, owner: Object, kin: Kin) -> None:
    status = {"replicas": kin.active, "readyReplicas": kin.counts[READY]}
    current = owner.get("status") or {}
    if any(current.get(key, 0) != value for key, value in status.items()):
        world.edit(ref_of(owner), {"status": status}, MANAGER)


# --- Owner of the queue of workloads to reconcile, each with a delay after a change of the workload or its pods.

_KINDS = frozenset({"ReplicaSet", "StatefulSet", "Job", "DaemonSet"})
_DELAY_MS = 100
_REFUSED_MS = 10_000  # until a pod that admission refused is created again


class Workloads:
    def __init__(self) -> None:
        self.late_ms = 0  # additional delay
        self._kinship = Kinship(self._befallen)

    def start(self, stage: Stage) -> None:
        self._stage = stage
        self._due = Batch(stage.engine, "workloads are reconciled", self._look, _DELAY_MS)
        stage.world.follow(self._kinship.note, "Pod")
        stage.world.follow(self._noted, *sorted(_KINDS))
        stage.world.subscribe(self._node_noted, "Node")

    def _noted(self, written: ObjectWrite) -> None:
        before, after = written.before, written.after
        if after is None and before is not None:
            self._bereave(before["metadata"]["uid"])
        elif after is not None and (before is None or before["spec"] != after["spec"]):
            self._look_at(written.key)

    def _node_noted(self, written: ObjectWrite) -> None:
        """A DaemonSet might now place a pod there."""
        if written.after is not None and (
            written.before is None
            or written.before["metadata"].get("labels") != written.after["metadata"].get("labels")
            or taints_of(written.before) != taints_of(written.after)
        ):
            for each in self._stage.world.of("DaemonSet"):
                self._keep_daemon_later(key_of(each), written.key)

    def _befallen(self, owner: Key, written: ObjectWrite) -> None:
        if owner[0] != "DaemonSet":
            self._look_at(owner)
        elif written.after is None and written.before is not None:
            self._keep_daemon_later(owner, ("Node", "", node_of(written.before)))

    def _look_at(self, owner: Key) -> None:
        if owner[0] in _KINDS:
            self._due.note(owner, self.late_ms)

    def _look(self, due: Sequence[Key]) -> None:
        for key in due:
            owner = self._stage.world.at(key)
            if owner is not None and not is_leaving(owner):
                try:
                    self._keep(owner)
                except PodRefused:
                    self._due.note(key, _REFUSED_MS)

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
        self._stage.engine.after(_DELAY_MS + self.late_ms, name, lambda: self._keep_daemon(owner, node))

    def _keep_daemon(self, owner: Key, node: Key) -> None:
        found, there = self._stage.world.at(owner), self._stage.world.at(node)
        if found is not None and there is not None:
            try:
                keep_daemon(self._stage.world, found, (there,), self._kinship.of(found["metadata"]["uid"]))
            except PodRefused:
                self._look_at(owner)

    def _bereave(self, uid: str) -> None:
        left, delay_ms = self._kinship.bereave(uid), _DELAY_MS + self.late_ms

        def take_down_left() -> None:
            for key in left:
                take_down(self._stage.world, key)

        if left:
            self._stage.engine.after(delay_ms, "pods of a deleted owner are deleted", take_down_left)
