"""Owner of the one what-if of a simulated cluster, and of which nodes and pods it has not been told of yet.

Pods come and go with nearly every event, so it is told of them one by one; whatever else predicates look at (volumes,
claims, namespaces) changes seldom, and is read as a whole.
"""

from typing import TypeVar

from reconciler.fleet.snapshot.diff import SnapshotDiff
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.simulate.garbage_collection import let_go
from reconciler.simulate.objects import Key, ObjectWrite
from reconciler.simulate.world import World

T = TypeVar("T")

# No predicate looks at these.
_IGNORED_KINDS = frozenset(
    {
        "ConfigMap",
        "DaemonSet",
        "Deployment",
        "Job",
        "NodeClaim",
        "NodePool",
        "PodDisruptionBudget",
        "ReplicaSet",
        "StatefulSet",
    }
)


class Following:
    """Follows a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._snapshot: Snapshot | None = None
        self._nodes: dict[Key, Node] = {}  # as the what-if has them
        self._pods: dict[Key, Pod] = {}
        self._changed: dict[Key, None] = {}
        self._rest: Observed | None = None  # all but nodes and pods; None: it changed
        world.subscribe(self._note)

    def snapshot(self) -> Snapshot:
        """As the world stands now."""
        if self._rest is None:
            self._rest = self._world.observe()
        if self._snapshot is None:
            return self._afresh()
        if self._changed or self._snapshot.observed is not self._rest:
            self._snapshot.advance(self._rest, self._taken())
        return self._snapshot

    def move_on(self) -> None:
        """Another hour, in which nobody has asked yet: whoever asks twice within one is not to get another what-if."""
        if self._snapshot is not None and self._snapshot.is_crowded:
            observed, self._snapshot = self._snapshot.observed, None
            let_go(observed)  # or, while somebody still has it, the next time: never more than one

    def _afresh(self) -> Snapshot:
        self._changed.clear()
        self._rest = self._world.observe()
        self._nodes = {("Node", "", each.name): each for each in self._rest.nodes}
        self._pods = {("Pod", each.metadata.namespace, each.name): each for each in self._rest.pods}
        self._snapshot = Snapshot(self._rest)
        return self._snapshot

    def _taken(self) -> SnapshotDiff:
        snapshot_diff = SnapshotDiff([], [], [], [])
        for key in self._changed:
            after = self._world.read_object(key)
            if key[0] == "Node":
                _note_down((self._nodes, snapshot_diff.gone_nodes, snapshot_diff.came_nodes), key, after)
            else:
                _note_down((self._pods, snapshot_diff.gone_pods, snapshot_diff.came_pods), key, after)
        self._changed.clear()
        return snapshot_diff

    def _note(self, written: ObjectWrite) -> None:
        kind = written.key[0]
        if kind in {"Node", "Pod"}:
            self._changed[written.key] = None
        elif kind not in _IGNORED_KINDS and (kind != "Lease" or _is_of_device(written)):
            self._rest = None


def _is_of_device(written: ObjectWrite) -> bool:
    """Leases of GPUs are owned by their nodes; those of leaders, which are renewed all the time, by nobody."""
    body = written.after or written.before or {}
    return bool(body["metadata"].get("ownerReferences"))


def _note_down(books: tuple[dict[Key, T], list[T], list[T]], key: Key, after: T | None) -> None:
    known, gone, came = books
    before = known.pop(key, None)
    if before is not None:
        gone.append(before)
    if after is not None:
        came.append(after)
        known[key] = after
