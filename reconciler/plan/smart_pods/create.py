"""Manifest of a smart pod: the rendered template, with name, GPUs, memory, request and scheduling constraints.

The smart pod has the constraints of the waiting pods: their node selectors, their tolerations, and of their node
affinities the term that the wanted node satisfies. Existing nodes that fit the smart pod, although they do not fit
the waiting pods, are excluded by hostname. Nodes that were opened for pods are excluded by the label that they got
then, because the smart pod would use the room of the waiting pods. The smart pod also requires nodes without a label
that no node has, and Karpenter copies this requirement into the NodeClaim.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from reconciler.fleet.amounts import pod_request
from reconciler.fleet.node_terms import readable, term_holds
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import NodeExpression, Pod
from reconciler.model.desired import SmartPod
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.quantity import Quantity, amount_offered
from reconciler.plan.capacity.offerings import labels_of
from reconciler.plan.capacity.requests import CapacityRequest, tag_of
from reconciler.plan.capacity.wanted_nodes import WantedNode
from reconciler.plan.smart_pods.advance import SmartPodPhase

Body = dict[str, Any]

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
# Share of a declared capacity that pods can surely request: kubelet, system and hypervisor use the rest.
_ALLOCATABLE_PERCENT = 85
_BILLIONTHS = 1_000_000
_LARGEST_MILLI = 1000 * (10**18 - 1)


def manifest_of(
    template: SmartPod, request: CapacityRequest, wanted: WantedNode, memory: Quantity, retries: int
) -> Body:
    """Manifest without excluded nodes, which are known only after a search with the manifest."""
    body: Body = msgspec.json.decode(template.body)
    metadata, spec = body["metadata"], body["spec"]
    metadata["name"] = request.name
    metadata["annotations"] = metadata.get("annotations", {}) | {
        names.ORIGINAL_REQUEST: msgspec.json.encode(request, order="sorted").decode(),
        names.PHASE: SmartPodPhase.PENDING.value,
        names.RETRIES: str(retries),
    }
    resources = spec["containers"][0].setdefault("resources", {})
    amounts = {names.NVIDIA_GPU: str(request.count), "memory": str(memory)}
    for each in ("requests", "limits"):
        resources[each] = resources.get(each, {}) | amounts
    selected = dict(pair for pod in wanted.pods for pair in sorted(pod.spec.node_selector.items()))
    spec["nodeSelector"] = spec.get("nodeSelector", {}) | selected | dict(labels_of(wanted.choice))
    spec["tolerations"] = _tolerations(spec.get("tolerations", []), wanted.pods)
    absent = ({"key": key, "operator": "DoesNotExist"} for key in (names.ARRIVED, tag_of(request.name)))
    lines = [*_affinities(wanted), *absent]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    terms = affinity.get(_REQUIRED, {}).get("nodeSelectorTerms") or [{}]
    affinity[_REQUIRED] = {
        "nodeSelectorTerms": [
            each | {"matchExpressions": [*each.get("matchExpressions", ()), *lines]} for each in terms
        ]
    }
    return body


def ruling_out(body: Body, nodes: Sequence[str]) -> Body:
    """The manifest, with the given nodes excluded."""
    terms = body["spec"]["affinity"]["nodeAffinity"][_REQUIRED]["nodeSelectorTerms"]
    for term in terms if nodes else ():
        term["matchExpressions"].append({"key": names.HOSTNAME, "operator": "NotIn", "values": list(nodes)})
    return body


def vram_of(pool: GpuPool, gpus: int) -> Quantity:
    """Memory of the GPUs, limited to a value that can be written and read again."""
    memory = pool.devices.memory
    return Quantity(min(memory.milli * gpus, _LARGEST_MILLI), memory.binary)


def affinity_of(pods: Iterable[Pod]) -> Any:
    """Node affinities of the waiting pods, as written into the request; None if there are none."""
    found = []
    for pod in pods:
        affinity = pod.spec.affinity
        if affinity is not None and affinity.node_affinity.required is not None:
            written = msgspec.to_builtins(affinity.node_affinity)
            if written not in found:
                found.append(written)
    return found[0] if len(found) == 1 else found or None


def memory_of(pool: GpuPool, request: CapacityRequest, wanted: WantedNode, has_live_node: bool) -> Quantity:
    """Memory request: the memory of the GPUs, but never more than a node of the instance type has.

    With an existing node of the type, the limit is the allocatable memory minus the DaemonSets. Else the limit is
    the declared capacity minus a margin. Without a declared capacity, the smart pod requests as much as the largest
    waiting pod, because the waiting pods must fit anyway.
    """
    vram = Quantity.parse(request.vram)
    machine = next((each for each in pool.instance_types if each.name == request.instance_type), None)
    left_milli = amount_offered(wanted.memory) // _BILLIONTHS
    if not has_live_node:
        is_declared = machine is not None and "memory" in machine.capacity
        left_milli = left_milli * _ALLOCATABLE_PERCENT // 100 if is_declared else _largest_request_milli(wanted.pods)
    return vram if vram.milli <= left_milli else Quantity(left_milli // 1000 * 1000)


def _largest_request_milli(pods: Iterable[Pod]) -> int:
    return max((1000 * pod_request(pod).get("memory", 0) for pod in pods), default=0)


def _tolerations(before: list[Body], pods: Iterable[Pod]) -> list[Body]:
    result = list(before)
    for pod in pods:
        for each in pod.spec.tolerations:
            written = msgspec.to_builtins(each)
            if written not in result:
                result.append(written)
    return result


def _affinities(wanted: WantedNode) -> list[Body]:
    """Affinity expressions of the waiting pods, each once."""
    node = Node(Metadata("wanted", labels=wanted.labels))
    result: list[Body] = []
    for pod in wanted.pods:
        for each in _expressions(pod, node):
            line = msgspec.to_builtins(each)
            if line not in result:
                result.append(line)
    return result


def _expressions(pod: Pod, node: Node) -> Iterator[NodeExpression]:
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity is not None else None
    if required is None:
        return
    fitting = (each for each in required.node_selector_terms if readable(each) and term_holds(each, node))
    term = next(fitting, None)
    yield from term.match_expressions if term is not None else ()
