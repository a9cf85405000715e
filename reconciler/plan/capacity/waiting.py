"""Who waits for capacity: pods that Karpenter sees, and pods behind our gate, which it does not."""

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, moment
from reconciler.plan.capacity.identity import SmartPodIdentity


def waits(pod: Pod, identity: SmartPodIdentity) -> bool:
    """Whether capacity is missing for it, if no node has room. A smart pod is a means, and no end."""
    return (is_gated(pod) or is_unschedulable(pod)) and not identity.is_smart(pod)


def is_gated(pod: Pod) -> bool:
    """Whether our gate alone keeps it from being scheduled; what others wait for is not for us to buy."""
    gates = pod.spec.scheduling_gates
    return bool(gates) and not pod.metadata.leaving and all(each.name == names.CAPACITY_GATE for each in gates)


def has_our_gate(pod: Pod) -> bool:
    """Whether it waits behind our gate, alone or beside the gates of others."""
    return not pod.metadata.leaving and any(each.name == names.CAPACITY_GATE for each in pod.spec.scheduling_gates)


def asks_for_gpus(pod: Pod) -> bool:
    """Whether the pod asks for GPUs: as a resource, by a GpuClaim, or by a claim of Kubernetes that may be for GPUs."""
    return bool(pod.gpus or pod.metadata.annotations.claim or pod.spec.resource_claims)


def is_coming(pod: Pod, identity: SmartPodIdentity) -> bool:
    """Whether a scheduler is about to place it: nothing keeps it back, and nobody has said that there is no room."""
    is_kept = bool(pod.spec.scheduling_gates) or pod.metadata.leaving or identity.is_smart(pod)
    return not is_kept and not is_unschedulable(pod)


def is_unschedulable(pod: Pod) -> bool:
    """Whether the scheduler found no place for it, and Karpenter would buy for it as well."""
    if not pod.status.conditions or pod.metadata.leaving or pod.spec.scheduling_gates:
        return False
    if pod.status.nominated_node_name or pod.stays_with_its_node:
        return False
    return any(
        each.type == "PodScheduled" and each.status == "False" and each.reason == "Unschedulable"
        for each in pod.status.conditions
    )


def unschedulable_since(pod: Pod) -> Instant | None:
    """Since when Karpenter has seen it; None where it does not."""
    if not is_unschedulable(pod):
        return None
    written = next(each.last_transition_time for each in pod.status.conditions if each.type == "PodScheduled")
    return moment(written or pod.metadata.creation_timestamp) or Instant(0)
