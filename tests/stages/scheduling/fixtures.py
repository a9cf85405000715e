"""What all drawn fleets have in common, and the node and the pods by which it shows that a scheduler has seen one."""

import datetime

from tests.lab.api import Manifest
from tests.stages.scheduling.draw import amounts, nodes, volumes
from tests.stages.scheduling.draw.chance import HOSTNAME, NAMESPACES, PRIORITIES, SCHEDULER

LOOKOUT = "lab/lookout"


def namespaces() -> list[Manifest]:
    return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES]


def classes() -> list[tuple[str, Manifest]]:
    """Classes of storage, of runtimes and of priority, and a driver; each with the plural of its kind."""
    runtime = {
        "apiVersion": "node.k8s.io/v1",
        "kind": "RuntimeClass",
        "metadata": {"name": amounts.RUNTIME},
        "handler": "heavy",
        "overhead": {"podFixed": amounts.OVERHEAD},
    }
    storage = [("storageclasses", each) for each in volumes.storage_classes()]
    priority = [("priorityclasses", _priority(name, 100 * number)) for number, name in enumerate(PRIORITIES)]
    return [*storage, ("csidrivers", volumes.driver()), *priority, ("runtimeclasses", runtime)]


def beating(node: Manifest) -> Manifest:
    """A node whose kubelet was heard just now; a controller that knew another of its name would give it up at once."""
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [{**each, "lastHeartbeatTime": now} for each in node["status"]["conditions"]]
    return {**node, "status": {**node["status"], "conditions": conditions}}


def is_settled(node: Manifest) -> bool:
    """Whether controllers have done what they do about a new node: one that is not ready, or cordoned, is tainted."""
    keys = {each["key"] for each in node["spec"].get("taints", ())}
    cordoned = bool(node["spec"].get("unschedulable"))
    return "node.kubernetes.io/not-ready" not in keys and cordoned == (nodes.UNSCHEDULABLE in keys)


def is_bound(claim: Manifest) -> bool:
    """Whether the claim of a volume is as it will stay: bound to the volume that it names, if it names one."""
    return claim["spec"].get("volumeName") in {None, volumes.GONE} or claim["status"].get("phase") == "Bound"


def is_lookout(node: str) -> bool:
    """Whether a node is not of the fleet, but there for the scheduler's sake."""
    return node.endswith("lookout")


def lookout_node(name: str) -> Manifest:
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOSTNAME: name}},
        "spec": {},
        "status": {"capacity": resources, "allocatable": resources, "conditions": [dict(nodes.READY)]},
    }


def lookout_pod(name: str) -> Manifest:
    """On the lookout, before the fleet is judged."""
    return _pod(name, {LOOKOUT: name}, {"nodeName": name, "tolerations": [{"operator": "Exists"}]})


def probe(lookout: str, number: int) -> Manifest:
    """It can be only on the lookout, as it was changed last, beside the pod that was bound last."""
    near = {"labelSelector": {"matchLabels": {LOOKOUT: lookout}}, "topologyKey": HOSTNAME}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    spec = {"schedulerName": SCHEDULER, "nodeSelector": {LOOKOUT: lookout}, "affinity": affinity}
    return _pod(f"{lookout}-probe-{number}", {}, spec)


def _pod(name: str, labels: dict[str, str], spec: Manifest) -> Manifest:
    containers = [{"name": "c", "image": "registry.k8s.io/pause:3.9"}]
    metadata = {"name": name, "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers, **spec}}


def _priority(name: str, value: int) -> Manifest:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}}
    return {**kind, "value": value, "preemptionPolicy": "Never", "globalDefault": value == 0}
