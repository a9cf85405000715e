"""Messages of the scheduler extender, as kube-scheduler writes and reads them.

kube-scheduler sends `nodeCacheCapable` extenders the names of nodes only. Keys of the messages are in Pascal case;
objects of Kubernetes inside keep their own keys. Only the status 200 counts as an answer.
"""

from typing import Any

import msgspec

from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.pod import Amounts, Container, Pod, PodSpec, ResourceRequirements

HIGHEST_SCORE = 10  # of a node, in the answer to prioritize


class AskingPodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The parts of a pod's spec that express a preference among nodes or request resources."""

    affinity: dict[str, Any] = {}
    topology_spread_constraints: list[dict[str, Any]] = []
    overhead: Amounts = {}
    resources: ResourceRequirements | None = None
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()

    @property
    def prefers_nodes(self) -> bool:
        """Whether the scheduler scores nodes by a preference of the pod."""
        soft = "preferredDuringSchedulingIgnoredDuringExecution"
        spreads = (each.get("whenUnsatisfiable") == "ScheduleAnyway" for each in self.topology_spread_constraints)
        return any(isinstance(each, dict) and each.get(soft) for each in self.affinity.values()) or any(spreads)


class Nomination(msgspec.Struct, frozen=True, rename="camel"):
    """The part of a pod's status that an earlier preemption wrote."""

    nominated_node_name: str = ""


class AskingPod(msgspec.Struct, frozen=True):
    """A pod, as far as the extender reads it."""

    metadata: Metadata
    spec: AskingPodSpec = AskingPodSpec()
    status: Nomination = Nomination()

    @property
    def pod(self) -> Pod:
        """The pod, as far as its requests depend on it."""
        spec = PodSpec(
            overhead=self.spec.overhead,
            resources=self.spec.resources,
            containers=self.spec.containers,
            init_containers=self.spec.init_containers,
        )
        return Pod(self.metadata, spec)


class FilterRequest(msgspec.Struct, frozen=True, rename="pascal"):
    """Also the request of prioritize."""

    pod: AskingPod
    node_names: list[str] | None = None


class FilterAnswer(msgspec.Struct, frozen=True, rename="pascal"):
    """Nodes that the pod may run on, and why the others are excluded. Preemption may help on failed nodes, but not on
    unresolvable ones.
    """

    node_names: list[str] = []
    failed_nodes: dict[str, str] = {}
    failed_and_unresolvable_nodes: dict[str, str] = {}
    error: str = ""


class NodeScore(msgspec.Struct, frozen=True, rename="pascal"):
    """One element of the answer to prioritize."""

    host: str
    score: int


class BindRequest(msgspec.Struct, frozen=True):
    """The pod to bind. The keys of its identity have upper-case abbreviations."""

    name: str = msgspec.field(name="PodName")
    namespace: str = msgspec.field(name="PodNamespace")
    uid: str = msgspec.field(name="PodUID")
    node: str = msgspec.field(name="Node")


class BindAnswer(msgspec.Struct, frozen=True, rename="pascal"):
    """Empty if the pod is bound."""

    error: str = ""


class Victim(msgspec.Struct, frozen=True):
    """A pod that would be preempted."""

    uid: str = msgspec.field(name="UID")


class Victims(msgspec.Struct, frozen=True, rename="pascal"):
    """The pods that would be preempted on a node."""

    pods: list[Victim] = []
    num_pdb_violations: int = msgspec.field(name="NumPDBViolations", default=0)


class PreemptRequest(msgspec.Struct, frozen=True, rename="pascal"):
    """Candidate nodes of a preemption."""

    pod: AskingPod
    node_name_to_meta_victims: dict[str, Victims] = {}


class PreemptAnswer(msgspec.Struct, frozen=True, rename="pascal"):
    """The nodes on which the pod would fit without the victims."""

    node_name_to_meta_victims: dict[str, Victims] = {}
