"""A Pod: its requests, placement constraints and status. Images, commands and environment are not read."""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, LabelSelector, Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, later, moment
from reconciler.model.parsers import Int32, Int64
from reconciler.model.quantity import MOST, is_quantity, whole_number

# --- Volumes of pods, and whether they restrict placement.


class ClaimSource(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    claim_name: str = ""


class Present(msgspec.Struct, frozen=True, gc=False):
    """A field of which only the presence is read."""


class EmptyDir(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A directory with the lifetime of the pod, on the node's disk or in memory."""

    medium: str = ""


class Volume(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A volume: only what restricts placement is read, not its content."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: Present | None = None
    empty_dir: EmptyDir | None = None
    host_path: Present | None = None
    # In-tree volume types, from before CSI drivers.
    aws_elastic_block_store: Present | None = None
    azure_disk: Present | None = None
    cinder: Present | None = None
    gce_persistent_disk: Present | None = None
    iscsi: Present | None = None
    portworx_volume: Present | None = None
    rbd: Present | None = None

    @property
    def is_local(self) -> bool:
        """Whether the volume is on the node's disk. In-memory volumes such as /dev/shm count as process memory."""
        return self.host_path is not None or (self.empty_dir is not None and self.empty_dir.medium != "Memory")

    @property
    def is_inline(self) -> bool:
        """Whether the pod names a disk directly that no other pod may use at the same time."""
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
        """Whether the volume restricts placement; a ConfigMap, a Secret or a token does not."""
        return (
            self.empty_dir is not None
            or self.persistent_volume_claim is not None
            or self.host_path is not None
            or self.ephemeral is not None
            or self.is_inline
        )


Amounts = dict[str, str]  # as written: "500m", "8Gi"


class Toleration(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class ResourceRequirements(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    requests: Amounts = {}
    limits: Amounts = {}


class Port(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A port; only host ports can conflict between pods."""

    host_port: Int32 = 0
    protocol: str = "TCP"
    host_ip: str = msgspec.field(name="hostIP", default="")


class RestartRule(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The action on a certain exit of a container."""

    action: str = ""


class Container(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A container's requests; a restartable init container is a sidecar."""

    name: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[Port, ...] = ()
    restart_policy: str = ""
    restart_policy_rules: tuple[RestartRule, ...] = ()


class NodeExpression(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A requirement on a node label or field: In, NotIn, Exists, DoesNotExist, Gt, Lt."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class NodeTerm(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """All requirements must hold; an empty term matches nothing."""

    match_expressions: tuple[NodeExpression, ...] = ()
    match_fields: tuple[NodeExpression, ...] = ()


class NodeSelector(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """At least one term must match."""

    node_selector_terms: tuple[NodeTerm, ...] = ()


class NodeAffinity(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """Required node affinity; preferences are not read."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)


class PodTerm(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A pod affinity term: a pod selector and a topology key."""

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
    node_affinity: NodeAffinity = NodeAffinity()
    pod_affinity: PodTerms = PodTerms()
    pod_anti_affinity: PodTerms = PodTerms()


class TopologySpreadConstraint(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    max_skew: Int32
    topology_key: str
    when_unsatisfiable: str
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str = "Honor"
    node_taints_policy: str = "Ignore"
    match_label_keys: tuple[str, ...] = ()


class LocalObjectReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    name: str = ""


class PodClaim(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """A ResourceClaim of a pod, by name or from a template."""

    name: str = ""
    resource_claim_name: str = ""
    resource_claim_template_name: str = ""


class PodSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
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
    name: str = ""
    ready: bool = False
    resources: ResourceRequirements | None = None
    allocated_resources: Amounts = {}


class PodResourceClaimStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The ResourceClaim created from a template."""

    name: str = ""
    resource_claim_name: str = ""


class PodStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
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
        """Namespace and name of the pod's controller, or of the pod itself if it has none."""
        controller = self.metadata.controller
        return f"{self.metadata.namespace}/{controller.name if controller else self.name}"

    @property
    def is_finished(self) -> bool:
        return self.status.phase in {"Succeeded", "Failed"}

    @property
    def is_ready(self) -> bool:
        """Whether the pod is ready, which makes the pod healthy for budgets."""
        for each in self.status.conditions:  # noqa: SIM110 - runs for every pod, and a generator doubles the cost
            if each.type == "Ready" and each.status == "True":
                return True
        return False

    @property
    def is_daemon_or_mirror(self) -> bool:
        """Whether a DaemonSet or the kubelet created the pod. Kubernetes and Karpenter consider only this."""
        owner = self.metadata.controller
        return bool(self.metadata.annotations.mirror_pod) or (owner is not None and owner.kind in {"DaemonSet", "Node"})

    @property
    def stays_with_its_node(self) -> bool:
        """Whether the pod comes and goes with its node and never moves.

        True for DaemonSet and mirror pods, and for pods that are annotated to count as DaemonSet pods.
        """
        return self.metadata.annotations.daemonset_pod == "true" or self.is_daemon_or_mirror

    @property
    def is_mirror(self) -> bool:
        """Whether the kubelet created the pod."""
        owner = self.metadata.controller
        return bool(self.metadata.annotations.mirror_pod) or (owner is not None and owner.kind == "Node")

    @property
    def is_daemon(self) -> bool:
        """Like `stays_with_its_node`, but without mirror pods, which cannot be evicted."""
        return self.stays_with_its_node and not self.is_mirror

    @property
    def is_reschedulable(self) -> bool:
        """Whether Karpenter reschedules the pod. Karpenter ignores Cluster Autoscaler's annotations."""
        return not self.is_finished and not self.is_daemon_or_mirror

    @property
    def runs_to_completion(self) -> bool:
        """Whether the node of the pod is drained only once the pod has completed (`safe-to-evict: on-completion`)."""
        return self.metadata.annotations.safe_to_evict == "on-completion"

    @property
    def counts(self) -> bool:
        """Whether the pod makes its node busy."""
        return not self.is_finished and not self.stays_with_its_node

    @property
    def gpus(self) -> int:
        """Requested GPUs: sum over containers, or largest init container; sidecars count with the containers."""
        wanted = sum([_gpus(each) for each in self.spec.containers])
        if not self.spec.init_containers:
            return wanted
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
    found = resource_requirements.requests.get(names.NVIDIA_GPU) or resource_requirements.limits.get(names.NVIDIA_GPU)
    if not found:
        return 0 if found is None else MOST
    return whole_number(found) if is_quantity(found) else MOST


# --- How long a deleted pod is waited for, and pods stuck in Terminating because the kubelet of their node is gone.
#
# The owner of a pod chooses its grace period, which may be years. Grace periods are capped, as Cluster Autoscaler does
# with --max-graceful-termination-sec: on a drained node at maxGracefulTerminationSeconds of its DrainPolicy, elsewhere
# at the maximum that a DrainPolicy can set.
#
# When the grace period of a pod has ended and its node is not ready, the pod is waited for once more, for the length of
# the grace period plus a minute. If the node is still not ready, the pod is stuck. Karpenter does not wait for a stuck
# pod either. If a time cannot be read, the pod counts as not stuck.

LONGEST_GRACE_SECONDS = 86_400  # the maximum that a DrainPolicy can set
_USUAL_GRACE_SECONDS = 30
_AFTER_GRACE_MS = 60_000


def leaves_by(pod: Pod, longest_grace_seconds: int) -> Instant | None:
    """When a deleted pod must have ended, by its capped grace period; None for a pod that is not being deleted.

    The deletionTimestamp is the time of deletion plus the whole grace period.
    """
    ends = moment(pod.metadata.deletion_timestamp)
    if ends is None:
        return None
    given = pod.metadata.deletion_grace_period_seconds
    given_ms = 1_000 * max(0, _requested_seconds(pod) if given is None else given)
    # A pod cannot be deleted before its creation, whatever the two timestamps say.
    deleted = max(ends - given_ms, moment(pod.metadata.creation_timestamp) or 0)
    return Instant(min(ends, deleted + min(given_ms, 1_000 * longest_grace_seconds)))


def stuck_at(pod: Pod, node: Node, longest_grace_seconds: int) -> Instant | None:
    """When the pod will be stuck if nothing changes; None if the pod is not being deleted or its node is ready."""
    ends = leaves_by(pod, longest_grace_seconds)
    unready = unready_since(node)
    if ends is None or unready is None:
        return None
    waits_ms = 1_000 * max(0, min(_requested_seconds(pod), longest_grace_seconds)) + _AFTER_GRACE_MS
    return later(max(ends, unready), waits_ms)


def is_stuck(pod: Pod, node: Node, now: Instant, longest_grace_seconds: int) -> bool:
    """Whether no component will end the pod."""
    at = stuck_at(pod, node, longest_grace_seconds)
    return at is not None and at <= now


def unready_since(node: Node) -> Instant | None:
    """Since when the node has not been ready; None if it is ready or the time is unknown."""
    for each in node.status.conditions:
        if each.type == "Ready":
            return None if each.status == "True" else moment(each.last_transition_time)
    return None


def is_silent(node: Node) -> bool:
    """Whether the kubelet stopped reporting, which the node controller marks as Unknown."""
    return any(each.type == "Ready" and each.status == "Unknown" for each in node.status.conditions)


def _requested_seconds(pod: Pod) -> int:
    requested = pod.spec.termination_grace_period_seconds
    return _USUAL_GRACE_SECONDS if requested is None else requested
