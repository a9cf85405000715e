"""Classes of pods with equal needs: a result for one pod of a class holds for all."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY, PODS, STORAGE, GpuRequests, counted, is_settled, pod_held, pod_request
from reconciler.fleet.node_terms import Tolerance
from reconciler.fleet.obstacles import DeviceClassAsResource, OwnUsersOnHostNetwork, RestartsAllContainers
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Affinity, NodeAffinity, NodeSelector, Pod, Port, Toleration
from reconciler.model.plan.decision import Obstacle

Request = tuple[tuple[int, int], ...]  # column of a resource, amount; ordered by column
_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
Rank = tuple[int, int, int, int, bytes]


class LabelClass:
    """Pods of one namespace with the same labels and deletion state: all that inter-pod terms depend on."""

    __slots__ = ("labels", "leaving", "namespace", "number")

    def __init__(self, number: int, pod: Pod) -> None:
        self.number = number
        self.namespace = pod.metadata.namespace
        self.labels = pod.metadata.labels
        self.leaving = pod.metadata.leaving


class Needs:
    """The needs that depend only on labels, taints and names of nodes."""

    __slots__ = ("node_name", "number", "selector", "terms", "tolerance", "tolerations")

    def __init__(self, number: int, pod: Pod, node_name: str) -> None:
        spec = pod.spec
        self.number = number
        self.node_name = node_name  # the only allowed node; empty if any node is allowed
        self.selector: dict[str, str] = spec.node_selector
        self.terms: NodeSelector | None = spec.affinity.node_affinity.required if spec.affinity else None
        self.tolerations: tuple[Toleration, ...] = spec.tolerations
        self.tolerance = Tolerance(spec.tolerations)


class PodClassKey:
    """The identity of a class, and parts that it shares with other classes."""

    __slots__ = ("label_class", "needs", "text")

    def __init__(self, needs: Needs, label_class: LabelClass, text: bytes) -> None:
        self.needs = needs
        self.label_class = label_class
        self.text = text


class PodClass:
    """Pods with equal needs on nodes and other pods.

    `request` is what such a pod requests from a new node, `held` what it occupies on its node; they differ during an
    in-place resize. `anew` is the class of a replacement pod: neither being deleted nor resized.
    """

    __slots__ = (
        "_anew",
        "_key",
        "_rank",
        "goes_with_its_node",
        "gpu_claim",
        "held",
        "is_plain",
        "label_class",
        "leaving",
        "needs",
        "needs_another_place",
        "number",
        "pod",
        "ports",
        "priority",
        "request",
        "text",
        "unmodelled",
    )

    def __init__(self, number: int, pod: Pod, kind: PodClassKey) -> None:
        self.number = number  # in order of first use
        self.pod = pod  # one pod of the class
        self.needs = kind.needs
        self.label_class = kind.label_class
        self.text = kind.text  # unique per class: gives an order that does not depend on the order of first use
        self.priority = pod.spec.priority
        self.leaving = pod.metadata.leaving
        self.goes_with_its_node = pod.stays_with_its_node
        self.needs_another_place = not (self.goes_with_its_node or pod.runs_to_completion or self.leaving)
        self.ports = _ports(pod)
        self.gpu_claim = (pod.metadata.namespace, pod.metadata.annotations.claim)  # empty name if there is none
        self.is_plain = not self.ports and _is_plain(pod)  # without ports, volumes, claims and inter-pod terms
        self.unmodelled = _unmodelled(pod)
        self.request: Request = ()
        self.held: Request = ()
        self._anew: PodClass | None = None  # not the class itself: a cycle would prevent garbage collection
        self._rank: Rank | None = None
        self._key = ""

    @property
    def anew(self) -> "PodClass":
        return self._anew or self

    @anew.setter
    def anew(self, other: "PodClass") -> None:
        self._anew = other

    @property
    def namespace(self) -> str:
        return self.label_class.namespace

    @property
    def labels(self) -> dict[str, str]:
        return self.label_class.labels

    @property
    def key(self) -> str:
        """A key that is stable across processes."""
        if not self._key:
            self._key = blake2b(self.text, digest_size=8).hexdigest()
        return self._key

    @property
    def rank(self) -> Rank:
        """Sort key, hardest to place first: by priority, then pods with devices, then by size."""
        if self._rank is None:
            amounts = dict(self.request)
            devices = sum(amount for column, amount in self.request if column > 3)
            self._rank = (-self.priority, -devices, -amounts.get(0, 0), -amounts.get(1, 0), self.text)
        return self._rank


class PodProfile(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Pods of one class with equal owners, annotations, phase and readiness: what follows from these holds for each.

    Pods of one profile share one object, but two objects may have equal fields.
    """

    pod_class: PodClass
    pod: Pod  # one pod of the profile
    is_ready: bool


