"""Assignment of one pool's nodes to waiting pods: marked nodes that are kept, and in-flight machines.

Changes the what-if fleet: use within a fork. A machine whose instance type or zone is not known yet is treated as a
machine that Karpenter would buy.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property

import msgspec
import numpy as np
from msgspec.structs import replace

from reconciler.fleet.binpack.offers import BinpackLimits, labels_of
from reconciler.fleet.binpack.pack import pack
from reconciler.fleet.first_fit import Search
from reconciler.fleet.questions import place
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Ref
from reconciler.model.policy.scaling import SizeLack, bounded_size
from reconciler.plan.capacity.demand import is_gated
from reconciler.plan.capacity.refusals import NAMELESS, PodWait, WaitsFor
from reconciler.plan.capacity.wanted_nodes import WantedNode, shared_among_nodes
from reconciler.plan.nodes.ownership import may_take_pods
from reconciler.plan.scaling.demand.fit import DemandQueue, PoolHeadroom, PoolShapes, room_for
from reconciler.plan.scaling.demand.in_flight_nodes import (
    Coming,
    OnTheirWay,
    coming_of,
    instead_of,
    on_their_way,
    without,
)
from reconciler.plan.scaling.demand.shapes import shapes_of
from reconciler.plan.scaling.marks import KEY
from reconciler.plan.scaling.pool_view import PoolView
from reconciler.plan.sums import is_empty

MARKED = "marked/"


def marked_name(node: Node, at: int) -> str:
    """Simulated name of a marked node without its mark. `at`: its index among the tried nodes."""
    return f"{MARKED}{at:06}/{node.name}"


class Demand(msgspec.Struct, frozen=True):
    """Demand of waiting pods on one provisioner."""

    pods: tuple[Pod, ...] = ()  # pods that the provisioner serves, or would serve first
    keeps: Mapping[str, int] = {}  # names of marked nodes that some of the pods fit on, with the number of pods
    wanted: tuple[WantedNode, ...] = ()
    used: frozenset[str] = frozenset()  # smart pods in flight that somebody waits for
    requested_pods: tuple[Pod, ...] = ()  # pods that smart pods were created for
    left: int = 0  # number of pods for which no more nodes may be bought
    taken_machines: int = 0  # in-flight machines that the pods will use
    taken_nodes: frozenset[str] = frozenset()  # unusable nodes that the pods will use

    @property
    def new_nodes(self) -> int:
        return sum(each.requestable == "now" for each in self.wanted)

    @property
    def for_new(self) -> int:
        """Number of pods that the new nodes are for."""
        return sum(len(each.pods) for each in self.wanted if each.requestable == "now")


class Serving:
    """One pool that serves waiting pods. Mutable."""

    def __init__(self, pool: PoolShapes, queue: DemandQueue) -> None:
        self._pool, self._pool_view, self._queue = pool, pool.pool_view, queue
        self._fleet = self._pool_view.context.fleet.snapshot
        self._budget = self._pool_view.context.inputs.budget
        self._way = OnTheirWay({}, frozenset(), (), {})
        self._coming = Coming()
        self._riding: set[str] = set()  # smart pods whose machines other pods use too
        self._hosts: set[str] = set()  # in-flight machines and nodes that pods will use, by simulated name
        self._launches = 0  # in-flight machines of unknown type that pods will use
        self.pods: list[Pod] = []
        self.keeps: Counter[str] = Counter()

    @property
    def fitting(self) -> list[Pod]:
        """Waiting pods that fit on a new node of the pool."""
        return self._queue.fitting(self._pool.name)

    def keep_marked(self) -> None:
        """Place pods on marked nodes as if these had no mark: busy nodes first, which stay anyway, then empty nodes,
        the last in removal order first.
        """
        pods, pool_view, fleet = self.fitting, self._pool_view, self._pool_view.context.fleet
        marked = (
            [each.node for each in pool_view.ours if may_take_pods(each.node, pool_view.context.now)] if pods else []
        )
        empty = {node.name for node in marked if is_empty(fleet, node)}
        last_first = pool_view.order.sorted(marked)[::-1]
        last_first.sort(key=lambda node: node.name in empty)
        name_of = {marked_name(node, at): node for at, node in enumerate(last_first)}
        rows = [instead_of(self._fleet, node, without(node, KEY, name)) for name, node in name_of.items()]
        found = {uid: name_of[name].name for uid, name in self._placed(pods, rows).items()}
        self.keeps = Counter(name for name in found.values() if name in empty)
        self._serve(pods, "kept_node", {uid: Ref("Node", "", name) for uid, name in found.items()})

    def cover(self) -> None:
        """Assign pods to the machines that smart pods request for them."""
        pods = self.fitting
        if pods:
            self._way = on_their_way(self._pool_view, self._fleet, self._pool.shapes, pods)
            self._serve(pods, "smart_pod", {uid: self._smart_pod(name) for uid, name in self._way.covered.items()})

    def ride(self) -> None:
        """Place pods on in-flight machines, whatever pods these were bought for."""
        pods = self.fitting
        if not pods:
            return
        self._coming = coming_of(self._pool_view, self._pool.shapes, self._fleet)
        there = {f"coming/{node.name}": node for node in self._coming.instead_of}
        # The shape of such a node is without the requests of DaemonSets already.
        rows = [
            instead_of(self._fleet, there[node.name], node, daemons=False)
            if node.name in there
            else self._fleet.bring(node)
            for node in self._coming.nodes
        ]
        found = self._placed(pods, [*rows, *self._way.rows])
        requested = {f"coming/asked/{name}": name for name in self._way.rows.values()}
        self._riding |= {requested[name] for name in found.values() if name in requested}
        self._take(pods, found, requested.keys())
        smart_pods = {uid: self._smart_pod(requested[name]) for uid, name in found.items() if name in requested}
        self._serve(pods, "smart_pod", smart_pods)
        others = ((uid, name.removeprefix("coming/")) for uid, name in found.items() if name not in requested)
        nodes = {node.name for node in self._coming.instead_of}
        machines = {uid: Ref("Node" if name in nodes else "NodeClaim", "", name) for uid, name in others}
        self._serve(pods, "machine", machines)

    def await_launches(self) -> None:
        """Assign pods that Karpenter sees to machines of unknown type: pack them on the cheapest nodes, as many as
        Karpenter has bought.
        """
        pods = [pod for pod in self.fitting if not is_gated(pod)] if self._coming.vague else []
        if pods:
            packed = pack(self._fleet, pods, self._pool.shapes, BinpackLimits(self._coming.vague, self._budget))
            self._launches = len(packed.nodes)
            placed = {pod.metadata.uid: NAMELESS for node in packed.nodes for pod in node.pods}
            self._serve(pods, "launch", placed)

    def _take(self, pods: Iterable[Pod], found: Mapping[str, str], requested: AbstractSet[str]) -> None:
        """Note the machines that pods will use. For pods that Karpenter sees, Karpenter buys a node beside each smart
        pod, so these pods use no machine of a smart pod.
        """
        requests = self._pool_view.context.draft.requests.of(self._pool_view.pool.name)
        held = requested | {f"coming/{each.node.name}" for each in requests if each.node is not None}
        gated = {pod.metadata.uid for pod in pods if is_gated(pod)}
        self._hosts |= {host for uid, host in found.items() if uid in gated or host not in held}

    @property
    def taken_nodes(self) -> frozenset[str]:
        """Unusable nodes that pods will use."""
        return frozenset(node.name for node in self._coming.instead_of if f"coming/{node.name}" in self._hosts)

    @property
    def taken_machines(self) -> int:
        """Number of in-flight machines that pods will use."""
        hosts = self._hosts | {f"coming/asked/{name}" for name in self._way.used}
        return len(hosts) - len(self.taken_nodes) + self._launches

    @cached_property
    def room(self) -> PoolHeadroom:
        return room_for(self._pool_view)

    @property
    def used(self) -> frozenset[str]:
        """Smart pods in flight that somebody waits for."""
        return self._way.used | self._riding

    @property
    def requested_pods(self) -> tuple[Pod, ...]:
        """Pods that smart pods were created for."""
        return self._way.pods

    def _smart_pod(self, name: str) -> Ref:
        return Ref("Pod", self._pool_view.pool.spec.smart_pods.namespace, name)

    def _serve(self, pods: Iterable[Pod], waits_for: WaitsFor, awaited: Mapping[str, Ref]) -> None:
        """Mark pods as served. `awaited`: by uid, the object that a served pod waits for."""
        for pod in pods if awaited else ():
            uid = pod.metadata.uid
            if uid in awaited:
                self.pods.append(pod)
                self._queue.serve(PodWait(pod, waits_for, self._pool.pool, awaited[uid]))

    def _placed(self, pods: list[Pod], rows: Sequence[int]) -> dict[str, str]:
        """By uid, the rows of placed pods."""
        return placed_among(self._fleet, pods, rows, self._budget) if rows and pods else {}


def placed_among(fleet: Snapshot, pods: list[Pod], rows: Sequence[int], budget: int | None) -> dict[str, str]:
    """By uid, the names of the rows of placed pods. Only the given rows are tried."""
    allowed: Mask = np.zeros(fleet.rows.capacity, bool)
    allowed[list(rows)] = True
    return place(fleet, pods, Search(allowed=allowed, budget=budget, tells_why=False)).destinations


# --- Nodes that a pool lacks without waiting pods: to minSize, and to warmNodes.
#
# A warm node is a free node that is bought in advance. Free are nodes with room for a pod of any size, and in-flight
# machines, unless a waiting pod will use them. Nodes are counted as in size.py; otherwise a bought node would be
# surplus when it arrives. Nodes bought for minSize count as free too. Smart pods for such nodes are interchangeable:
# whether one was created for minSize or warmNodes does not matter for which smart pods are still needed.


class Shortfall(msgspec.Struct, frozen=True):
    """Nodes that one pool lacks."""

    lack: SizeLack = SizeLack()  # nodes missing to the bounds of the size
    warm: int = 0  # in addition
    limited: int = 0  # wanted warm nodes that a limit forbids
    used: frozenset[str] = frozenset()  # smart pods for such nodes that are still needed

    @property
    def nodes(self) -> int:
        return self.lack.nodes + self.warm


def shortfall(pool_view: PoolView, demand: Demand, surplus: int) -> Shortfall:
    """`surplus`: empty nodes that are marked or will be marked."""
    wish = pool_view.wish.spec
    machines = len(pool_view.arriving) + demand.new_nodes
    lack = bounded_size(wish, pool_view.size - surplus + machines).lack
    lacks_warm = _lacks_warm(pool_view, demand, surplus)
    short = max(0, lack.nodes - pool_view.requested_machines)
    warm = max(0, lacks_warm - _unused(pool_view, demand) - short)
    room = max(0, room_for(pool_view).nodes - demand.new_nodes - short) if warm else 0
    used = _needed(pool_view, demand, lack.nodes, min(lacks_warm, wish.max_size - pool_view.size - machines))
    return Shortfall(replace(lack, nodes=short), min(warm, room), warm - min(warm, room), used)


def _lacks_warm(pool_view: PoolView, demand: Demand, surplus: int) -> int:
    """Number of warm nodes that neither exist nor are bought, without requests of smart pods."""
    if not pool_view.wish.spec.warm_nodes:
        return 0
    fleet = pool_view.context.fleet
    leaving = sum(is_empty(fleet, node) for node in pool_view.leaving_otherwise)
    free = len(pool_view.free - demand.taken_nodes) - leaving - surplus - pool_view.use.closed_nodes
    bought = len(pool_view.arriving) - demand.taken_machines
    return max(0, pool_view.wish.spec.warm_nodes - max(0, free) - max(0, bought))


def _unused(pool_view: PoolView, demand: Demand) -> int:
    """Number of requested machines that no waiting pod will use. Bought machines are used first."""
    beyond = max(0, demand.taken_machines - len(pool_view.arriving))
    return max(0, pool_view.requested_machines - beyond)


def _needed(pool_view: PoolView, demand: Demand, lacks_size: int, lacks_warm: int) -> frozenset[str]:
    """Smart pods without pods of their own, at most as many as nodes are missing."""
    requests = pool_view.context.draft.requests.of(pool_view.pool.name)
    asking = [each.name for each in requests if each.is_open and each.request.why != "demand"]
    unused = [each for each in asking if each not in demand.used]
    needed = max(lacks_size - (len(asking) - len(unused)), lacks_warm, 0)
    return frozenset(unused[:needed])


def wanted_for_size(pool_view: PoolView, short: Shortfall) -> Iterator[WantedNode]:
    """One wanted node for each missing node. All of them wait while no launch option may be tried."""
    of = WantedNode(pool=pool_view.pool.name, provisioner=pool_view.wish.name, why=short.lack.field)
    limited = replace(of, why="warmNodes", requestable="never", limit=room_for(pool_view).limit)
    outlook = pool_view.outlook
    if short.nodes and outlook.may_request(pool_view.context.now):
        choice = outlook.left[0]
        shape = next(each for each in shapes_of(pool_view) if each.name == choice.instance_type)
        labels = labels_of(shape, choice.zone, choice.capacity_type)
        of = replace(of, choice=choice, labels=labels, memory=shape.allocatable.get("memory", "0"))
    else:
        of = replace(of, requestable="next_attempt", choice=outlook.next_attempt[0])
    yield from (of,) * short.lack.nodes
    yield from (replace(of, why="warmNodes"),) * short.warm
    yield from (limited,) * short.limited


def without_option(pool_view: PoolView, pods: Sequence[Pod]) -> Iterator[WantedNode]:
    """Nodes for pods without a launch option now, as few as the GPUs of the pods allow."""
    of = _of_demand(pool_view)
    for there in shared_among_nodes(pool_view.pool, pods):
        yield replace(of, requestable="next_attempt", choice=pool_view.outlook.next_attempt[0], pods=there)


def beyond_limit(pool_view: PoolView, pods: Sequence[Pod]) -> Iterator[WantedNode]:
    """Nodes that a limit forbids, as few as the GPUs of the pods allow."""
    of = _of_demand(pool_view)
    for there in shared_among_nodes(pool_view.pool, pods):
        yield replace(of, requestable="never", limit=room_for(pool_view).limit, pods=there)


def _of_demand(pool_view: PoolView) -> WantedNode:
    return WantedNode(pool=pool_view.pool.name, provisioner=pool_view.wish.name, why="demand")
