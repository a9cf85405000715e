"""Size limits of cluster objects; larger objects are refused with a reason.

Anyone who may create a pod controls its size: the API server accepts up to a megabyte and a half, for example 16,000
tolerations. All tenants share the time of a plan, so each object has limits, at ten times or more the size of real
workloads. For an object within its limits, a check costs a few length comparisons.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reconciler.model.cluster.metadata import LabelSelector, Metadata
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.pod import Affinity, Container, NodeSelector, Pod, PodSpec, PodTerm
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.cluster.volumes import PersistentVolume, PersistentVolumeClaim
from reconciler.model.cluster.workload import PodDisruptionBudget, Workload

MOST_LABELS = 256
MOST_OWNERS = 32
MOST_CONDITIONS = 128

MOST_TOLERATIONS = 256
MOST_NODE_LABELS = 64  # in a nodeSelector
MOST_NODE_TERMS = 128
MOST_POD_TERMS = 64  # affinity and anti-affinity together
MOST_SPREADS = 32
MOST_EXPRESSIONS = 1_024  # all terms of one kind together
MOST_VALUES = 8_192  # all expressions together
MOST_GATES = 32
MOST_CONTAINERS = 256
MOST_PORTS = 1_024
MOST_RESOURCES = 128  # names over all containers
MOST_VOLUMES = 256
MOST_CLAIMS = 64

MOST_TAINTS = 256
MOST_NODE_RESOURCES = 256

MOST_GPU_CLAIMS = 2_000  # per namespace

_FEW = 16


Counted = tuple[str, int, int]  # field, such as spec.tolerations; count; limit
Check = Callable[[Any], Iterable[Counted]]


def why_refused(found: Any) -> Counted | None:
    """The first field of the object that exceeds its limit; None if the object is within all limits."""
    check = CHECKS.get(type(found))
    for counted in check(found) if check is not None else ():
        if counted[1] > counted[2]:
            return counted
    return None


def gpu_claims(policies: Iterable[Unstructured]) -> tuple[Unstructured, ...]:
    """The GpuClaims that are evaluated: of a namespace with too many claims, the oldest."""
    claims = tuple(each for each in policies if each.kind == "GpuClaim")
    if len(claims) <= MOST_GPU_CLAIMS:
        return claims
    objects: defaultdict[str, list[Unstructured]] = defaultdict(list)
    for each in sorted(claims, key=lambda each: (each.metadata.creation_timestamp, each.name)):
        objects[each.metadata.namespace].append(each)
    return tuple(each for _, there in sorted(objects.items()) for each in there[:MOST_GPU_CLAIMS])


def _is_small(pod: Pod) -> bool:
    """Fast check on lengths, for the common case; every pod is checked. False: a detailed check is needed."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    if spec.affinity is not None or spec.topology_spread_constraints or spec.scheduling_gates or spec.resource_claims:
        return False
    if len(metadata.labels) > _FEW or len(metadata.owner_references) > _FEW or len(spec.tolerations) > _FEW:
        return False
    if len(spec.volumes) > _FEW or len(spec.node_selector) > _FEW or spec.overhead or len(status.conditions) > _FEW:
        return False
    containers = spec.containers + spec.init_containers if spec.init_containers else spec.containers
    if len(containers) > _FEW or len(status.container_statuses) > _FEW or len(status.init_container_statuses) > _FEW:
        return False
    for each in containers:
        if len(each.ports) > _FEW or len(each.resources.requests) > 4 or len(each.resources.limits) > 4:
            return False
    return not status.resource_claim_statuses


def _of_pod(pod: Pod) -> Iterable[Counted]:
    if _is_small(pod):
        return ()
    metadata, status = pod.metadata, pod.status
    counted = [
        ("metadata.labels", len(metadata.labels), MOST_LABELS),
        ("metadata.ownerReferences", len(metadata.owner_references), MOST_OWNERS),
        ("status.conditions", len(status.conditions), MOST_CONDITIONS),
        ("status.containerStatuses", len(status.container_statuses), MOST_CONTAINERS),
        ("status.initContainerStatuses", len(status.init_container_statuses), MOST_CONTAINERS),
        ("status.resourceClaimStatuses", len(status.resource_claim_statuses), MOST_CLAIMS),
    ]
    return counted + _of_spec(pod.spec, "spec")