def _ports(pod: Pod) -> tuple[Port, ...]:
    """Host ports of containers and sidecars; ports of other init containers do not count."""
    containers = pod.spec.containers
    if pod.spec.init_containers:
        containers += tuple(each for each in pod.spec.init_containers if each.restart_policy == "Always")
    return tuple([port for each in containers for port in each.ports if port.host_port > 0])


def _is_plain(pod: Pod) -> bool:
    spec, affinity = pod.spec, pod.spec.affinity
    if pod.metadata.annotations.claim or spec.resource_claims or spec.topology_spread_constraints:
        return False
    for each in spec.volumes:
        if each.persistent_volume_claim is not None or each.ephemeral is not None or each.is_inline:
            return False
    return affinity is None or not (affinity.pod_affinity.required or affinity.pod_anti_affinity.required)


def _unmodelled(pod: Pod) -> Obstacle | None:
    """A need of the pod that is not simulated; such a pod never fits."""
    spec = pod.spec
    if spec.host_network and spec.host_users is False:
        return OwnUsersOnHostNetwork()
    for each in (*spec.containers, *spec.init_containers):
        for rule in each.restart_policy_rules:
            if rule.action == "RestartAllContainers":
                return RestartsAllContainers()
        for name in each.resources.requests:
            if name.startswith(_DEVICE_CLASS):
                return DeviceClassAsResource()
    return None


# --- Owner of the pod classes and of resource columns.
#
# Most pods are classified by comparison with the last pod of the same owner: their common parts are the same objects,
# or equal. For other pods, all relevant fields are encoded, which identifies the class exactly.
#
# A DaemonSet binds each pod to its node by name. A bound DaemonSet pod never moves, so the node name is not part of its
# class, and all pods of the DaemonSet share a class.

_FEW_OWNERS, _MOST_OWNERS = 1_000, 20_000
_write = msgspec.json.Encoder(order="deterministic").encode
_change = msgspec.structs.replace


