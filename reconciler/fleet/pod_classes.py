"""Classes of pods: pods of one class have the same needs, so a result for one of them holds for all."""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY, PODS, STORAGE, GpuRequests, is_settled, pod_held, pod_request
from reconciler.fleet.node_terms import Tolerance
from reconciler.fleet.obstacles import DeviceClassAsResource, OwnUsersOnHostNetwork, RestartsAllContainers
from reconciler.model import names
from reconciler.model.cluster.pod import Affinity, NodeAffinity, NodeSelector, Pod, Port, Toleration
from reconciler.model.plan.decision import Obstacle

Request = tuple[tuple[int, int], ...]  # column of a resource, amount; in order of columns
_DEVICE_CLASS = "deviceclass.resource.kubernetes.io/"
Rank = tuple[int, int, int, int, bytes]


class LabelClass:
    """Pods of one namespace with the same labels, leaving or not: all that questions about other pods look at."""

    __slots__ = ("labels", "leaving", "namespace", "number")

    def __init__(self, number: int, pod: Pod) -> None:
        self.number = number
        self.namespace = pod.metadata.namespace
        self.labels = pod.metadata.labels
        self.leaving = pod.metadata.leaving


class Needs:
    """What of a pod's needs labels, taints and names of nodes alone can answer."""

    __slots__ = ("node_name", "number", "selector", "terms", "tolerance", "tolerations")

    def __init__(self, number: int, pod: Pod, node_name: str) -> None:
        spec = pod.spec
        self.number = number
        self.node_name = node_name  # the only node that the pod may be on; nothing where any may do
        self.selector: dict[str, str] = spec.node_selector
        self.terms: NodeSelector | None = spec.affinity.node_affinity.required if spec.affinity else None
        self.tolerations: tuple[Toleration, ...] = spec.tolerations
        self.tolerance = Tolerance(spec.tolerations)


class PodClassKey:
    """What tells a class from all others, and what it shares with some."""

    __slots__ = ("label_class", "needs", "text")

    def __init__(self, needs: Needs, label_class: LabelClass, text: bytes) -> None:
        self.needs = needs
        self.label_class = label_class
        self.text = text