def _of_spec(spec: PodSpec, path: str) -> list[Counted]:
    containers = spec.containers + spec.init_containers if spec.init_containers else spec.containers
    counted = [
        (f"{path}.tolerations", len(spec.tolerations), MOST_TOLERATIONS),
        (f"{path}.containers", len(containers), MOST_CONTAINERS),
        (f"{path}.containers.ports", sum([len(each.ports) for each in containers]), MOST_PORTS),
        (f"{path}.containers.resources", _resources(containers) + len(spec.overhead), MOST_RESOURCES),
        (f"{path}.nodeSelector", len(spec.node_selector), MOST_NODE_LABELS),
        (f"{path}.topologySpreadConstraints", len(spec.topology_spread_constraints), MOST_SPREADS),
        (f"{path}.schedulingGates", len(spec.scheduling_gates), MOST_GATES),
        (f"{path}.volumes", len(spec.volumes), MOST_VOLUMES),
        (f"{path}.resourceClaims", len(spec.resource_claims), MOST_CLAIMS),
    ]
    if spec.affinity is not None:
        counted += _of_affinity(spec.affinity, f"{path}.affinity")
    if spec.topology_spread_constraints:
        selectors = [each.label_selector for each in spec.topology_spread_constraints]
        keys = sum(len(each.match_label_keys) for each in spec.topology_spread_constraints)
        counted += _of_selectors(selectors, f"{path}.topologySpreadConstraints", keys)
    return counted


def _resources(containers: Iterable[Container]) -> int:
    """Number of resource names. Containers with equal names are counted once."""
    found: set[str] = set()
    for each in containers:
        found.update(each.resources.requests)
        found.update(each.resources.limits)
    return len(found)


def _of_affinity(affinity: Affinity, path: str) -> Iterator[Counted]:
    if affinity.node_affinity.required is not None:
        yield from _of_node_selector(affinity.node_affinity.required, f"{path}.nodeAffinity")
    terms = affinity.pod_affinity.required + affinity.pod_anti_affinity.required
    if terms:
        yield f"{path}.podAffinity", len(terms), MOST_POD_TERMS
        selectors = [selector for each in terms for selector in (each.label_selector, each.namespace_selector)]
        yield from _of_selectors(selectors, f"{path}.podAffinity", sum(map(_named, terms)))


def _named(term: PodTerm) -> int:
    return len(term.namespaces) + len(term.match_label_keys) + len(term.mismatch_label_keys)


def _of_node_selector(selector: NodeSelector, path: str) -> Iterator[Counted]:
    terms = selector.node_selector_terms
    yield f"{path}.nodeSelectorTerms", len(terms), MOST_NODE_TERMS
    expressions = [each for term in terms for each in (*term.match_expressions, *term.match_fields)]
    yield f"{path}.matchExpressions", len(expressions), MOST_EXPRESSIONS
    yield f"{path}.matchExpressions.values", sum(len(each.values) for each in expressions), MOST_VALUES


def _of_selectors(selectors: Iterable[LabelSelector | None], path: str, more: int = 0) -> Iterator[Counted]:
    """`more`: further names that are looked up like values."""
    expressions, values = 0, more
    for each in selectors:
        if each is not None:
            expressions += len(each.match_labels) + len(each.match_expressions)
            values += len(each.match_labels) + sum(len(one.values) for one in each.match_expressions)
    yield f"{path}.labelSelector", expressions, MOST_EXPRESSIONS
    yield f"{path}.labelSelector.values", values, MOST_VALUES


def _of_metadata(metadata: Metadata) -> Iterator[Counted]:
    yield "metadata.labels", len(metadata.labels), MOST_LABELS
    yield "metadata.ownerReferences", len(metadata.owner_references), MOST_OWNERS


def _of_node(node: Node) -> Iterator[Counted]:
    yield from _of_metadata(node.metadata)
    yield "spec.taints", len(node.spec.taints), MOST_TAINTS
    yield "status.conditions", len(node.status.conditions), MOST_CONDITIONS
    yield "status.allocatable", len(node.status.allocatable), MOST_NODE_RESOURCES
    yield "status.capacity", len(node.status.capacity), MOST_NODE_RESOURCES


def _of_node_claim(claim: NodeClaim) -> Iterator[Counted]:
    yield from _of_metadata(claim.metadata)
    yield "status.conditions", len(claim.status.conditions), MOST_CONDITIONS
    yield "status.allocatable", len(claim.status.allocatable), MOST_NODE_RESOURCES


def _of_budget(budget: PodDisruptionBudget) -> Iterator[Counted]:
    yield from _of_metadata(budget.metadata)
    yield from _of_selectors([budget.spec.selector], "spec.selector")


def _of_volume(volume: PersistentVolume) -> Iterator[Counted]:
    yield from _of_metadata(volume.metadata)
    affinity = volume.spec.node_affinity
    if affinity is not None and affinity.required is not None:
        yield from _of_node_selector(affinity.required, "spec.nodeAffinity")


def _of_volume_claim(claim: PersistentVolumeClaim) -> Iterator[Counted]:
    yield from _of_metadata(claim.metadata)
    yield from _of_selectors([claim.spec.selector], "spec.selector")


def _of_workload(workload: Workload) -> Iterator[Counted]:
    yield from _of_metadata(workload.metadata)
    if workload.spec.template is not None:
        yield from _of_spec(workload.spec.template.spec, "spec.template.spec")


CHECKS: Mapping[type, Check] = {
    Pod: _of_pod,
    Node: _of_node,
    NodeClaim: _of_node_claim,
    PodDisruptionBudget: _of_budget,
    PersistentVolume: _of_volume,
    PersistentVolumeClaim: _of_volume_claim,
    Workload: _of_workload,
}
