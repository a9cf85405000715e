"""A Pod: what it needs, where it may run, and how it is. Nothing of what it does: no image, command or environment."""

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Condition, LabelSelector, Metadata
from reconciler.model.cluster.pod_volume import Volume
from reconciler.model.parsers import Int32, Int64
from reconciler.model.resource_quantity import MOST, is_quantity, whole_number

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