class Classes:
    """All known classes."""

    def __init__(self, gpu_requests: GpuRequests) -> None:
        self.asked_gpus = gpu_requests  # of the observed GpuClaims; pods of changed claims must be rebooked
        self.columns: dict[str, int] = {CPU: 0, MEMORY: 1, STORAGE: 2, PODS: 3}
        self.columns_of_nodes = len(self.columns)  # the first columns: resources that nodes have
        self.resources: list[str] = list(self.columns)  # resource names by column
        self.all: list[PodClass] = []
        self.written_bytes = 0  # total size of all keys
        self._most_owners = _FEW_OWNERS  # number of owners whose last pod is remembered
        self.label_classes: list[LabelClass] = []
        self._last: dict[str | int, tuple[tuple[Any, ...], PodProfile]] = {}
        self._booked: dict[int, PodProfile] = {}  # of booked pods, by object identity
        self._gpus: dict[PodClass, int] = {}
        self._classes: dict[bytes, PodClass] = {}
        self._needs: dict[bytes, Needs] = {}
        self._labels: dict[bytes, LabelClass] = {}
        self._last_needs: tuple[Any, Needs] | None = None
        self._last_labels: tuple[Any, LabelClass] | None = None

    def expect(self, pods: int) -> None:
        """Sets the expected number of pods.

        Jobs come by the thousand, most with one pod: remembering more owners than pods can exist would waste memory.
        """
        self._most_owners = min(max(pods, _FEW_OWNERS), _MOST_OWNERS)

    def of(self, pod: Pod) -> PodClass:
        """The class of a pod: as booked if it is bound, else as pending."""
        booked = self._booked.get(id(pod))
        return (booked if booked is not None else self._profile(pod)).pod_class

    def book(self, pod: Pod) -> PodProfile:
        """The profile of a pod, cached until `forget`; the caller must keep the object alive."""
        profile = self._booked[id(pod)] = self._profile(pod)
        return profile

    def _profile(self, pod: Pod) -> PodProfile:
        spec, owners = pod.spec, pod.metadata.owner_references
        affinity = spec.affinity
        if affinity is not None and owners and spec.node_name and pod.stays_with_its_node:
            affinity = _among_pods(affinity)
        claimed = self.asked_gpus.claimed_by(pod) if pod.metadata.annotations.claim else 0
        fields = _profile_fields(pod, affinity, claimed)
        kin = owners[0].uid if owners else id(spec.containers)
        last = self._last.get(kin)
        if last is not None and last[0] == fields:
            return last[1]
        if last is not None and _are_of_one_class(last[0], fields):
            pod_class = last[1].pod_class
        else:
            written = pod if affinity is spec.affinity else _change(pod, spec=_change(spec, affinity=affinity))
            pod_class = self._written(written, "")
        profile = PodProfile(pod_class, pod, fields[_IS_READY])
        # A pod that is being resized, or has individual needs, may differ in class from one with equal shared parts.
        if is_settled(pod) and not _has_its_own(pod):
            if len(self._last) >= self._most_owners:
                self._last.clear()
            self._last[kin] = fields, profile
        return profile

    def forget(self, pod: Pod) -> None:
        """Removes a pod that is no longer booked from the cache."""
        self._booked.pop(id(pod), None)

    def gpus_of(self, profile: PodProfile) -> int:
        """GPUs of its node that each pod of the profile uses."""
        result = self._gpus.get(profile.pod_class)
        if result is None:
            result = self._gpus[profile.pod_class] = self.asked_gpus.of(profile.pod)
        return result

    def class_as_placed(self, pod: Pod) -> PodClass:
        """The class of a pod as if pending, including everything that binds it to nodes."""
        return self._written(pod, "")

    def pinned(self, pod: Pod) -> PodClass:
        """The class of a pod that may only be on its named node."""
        return self._written(pod, pod.node)

    def read_resources(self, nodes: Iterable[Node]) -> None:
        """Assigns the first columns to the resources of nodes."""
        for node in nodes:
            if not node.status.allocatable.keys() <= self.columns.keys():
                for name in sorted(counted(node.status.allocatable)):
                    self.column(name)
        self.columns_of_nodes = len(self.columns)

    def column(self, resource: str) -> int:
        """The column of a resource, assigned at first use."""
        result = self.columns.get(resource)
        if result is None:
            result = self.columns[resource] = len(self.columns)
            self.resources.append(resource)
        return result

    def _written(self, pod: Pod, node_name: str) -> PodClass:
        metadata, spec = pod.metadata, pod.spec
        claimed, request = self.asked_gpus.claimed_by(pod), pod_request(pod)
        held = None if is_settled(pod) else pod_held(pod)
        if held is not None and held == request:
            held = None
        stays = pod.stays_with_its_node or ("to completion" if pod.runs_to_completion else False)
        text = _write(
            (
                (metadata.namespace, metadata.labels, bool(metadata.deletion_timestamp), stays, node_name, held),
                (spec.priority, spec.node_selector, spec.affinity, spec.tolerations, spec.topology_spread_constraints),
                (spec.containers, spec.init_containers, spec.overhead, spec.resources, spec.host_network),
                (spec.host_users, spec.volumes, spec.resource_claims),
                (metadata.name, metadata.uid, pod.status.resource_claim_statuses) if _has_its_own(pod) else None,
                (metadata.annotations.claim, claimed) if claimed else metadata.annotations.claim,
            )
        )
        pod_class = self._classes.get(text)
        if pod_class is None:
            kind = PodClassKey(self._needs_of(pod, node_name), self._label_class(pod), text)
            pod_class = self._classes[text] = PodClass(len(self.all), pod, kind)
            self.all.append(pod_class)
            self.written_bytes += len(text)
            pod_class.request = pod_class.held = self._request(_with_claimed(request, claimed))
            if held is not None:
                pod_class.held = self._request(_with_claimed(held, claimed))
            if held is not None or pod_class.leaving:
                pod_class.anew = self._written(_anew(pod), node_name)
        return pod_class

    def _label_class(self, pod: Pod) -> LabelClass:
        metadata = pod.metadata
        fields = (metadata.namespace, metadata.labels, bool(metadata.deletion_timestamp))
        if self._last_labels is not None and self._last_labels[0] == fields:
            return self._last_labels[1]
        key = _write(fields)
        label_class = self._labels.get(key)
        if label_class is None:
            label_class = self._labels[key] = LabelClass(len(self.label_classes), pod)
            self.label_classes.append(label_class)
        self._last_labels = fields, label_class
        return label_class

    def _needs_of(self, pod: Pod, node_name: str) -> Needs:
        spec = pod.spec
        terms = spec.affinity.node_affinity.required if spec.affinity else None
        fields = (node_name, spec.node_selector, terms, spec.tolerations)
        if self._last_needs is not None and self._last_needs[0] == fields:
            return self._last_needs[1]
        key = _write(fields)
        needs = self._needs.get(key)
        if needs is None:
            needs = self._needs[key] = Needs(len(self._needs), pod, node_name)
        self._last_needs = fields, needs
        return needs

    def _request(self, amounts: dict[str, int]) -> Request:
        columns = self.columns
        if not columns.keys() >= amounts.keys():
            for name in sorted(amounts):
                self.column(name)
        return tuple(sorted([(columns[PODS], 1), *[(columns[name], amount) for name, amount in amounts.items()]]))


