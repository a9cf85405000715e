"""Wanted nodes: one record for each node that a pool lacks, and the answer of scaling to the waiting pods.

Scaling decides which nodes are wanted and why, and when each node may be requested. The smart pod planner requests
nodes that may be requested now, and all wanted nodes become purchases in reports. Drains keep nodes that would be
bought again.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.plan.capacity import CapacityLimit, Why
from reconciler.model.policy.gpu import GpuPool
from reconciler.plan.capacity.offerings import LaunchOption
from reconciler.plan.capacity.refusals import PodWait

Requestable = Literal[
    "now",
    "next_attempt",  # earlier requests of the pool failed
    "never",  # a limit forbids the node
]
ANY_OPTION = LaunchOption("")  # a node that is not requested now may have no launch option yet


class WantedNode(msgspec.Struct, frozen=True, kw_only=True):
    """One node that a pool lacks."""

    pool: str
    provisioner: str  # that wants the node; a pool may have several
    why: Why
    requestable: Requestable = "now"
    choice: LaunchOption = ANY_OPTION
    labels: dict[str, str] = {}  # labels that the node will have
    memory: str = "0"  # memory for pods, as Kubernetes writes it
    pods: tuple[Pod, ...] = ()  # pods that need the node; empty unless the reason is demand
    is_visible: bool = False  # Karpenter sees one of these pods, and buys a node without a request
    limit: CapacityLimit | None = None  # the limit that forbids the node


def shared_among_nodes(pool: Declared[GpuPool], pods: Sequence[Pod]) -> list[tuple[Pod, ...]]:
    """Pods of each of the nodes that the pods need at least, by their GPUs. No packing is done, because no node is
    bought now.
    """
    nodes = -(-sum(pod.gpus for pod in pods) // pool.spec.devices.count)
    count = max(1, min(nodes, len(pods))) if pods else 0
    sizes = [len(pods) // count + (at < len(pods) % count) for at in range(count)]
    return [tuple(pods[sum(sizes[:at]) : sum(sizes[: at + 1])]) for at in range(count)]


class NodeWithRoom(msgspec.Struct, frozen=True, gc=False):
    """A usable node that stays and has room for a pod."""

    node: str
    pool: str = ""  # pool whose mode decides whether the pod's gate is removed; empty: the node has no pool


class CapacityAnswer(msgspec.Struct, frozen=True, dict=True):
    """Capacity for the waiting pods: what exists, and what is missing."""

    wanted: tuple[WantedNode, ...] = ()  # in the order of the provisioners
    places: dict[str, NodeWithRoom] = {}  # nodes for pods behind the capacity gate, by uid
    schedulable: frozenset[str] = frozenset()  # uids of pods without a gate that fit on existing nodes
    unfit: frozenset[str] = frozenset()  # smart pods whose node has arrived and fits none of their pods
    used: frozenset[str] = frozenset()  # smart pods without a node that somebody waits for
    asked: dict[str, str] = {}  # uid of a pod -> pool where a smart pod requested the pod's machine
    waits: tuple[PodWait, ...] = ()  # what each pod without a place waits for

    @cached_property
    def wanted_by_pool(self) -> Mapping[str, Sequence[WantedNode]]:
        by_pool = defaultdict(list)
        for each in self.wanted:
            by_pool[each.pool].append(each)
        return by_pool

    @property
    def requests(self) -> list[WantedNode]:
        """Nodes that may be requested now."""
        return [each for each in self.wanted if each.requestable == "now"]

    def lacking(self, why: Why) -> list[WantedNode]:
        """Nodes that are missing now for a reason. Pods whose nodes wait for the next attempt lack no node yet: no
        launch option is known to have capacity.
        """
        later = () if why == "demand" else ("next_attempt",)
        return [each for each in self.wanted if each.why == why and each.requestable in ("now", *later)]