class PodClass:
    """Pods that need the same of a node and of other pods.

    `request` is what such a pod asks of a node to come to, `held` what it takes of the one where it is: they differ
    while it is resized in place. `anew` is the class of the pod that takes its place elsewhere: neither leaving nor
    resized.
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
        self.number = number  # in order of first sight
        self.pod = pod  # one of them
        self.needs = kind.needs
        self.label_class = kind.label_class
        self.text = kind.text  # of equal texts there is one class: an order that does not depend on who came first
        self.priority = pod.spec.priority
        self.leaving = pod.metadata.leaving
        self.goes_with_its_node = pod.stays_with_its_node
        self.needs_another_place = not (pod.stays_with_its_node or pod.runs_to_completion or pod.metadata.leaving)
        self.ports = _ports(pod)
        self.gpu_claim = (pod.metadata.namespace, pod.metadata.annotations.claim)  # no name where it has none
        self.is_plain = not self.ports and _is_plain(pod)  # says nothing of ports, volumes, claims and other pods
        self.unmodelled = _unmodelled(pod)
        self.request: Request = ()
        self.held: Request = ()
        self._anew: PodClass | None = None  # not itself, which would keep it from being let go
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
        """By which it is known again later, and in another process."""
        if not self._key:
            self._key = blake2b(self.text, digest_size=8).hexdigest()
        return self._key

    @property
    def rank(self) -> Rank:
        """Those that are hardest to place first: important ones, then those that ask for devices, then large ones."""
        if self._rank is None:
            amounts = dict(self.request)
            devices = sum(amount for column, amount in self.request if column > 3)
            self._rank = (-self.priority, -devices, -amounts.get(0, 0), -amounts.get(1, 0), self.text)
        return self._rank


def _ports(pod: Pod) -> tuple[Port, ...]:
    """Ports of the host that it takes: those of containers and sidecars; what only runs before them takes none."""
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
    """What the pod asks for that nobody here can judge; such a pod is never said to fit."""
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


# --- Owner of the classes of pods, and of the columns of the resources that they ask for.
#
# Most pods are told by a look at the last pod of the same owner, since what they have in common is the same object, or
# equal. For the others everything that matters is written out, which tells each class for certain.
#
# A DaemonSet ties each of its pods to a node by the node's name. Where such a pod is it stays, so that is no part of
# its class there, and all pods of the DaemonSet are of one.

_FEW_OWNERS, _MOST_OWNERS = 1_000, 20_000
_write = msgspec.json.Encoder(order="deterministic").encode
_change = msgspec.structs.replace


class Classes:
    """All classes that were seen."""

    def __init__(self, gpu_requests: GpuRequests) -> None:
        self.asked_gpus = gpu_requests  # as GpuClaims are seen now; whoever replaces it books the pods of these anew
        self.columns: dict[str, int] = {CPU: 0, MEMORY: 1, STORAGE: 2, PODS: 3}
        self.resources: list[str] = list(self.columns)  # their names, by column
        self.all: list[PodClass] = []
        self.written_bytes = 0  # that tell them all
        self._most_owners = _FEW_OWNERS  # whose last pod is remembered, with what it is told by
        self.label_classes: list[LabelClass] = []
        self._last: dict[str | int, tuple[tuple[Any, ...], PodClass]] = {}
        self._booked: dict[int, PodClass] = {}  # of pods that are booked, by the identity of the object
        self._gpus: dict[PodClass, int] = {}
        self._classes: dict[bytes, PodClass] = {}
        self._needs: dict[bytes, Needs] = {}
        self._labels: dict[bytes, LabelClass] = {}
        self._last_needs: tuple[Any, Needs] | None = None
        self._last_labels: tuple[Any, LabelClass] | None = None

    def expect(self, pods: int) -> None:
        """So many there are. Jobs come by the thousand, most of one pod: to remember more owners than there can be pods
        for would only take room."""
        self._most_owners = min(max(pods, _FEW_OWNERS), _MOST_OWNERS)

    def of(self, pod: Pod) -> PodClass:
        """The class of a pod, where it is booked or anywhere else if it waits."""
        booked = self._booked.get(id(pod))
        if booked is not None:
            return booked
        spec, owners = pod.spec, pod.metadata.owner_references
        affinity = spec.affinity
        if affinity is not None and owners and spec.node_name and pod.stays_with_its_node:
            affinity = _among_pods(affinity)
        fields = *_class_fields(pod, affinity), self.asked_gpus.claimed_by(pod)
        kin = owners[0].uid if owners else id(spec.containers)
        last = self._last.get(kin)
        if last is not None and last[0] == fields:
            return last[1]
        if affinity is not spec.affinity:
            pod = _change(pod, spec=_change(spec, affinity=affinity))
        pod_class = self._written(pod, "")
        # One that is being resized, or has something of its own, may be of another class than one that looks the same.
        if is_settled(pod) and not _has_its_own(pod):
            if len(self._last) >= self._most_owners:
                self._last.clear()
            self._last[kin] = fields, pod_class
        return pod_class

    def of_booked(self, pods: Iterable[Pod]) -> tuple[PodClass, ...]:
        """The classes of pods that are all booked, in the order of the pods."""
        return tuple(map(self._booked.__getitem__, map(id, pods)))

    def book(self, pod: Pod) -> PodClass:
        """The same, remembered until the pod is forgotten: as long, the caller holds the object."""
        pod_class = self._booked[id(pod)] = self.of(pod)
        return pod_class

    def forget(self, pod: Pod) -> None:
        """It is booked no longer."""
        self._booked.pop(id(pod), None)

    def gpus_of(self, pod_class: PodClass, pod: Pod) -> int:
        """GPUs of its node that are in use while a pod of the class is there."""
        result = self._gpus.get(pod_class)
        if result is None:
            result = self._gpus[pod_class] = self.asked_gpus.of(pod)
        return result

    def class_as_placed(self, pod: Pod) -> PodClass:
        """The class of a pod that is asked about wherever it is: with all that ties it to nodes."""
        return self._written(pod, "")

    def pinned(self, pod: Pod) -> PodClass:
        """The class of a pod that may be on no other node than the one that it names."""
        return self._written(pod, pod.node)

    def column(self, resource: str) -> int:
        """The column of a resource, given at first sight."""
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


def _class_fields(pod: Pod, affinity: Affinity | None) -> tuple[Any, ...]:
    """Pods of which all this is equal are of one class, but for those that have something of their own."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    return (
        spec.containers,
        metadata.labels,
        metadata.namespace,
        metadata.deletion_timestamp,
        metadata.owner_references,
        metadata.annotations.mirror_pod,
        metadata.annotations.daemonset_pod,
        pod.runs_to_completion,
        metadata.annotations.claim,
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
    )


def _has_its_own(pod: Pod) -> bool:
    """Whether something was made for this pod alone: a volume, or a claim for devices."""
    spec = pod.spec
    if not spec.volumes and not spec.resource_claims:
        return False
    return any(each.ephemeral is not None for each in spec.volumes) or any(
        not each.resource_claim_name for each in spec.resource_claims
    )


def _with_claimed(amounts: dict[str, int], gpus: int) -> dict[str, int]:
    """With the GPUs of its GpuClaim, where these are more than it asks for by itself."""
    return amounts | {names.NVIDIA_GPU: max(gpus, amounts.get(names.NVIDIA_GPU, 0))} if gpus else amounts


def _among_pods(affinity: Affinity) -> Affinity:
    """Without what ties it to nodes."""
    return _change(affinity, node_affinity=NodeAffinity())


def _anew(pod: Pod) -> Pod:
    metadata = _change(pod.metadata, deletion_timestamp="")
    status = _change(
        pod.status, container_statuses=(), init_container_statuses=(), resources=None, allocated_resources={}
    )
    return _change(pod, metadata=metadata, status=status)