_IS_READY, _INDIVIDUAL = 2, 3  # among the fields of a profile; number of those that are not fields of its class


def _profile_fields(pod: Pod, affinity: Affinity | None, claimed: int) -> tuple[Any, ...]:
    """Pods with equal fields are of one profile, except pods with individual needs."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    return (
        metadata.annotations,
        status.phase,
        pod.is_ready,
        spec.containers,
        metadata.labels,
        metadata.namespace,
        metadata.deletion_timestamp,
        metadata.owner_references,
        spec.priority,
        spec.node_selector,
        spec.tolerations,
        affinity,
        spec.topology_spread_constraints,
        spec.init_containers,
        spec.volumes,
        spec.overhead,
        spec.resources,
        spec.resource_claims,
        spec.host_network,
        spec.host_users,
        status.container_statuses,
        status.init_container_statuses,
        status.resources,
        status.allocated_resources,
        claimed,
    )


def _are_of_one_class(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """Whether pods with these fields are of one class."""
    return one[_INDIVIDUAL:] == other[_INDIVIDUAL:] and _of_class(one[0]) == _of_class(other[0])


def _of_class(annotations: Annotations) -> tuple[str, str, bool, str]:
    """The annotations that are part of a class."""
    runs_to_completion = annotations.safe_to_evict == "on-completion"
    return annotations.mirror_pod, annotations.daemonset_pod, runs_to_completion, annotations.claim


def _has_its_own(pod: Pod) -> bool:
    """Whether the pod has a volume or device claim of its own."""
    spec = pod.spec
    if not spec.volumes and not spec.resource_claims:
        return False
    return any(each.ephemeral is not None for each in spec.volumes) or any(
        not each.resource_claim_name for each in spec.resource_claims
    )


def _with_claimed(amounts: dict[str, int], gpus: int) -> dict[str, int]:
    """The amounts with the GPUs of the pod's GpuClaim, if these are more than its requests."""
    return amounts | {names.NVIDIA_GPU: max(gpus, amounts.get(names.NVIDIA_GPU, 0))} if gpus else amounts


def _among_pods(affinity: Affinity) -> Affinity:
    """The affinity without node affinity."""
    return _change(affinity, node_affinity=NodeAffinity())


def _anew(pod: Pod) -> Pod:
    metadata = _change(pod.metadata, deletion_timestamp="")
    status = _change(
        pod.status, container_statuses=(), init_container_statuses=(), resources=None, allocated_resources={}
    )
    return _change(pod, metadata=metadata, status=status)
