"""What pods of one kind need: what is found out for one of them holds for all."""

from hashlib import blake2b

from reconciler.fleet.obstacles import DeviceClassAsResource, OwnUsersOnHostNetwork, RestartsAllContainers
from reconciler.fleet.tolerance import Tolerance
from reconciler.model.cluster.pod import NodeSelector, Pod, Port, Toleration
from reconciler.model.obstacle import Obstacle

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
