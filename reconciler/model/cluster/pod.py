"""A Pod: what it needs, where it may run, and how it is. Nothing of what it does: no image, command or
environment.
"""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, LabelSelector, Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, later, moment
from reconciler.model.parsers import Int32, Int64
from reconciler.model.quantity import MOST, is_quantity, whole_number

# --- A volume of a pod, and whether that ties it to a place.


class ClaimSource(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A volume's claim."""

    claim_name: str = ""


class Present(msgspec.Struct, frozen=True, gc=False):
    """That it is there is all that is read of it."""


class EmptyDir(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A folder that is made for the pod and goes with it: on the disk of its node, or in memory."""

    medium: str = ""


class Volume(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A volume: what ties a pod to a place is looked at, what is in it is not."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None
    empty_dir: EmptyDir | None = None
    host_path: Present | None = None
    # Kinds from before there were drivers.
    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    iscsi: Present | None = None
    portworx_volume: Present | None = None
    rbd: Present | None = None

    @property
    def is_local(self) -> bool:
        """Whether it is on the disk of its node; what is in memory, such as /dev/shm, is as the process' own."""
        return self.host_path is not None or (self.empty_dir is not None and self.empty_dir.medium != "Memory")

    @property
    def is_inline(self) -> bool:
        """Whether it is a disk that the pod names itself, and that no other pod may have at the same time."""
        return (
            self.aws_elastic_block_store is not None
            or self.azure_disk is not None
            or self.cinder is not None
            or self.gce_persistent_disk is not None
            or self.iscsi is not None
            or self.portworx_volume is not None
            or self.rbd is not None
        )

    @property
    def ties(self) -> bool:
        """Whether it ties a pod to a place; a ConfigMap, a Secret or a token does not."""
        return (
            self.empty_dir is not None
            or self.persistent_volume_claim is not None
            or self.host_path is not None
            or self.ephemeral is not None
            or self.is_inline
        )


Amounts = dict[str, str]  # as written: "500m", "8Gi"


class Toleration(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A taint that the pod bears."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class ResourceRequirements(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What is asked for."""

    requests: Amounts = {}
    limits: Amounts = {}


class Port(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A port; only one of the host's is in another pod's way."""

    host_port: Int32 = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(name="hostIP", default="")


class RestartRule(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What happens when a container ends in some way."""

    action: str = ""


class Container(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What one container asks for; an init container that restarts is a sidecar."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[Port, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()


class NodeExpression(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A label or field of a node compared: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """All of it must hold; a term without anything matches nothing."""

    match_expressions: tuple[NodeExpression, ...] = ()
    match_fields: tuple[NodeExpression, ...] = ()


class NodeSelector(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One term must hold."""

    node_selector_terms: tuple[NodeTerm, ...] = ()


class NodeAffinity(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Where it must run; what it would only prefer is not looked at."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class PodTerm(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Other pods, and how near is meant."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class PodTerms(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """All terms must hold."""

    required: tuple[PodTerm, ...] = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=())


class Affinity(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Nodes it must run on, pods it must be near to or away from."""

    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodTerms = PodTerms()
    pod_anti_affinity: PodTerms = PodTerms()


class TopologySpreadConstraint(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How evenly it must be spread."""

    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class LocalObjectReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Something known by its name."""

    name: str = ""


class PodClaim(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A claim for devices, by name or made from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """What the pod asks of a node."""

    node_name: str = ""
    scheduler_name: str = ""
    priority: Int32 = 0
    priority_class_name: str = ""
    preemption_policy: str = ""
    restart_policy: str = ""
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[LocalObjectReference, ...] = ()
    overhead: Amounts = {}
    resources: ResourceRequirements | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    resource_claims: tuple[PodClaim, ...] = ()
    volumes: tuple[Volume, ...] = ()


class ContainerStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How a container is, and what it was really given."""

    name: str = ""
    ready: bool = False
    resources: ResourceRequirements | None = None
    allocated_resources: Amounts = {}


class PodResourceClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The claim that was made from a template."""

    name: str = ""
    resource_claim_name: str = ""


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How the pod is."""

    phase: str = ""
    reason: str = ""
    start_time: str = ""
    nominated_node_name: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: Amounts = {}


class Pod(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Containers that run together on one node."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def title(self) -> str:
        return f"{self.metadata.namespace}/{self.metadata.name}"

    @property
    def node(self) -> str:
        return self.spec.node_name

    @property
    def made_by(self) -> str:
        """Namespace and name of what made it; of itself where nothing did."""
        controller = self.metadata.controller
        return f"{self.metadata.namespace}/{controller.name if controller else self.name}"

    @property
    def is_finished(self) -> bool:
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def is_daemon_or_mirror(self) -> bool:
        """Whether a DaemonSet made it, or the kubelet did. This is all that Kubernetes and Karpenter look at."""
        owner = self.metadata.controller
        return bool(self.metadata.annotations.mirror_pod) or (owner is not None and owner.kind in {"DaemonSet", "Node"})

    @property
    def stays_with_its_node(self) -> bool:
        """Whether it comes and goes with its node, and never moves: DaemonSet and mirror pods, and pods whose
        annotation says that they count as DaemonSet pods."""
        return self.metadata.annotations.daemonset_pod == "true" or self.is_daemon_or_mirror

    @property
    def is_daemon(self) -> bool:
        """The same without mirror pods, which nobody can evict."""
        owner = self.metadata.controller
        is_mirror = bool(self.metadata.annotations.mirror_pod) or (owner is not None and owner.kind == "Node")
        return self.stays_with_its_node and not is_mirror

    @property
    def is_reschedulable(self) -> bool:
        """Whether Karpenter looks for another place for it. Karpenter ignores Cluster Autoscaler's annotations."""
        return not self.is_finished and not self.is_daemon_or_mirror

    @property
    def runs_to_completion(self) -> bool:
        """Whether nobody may evict it, and its node waits until it has completed instead."""
        return self.metadata.annotations.safe_to_evict == "on-completion"

    @property
    def counts(self) -> bool:
        """Whether its node is busy because of it."""
        return not self.is_finished and not self.stays_with_its_node

    @property
    def gpus(self) -> int:
        """GPUs that it asks for: containers together, or its largest init container; sidecars count with the rest."""
        wanted = sum(_gpus(each) for each in self.spec.containers)
        beside = 0
        largest = 0
        for each in self.spec.init_containers:
            if each.restart_policy == "Always":
                beside += _gpus(each)
                largest = max(largest, beside)
            else:
                largest = max(largest, beside + _gpus(each))
        return max(wanted + beside, largest)


def _gpus(container: Container) -> int:
    resource_requirements = container.resources
    found = resource_requirements.requests.get(names.NVIDIA_GPU) or resource_requirements.limits.get(
        names.NVIDIA_GPU, "0"
    )
    return whole_number(found) if is_quantity(found) else MOST


# --- How long a pod that was deleted is waited for, and pods that stay Terminating because nobody on their node can end
# them: the kubelet is gone.
#
# The owner of a pod chooses its grace period, which may be years. So a grace period is believed up to a longest one, as
# Cluster Autoscaler does with --max-graceful-termination-sec: for a drained node that is maxGracefulTerminationSeconds
# of its DrainPolicy, elsewhere the longest that a DrainPolicy can name. A longer one is cut.
#
# A pod is stuck a minute after its grace period, counted from when it was to have ended, if its node has not been ready
# for as long as the grace period and that minute. Karpenter waits for a stuck pod no longer either. A time that cannot
# be read tells nothing: the pod counts as not stuck.

LONGEST_GRACE_SECONDS = 86_400  # that a DrainPolicy can name
_USUAL_GRACE_SECONDS = 30
_AFTER_GRACE_MS = 60_000


def leaves_by(pod: Pod, longest_grace_seconds: int) -> Instant | None:
    """When a pod that was deleted is to have ended, by the grace period that is believed; None for a pod that is not
    being deleted. The deletionTimestamp lies a whole grace period after the deletion."""
    ends = moment(pod.metadata.deletion_timestamp)
    if ends is None:
        return None
    given = pod.metadata.deletion_grace_period_seconds
    given_ms = 1_000 * max(0, _requested_seconds(pod) if given is None else given)
    # A pod is not deleted before it is made, whatever the two times say.
    deleted = max(ends - given_ms, moment(pod.metadata.creation_timestamp) or 0)
    return Instant(min(ends, deleted + min(given_ms, 1_000 * longest_grace_seconds)))


def stuck_at(pod: Pod, node: Node, longest_grace_seconds: int) -> Instant | None:
    """From when on the pod is stuck if nothing changes; None for a pod that is not being deleted or whose node is
    ready."""
    ends = leaves_by(pod, longest_grace_seconds)
    unready = unready_since(node)
    if ends is None or unready is None:
        return None
    waits_ms = 1_000 * max(0, min(_requested_seconds(pod), longest_grace_seconds)) + _AFTER_GRACE_MS
    return later(max(ends, unready), waits_ms)


def is_stuck(pod: Pod, node: Node, now: Instant, longest_grace_seconds: int) -> bool:
    """Whether nobody will end the pod."""
    at = stuck_at(pod, node, longest_grace_seconds)
    return at is not None and at <= now


def unready_since(node: Node) -> Instant | None:
    """None for a node that is ready, or that does not say since when it is not."""
    for each in node.status.conditions:
        if each.type == "Ready":
            return None if each.status == "True" else moment(each.last_transition_time)
    return None


def is_silent(node: Node) -> bool:
    """Whether its kubelet has stopped to report, which the node controller notes as Unknown."""
    return any(each.type == "Ready" and each.status == "Unknown" for each in node.status.conditions)


def _requested_seconds(pod: Pod) -> int:
    requested = pod.spec.termination_grace_period_seconds
    return _USUAL_GRACE_SECONDS if requested is None else requested
