"""DaemonSets have one pod on each node that their pods may be on, put there without a scheduler."""

from collections.abc import Iterable

import msgspec

from reconciler.fleet.filters.taints import untolerated
from reconciler.fleet.node_terms import readable, term_holds
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.pod import PodSpec, Toleration
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.workloads.create_pod import MANAGER, pod_of
from reconciler.simulate.actors.workloads.owned_pods import Kin
from reconciler.simulate.world import World

# Those of a DaemonSet bear what befalls a node.
_BORNE = tuple(
    Toleration(f"node.kubernetes.io/{name}", "Exists")
    for name in ("not-ready", "unreachable", "disk-pressure", "memory-pressure", "pid-pressure", "unschedulable")
)


def keep_daemon(world: World, owner: Object, nodes: Iterable[Object], kin: Kin) -> None:
    """A pod on each of the nodes, where there is none yet and it may be there."""
    # By the node that it is on: pods of a cluster that was seen bear names of their own.
    served = {pod["spec"].get("nodeName", "") for pod in map(world.at, kin.pods) if pod is not None}
    for node in nodes:
        there = node["metadata"]["name"]
        if there not in served and _may_be_on(owner, node):
            world.put(pod_of(owner, f"{owner['metadata']['name']}-{there}", there), MANAGER)


def _may_be_on(owner: Object, node: Object) -> bool:
    if node["metadata"].get("deletionTimestamp"):
        return False
    spec = owner["spec"]["template"]["spec"]
    if not _selects(spec, node):
        return False
    borne = msgspec.convert(spec.get("tolerations") or (), tuple[Toleration, ...])
    taints = msgspec.convert((node.get("spec") or {}).get("taints") or (), tuple[NodeTaint, ...])
    return untolerated(taints, (*borne, *_BORNE)) is None


def _selects(spec: Object, node: Object) -> bool:
    read, there = msgspec.convert(spec, PodSpec), msgspec.convert(node, Node)
    labels = there.metadata.labels
    if any(labels.get(key) != value for key, value in read.node_selector.items()):
        return False
    terms = read.affinity.node_affinity.required if read.affinity is not None else None
    return terms is None or any(readable(term) and term_holds(term, there) for term in terms.node_selector_terms)
