"""What figures go by, read off the objects of an imagined cluster as they are written."""

import msgspec

from reconciler.fleet.gpu_requests import GpuRequests
from reconciler.model import names
from reconciler.plan.sums.cost import MachineType, machine_of
from reconciler.protocol.preconditions import Object
from reconciler.simulate.api_server.eviction import DISRUPTED

SMART = "smart-scheduler"  # the component that a smart pod is of
_FINISHED = frozenset({"Succeeded", "Failed"})
_NONE: dict[str, str] = {}
_NO_CLAIMS = GpuRequests()
_OURS = frozenset({names.DELETION_TIME, names.DRAINING})


class ObservedPod(msgspec.Struct, frozen=True, gc=False):
    """A pod, as far as it is counted."""

    node: str
    gpus: int
    is_waiting: bool  # for a node
    is_placed: bool  # and holds what it asked for
    counts: bool  # its node is busy because of it
    is_smart: bool = False  # asked for by nobody but us: it never waits for itself, and nothing is lost with it
    claim: str = ""  # name of its GpuClaim
    requested: int = 0  # GPUs, without those of its claim


class ObservedNode(msgspec.Struct, frozen=True, gc=False):
    """A node, as far as it is counted."""

    pool: str
    gpus: int
    is_leaving: bool
    is_tainted: bool  # by us, to leave
    machine: MachineType
    provider_id: str


def read_pod(body: Object, gpu_requests: GpuRequests = _NO_CLAIMS) -> ObservedPod:
    """`gpu_requests`: by the GpuClaims that are there."""
    spec, status, metadata = body.get("spec") or {}, body.get("status") or {}, body["metadata"]
    node = spec.get("nodeName", "")
    is_over = status.get("phase") in _FINISHED
    is_smart = (metadata.get("labels") or _NONE).get(names.COMPONENT) == SMART
    is_waiting = not (node or is_over or is_smart or metadata.get("deletionTimestamp"))
    counts = not is_over and not _stays(metadata)
    claim, requested = (metadata.get("annotations") or _NONE).get(names.CLAIM, ""), gpus_of(spec)
    gpus = max(requested, gpu_requests.counts.get((metadata.get("namespace", ""), claim), 0)) if claim else requested
    return ObservedPod(node, gpus, is_waiting, bool(node) and not is_over, counts, is_smart, claim, requested)


def read_node(body: Object) -> ObservedNode:
    metadata, status, spec = body["metadata"], body.get("status") or {}, body.get("spec") or {}
    labels = metadata.get("labels") or {}
    return ObservedNode(
        pool=labels.get(names.KARPENTER_POOL) or labels.get(names.POOL, ""),
        gpus=gpus_in(status.get("allocatable") or {}),
        is_leaving=bool(metadata.get("deletionTimestamp")),
        is_tainted=any(each["key"] in _OURS for each in spec.get("taints") or ()),
        machine=machine_of(labels),
        provider_id=spec.get("providerID") or metadata["name"],
    )


def gpus_in(amounts: Object) -> int:
    found = str(amounts.get(names.NVIDIA_GPU, "0"))
    return int(found) if found.isdigit() else 0


def gpus_of(spec: Object) -> int:
    """What a pod asks for: containers together, or its largest init container."""
    wanted = sum(_requested_gpus(each) for each in spec.get("containers") or ())
    return max([wanted, *(_requested_gpus(each) for each in spec.get("initContainers") or ())])


def _requested_gpus(container: Object) -> int:
    resources = container.get("resources") or {}
    return gpus_in(resources.get("requests") or {}) or gpus_in(resources.get("limits") or {})


def is_evicted(before: Object, after: Object) -> bool:
    """Whether this write is an eviction."""
    if before["metadata"].get("deletionTimestamp") or not after["metadata"].get("deletionTimestamp"):
        return False
    conditions = (after.get("status") or {}).get("conditions") or ()
    return any(each["type"] == DISRUPTED["type"] and each.get("reason") == DISRUPTED["reason"] for each in conditions)


def is_finished(body: Object) -> bool:
    return (body.get("status") or {}).get("phase") in _FINISHED


def _stays(metadata: Object) -> bool:
    """As Pod.stays_with_its_node, for an object that is not decoded."""
    annotations = metadata.get("annotations") or _NONE
    if names.MIRROR_POD in annotations or annotations.get(names.DAEMONSET_POD) == "true":
        return True
    return any(
        each.get("controller") and each["kind"] in {"DaemonSet", "Node"}
        for each in metadata.get("ownerReferences") or ()
    )
