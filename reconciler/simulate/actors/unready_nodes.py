"""Nodes that are not ready for a while, though their kubelets go on: nothing is placed there, and nobody counts on what
runs there. Once they bear it for too long their pods are deleted (`taints.py`).

Owner of how many lapses of each node go on.
"""

from collections import Counter

from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.action import Ref
from reconciler.simulate.actors.conditions import condition, with_condition
from reconciler.simulate.stage import Stage

MANAGER = "node-controller"
_NOT_READY = "node.kubernetes.io/not-ready"


class Lapses:
    """Of all nodes."""

    def __init__(self) -> None:
        self._going_on: Counter[str] = Counter()  # by uid of the node

    def start(self, stage: Stage) -> None:
        self._stage = stage

    def begin(self, node: str) -> str:
        """It is not ready from now on; gives the uid of the node. Raises KeyError where there is none of that name."""
        found = self._stage.world.at(("Node", "", node))
        if found is None:
            raise KeyError(f"there is no node {node} that could be not ready")
        uid: str = found["metadata"]["uid"]
        self._going_on[uid] += 1
        if self._going_on[uid] == 1:
            self._tell(node, is_ready=False)
        return uid

    def end(self, node: str, uid: str) -> None:
        """It is ready again, if it is the same, it is alive, and no other lapse goes on."""
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
