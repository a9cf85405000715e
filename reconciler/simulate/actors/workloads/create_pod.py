"""What controllers write: a pod as a template has it, and its deletion."""

from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import Key
from reconciler.simulate.world import World

MANAGER = "kube-controller-manager"


def pod_of(owner: Object, name: str, node: str = "") -> Object:
    """A pod that the owner's template makes; with a node it is bound from the beginning."""
    metadata, template = owner["metadata"], owner["spec"]["template"]
    marks = template.get("metadata") or {}
    reference = {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    head = {
        "name": name,
        "namespace": metadata["namespace"],
        "labels": marks.get("labels") or {},
        "annotations": marks.get("annotations") or {},
        "ownerReferences": [reference],
    }
    bound = {"nodeName": node} if node else {}
    spec = {"schedulerName": "default-scheduler", **template["spec"], **bound}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": head, "spec": spec, "status": {"phase": "Pending"}}


def take_down(world: World, key: Key) -> None:
    """Deletes a pod."""
    world.delete(Ref(*key), MANAGER)
