"""What goes with a Binding: Leases by which GPUs are lent to a pod, and what a pod must be like to be bound.

A Lease is held by the pod's uid, and owned by the Node, so that it goes when the Node does.
"""

from reconciler.model.plan.action import Bind
from reconciler.protocol.preconditions import DONE, Object, WriteResult

HELD = "spec.holderIdentity"


def lease(name: str, namespace: str, pod: Object, node: Object) -> Object:
    """As it is made."""
    owner = {"apiVersion": "v1", "kind": "Node", "name": node["metadata"]["name"], "uid": node["metadata"]["uid"]}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": namespace, "ownerReferences": [owner]},
        "spec": {"holderIdentity": pod["metadata"]["uid"]},
    }


def lent_to_another(title: str, holder: str) -> str:
    """Why nothing is bound."""
    return f"{title} is held by {holder or 'nobody that is named'} already"


def unbindable(act: Bind, title: str, pod: Object) -> WriteResult | None:
    """How it ends without a Binding; None where there is to be one."""
    spec = pod.get("spec") or {}
    node = spec.get("nodeName", "")
    if node:
        return DONE if node == act.node else WriteResult("stale", f"{title} is bound to {node} already")
    if gates := [str(each["name"]) for each in spec.get("schedulingGates") or ()]:
        return WriteResult("stale", f"{title} waits behind scheduling gates: {', '.join(gates)}")
    return None
