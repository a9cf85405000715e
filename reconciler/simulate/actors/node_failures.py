"""Nodes whose machine or whose kubelet is gone: nobody notices at first, then their pods are given up.

A node whose kubelet is silent is told to be unreachable after 40 s. Its pods are deleted when they bear that taint no
longer (`taints.py`), which nobody on the node can confirm: they stay Terminating, and are gone only with the Node
object. That is deleted with the NodeClaim of a machine that is gone; a node that has none stays as it is. Where only
the kubelet is gone, the machine goes on and nobody deletes the Node object.
"""

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import timestamp
from reconciler.model.plan.action import Ref
from reconciler.simulate.actors.conditions import condition, with_condition
from reconciler.simulate.objects import ObjectWrite, key_of
from reconciler.simulate.stage import Stage

MANAGER = "node-controller"
_UNREACHABLE = "node.kubernetes.io/unreachable"


class Delays(msgspec.Struct, frozen=True):
    """How long after a death things happen."""

    noticed_ms: int = 40_000
    collected_ms: int = 120_000


class Deaths:
    """Whose machines and kubelets are gone stands on the stage."""

    def __init__(self, delays: Delays | None = None) -> None:
        self._delays = delays or Delays()

    def start(self, stage: Stage) -> None:
        self._stage = stage
        stage.world.subscribe(self._noted, "Node")

    def kill(self, node: str) -> None:
        """The machine is gone from now on. Raises KeyError where there is no such node."""
        found = self._stage.world.at(("Node", "", node))
        if found is None:
            raise KeyError(f"there is no node {node} that could die")
        self._stage.dead_nodes.add(node)
        self.silence(node)
        engine = self._stage.engine
        engine.after(self._delays.collected_ms, f"the machine of {node} is missed", lambda: self._collect(node))

    def silence(self, node: str) -> str:
        """The kubelet is gone from now on; the uid of the node. Raises KeyError where there is no such node."""
        found = self._stage.world.at(("Node", "", node))
        if found is None:
            raise KeyError(f"there is no node {node} whose kubelet could be gone")
        uid: str = found["metadata"]["uid"]
        self._stage.silent_nodes.add(node)
        delay_ms = self._delays.noticed_ms
        self._stage.engine.after(delay_ms, f"{node} is unreachable", lambda: self._notice(node, uid))
        return uid

    def revive(self, node: str, uid: str) -> bool:
        """The kubelet is back, if the node is the same and its machine is not gone; whether it is."""
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
        """Whether it is ready, as far as anybody knows."""
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
