"""Purchases for pods that are served in no other way: from which pool, and why other pools refuse.

Theory of operation. Pools are tried in the order of their provisioners, and a pod that one pool can't serve goes to
the next pool: a pool without room or capacity must not block a pod that another pool fits. Pools that may not
request nodes (`why_barred`) come last: the nodes they would buy are planned and reported with the reason. For pods
that Karpenter sees, nodes are packed as Karpenter does: the cheapest nodes. Pods behind the capacity gate come after
them, with the launch options of a pool in their order. Between two attempts of a pool its pods wait for the next
attempt.

A launch option that failed for a smart pod is not requested again while the shortage is remembered. A visible pod
that fits no other pool is left to Karpenter.

Changes the what-if fleet: use within a fork.
"""

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.fleet.binpack.offers import BinpackLimits, Shape, labels_of, new_node
from reconciler.fleet.binpack.pack import pack
from reconciler.fleet.binpack.result import NewNode, Packed
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.demand import is_gated
from reconciler.plan.capacity.offerings import LaunchOption, LaunchOptions
from reconciler.plan.capacity.refusals import (
    Bar,
    NoFit,
    NoRoom,
    NoStock,
    NotServed,
    PodWait,
    Unserved,
    WaitsFor,
    Why,
)
from reconciler.plan.capacity.wanted_nodes import Requestable, WantedNode
from reconciler.plan.containment import planning_for
from reconciler.plan.scaling.demand.assignment import Serving, placed_among
from reconciler.plan.scaling.demand.fit import PoolShapes


class PoolOffer(msgspec.Struct, frozen=True):
    """A pool that can request nodes, in its turn."""

    pool: PoolShapes
    serving: Serving
    barred: Bar | None = None  # why the pool may not request nodes

    @property
    def name(self) -> str:
        return self.pool.name

    @property
    def outlook(self) -> LaunchOptions:
        return self.pool.pool_view.outlook


class PurchaseResult(msgspec.Struct):
    """Result of one run over all pools."""

    wanted: dict[str, list[WantedNode]]  # by provisioner, also nodes that wait for the next attempt
    waits: dict[str, PodWait]  # by uid, of served pods
    refusals: dict[str, dict[str, Why]]  # by uid and pool
    full: dict[str, set[str]]  # by provisioner, uids of pods without room
    out_of_stock: dict[str, set[str]]  # by provisioner, uids of gated pods

    def add_refusals(self, earlier: "PurchaseResult") -> None:
        """Add the refusals of an earlier run with more pods."""
        self.refusals |= {uid: found for uid, found in earlier.refusals.items() if uid not in self.waits}
        for name in self.full:
            self.full[name] |= earlier.full[name] - earlier.waits.keys()
            self.out_of_stock[name] |= earlier.out_of_stock[name] - earlier.waits.keys()


class PurchaseRound:
    """One run over all pools. Mutable."""

    def __init__(self, offers: Sequence[PoolOffer], fitting: Mapping[str, Sequence[Pod]]) -> None:
        """`fitting`: by provisioner, pods that fit on a new node of its pool."""
        self._offers, self._fitting = offers, fitting
        names = [each.name for each in offers]
        self._purchase_result = PurchaseResult(
            {name: [] for name in names},
            {},
            {},
            {name: set() for name in names},
            {name: set() for name in names},
        )

    def run(self, without: AbstractSet[str]) -> PurchaseResult:
        """Buy for all pods except `without`."""
        for is_barred in (False, True):
            for leaves_to_karpenter in (False, True):
                for offer in self._offers:
                    if (offer.barred is not None) is is_barred:
                        with planning_for(offer.pool.pool):
                            self._ask(offer, without, leaves_to_karpenter)
        return self._purchase_result

    def _ask(self, offer: PoolOffer, without: AbstractSet[str], leaves_to_karpenter: bool) -> None:
        served = self._purchase_result.waits
        pods = [
            pod
            for pod in self._fitting.get(offer.name, ())
            if pod.metadata.uid not in served and pod.metadata.uid not in without
        ]
        seen = [pod for pod in pods if not is_gated(pod)]
        gated = [] if leaves_to_karpenter else [pod for pod in pods if is_gated(pod)]
        bought = self._as_karpenter_would(offer, seen, leaves_to_karpenter) if seen else []
        left = self._beside(offer, bought, gated) if bought and gated else gated
        if left:
            self._in_order(offer, left)

    def _room(self, offer: PoolOffer) -> int:
        """Number of nodes that the pool may still get."""
        return offer.serving.room.nodes - len(self._purchase_result.wanted[offer.name])

    def _as_karpenter_would(self, offer: PoolOffer, pods: list[Pod], leaves_to_karpenter: bool) -> list[WantedNode]:
        """The cheapest nodes of any shape. At first, launch options that recently failed for a smart pod are
        left out.
        """
        failed = {LaunchOption.of(each) for each in offer.outlook.failed}
        is_tried = offer.outlook.is_exhausted and not leaves_to_karpenter
        shapes = [
            each
            for each in offer.pool.shapes
            if leaves_to_karpenter or (not is_tried and LaunchOption(each.name) not in failed)
        ]
        if not shapes:
            self._refuse(offer, pods, _no_stock(offer))
            return []
        packed = self._packed(offer, pods, shapes)
        bought = [_wanted(offer, each, LaunchOption(each.shape), is_visible=True) for each in packed.nodes]
        self._take(offer, bought, "karpenter")
        return bought

    def _beside(self, offer: PoolOffer, bought: Iterable[WantedNode], pods: list[Pod]) -> list[Pod]:
        """Gated pods that do not fit on nodes that are bought for other pods."""
        pool_view, names, rows = offer.pool.pool_view, list[str](), list[int]()
        fleet, shapes = pool_view.context.fleet.snapshot, {each.name: each for each in offer.pool.shapes}
        for number, each in enumerate(bought):
            names.append(f"bought/{offer.name}/{number:06}")
            row = fleet.bring(new_node(names[-1], each.labels, shapes[each.choice.instance_type]))
            rows.append(row)
            for pod in each.pods:
                fleet.add(fleet.classes.of(pod).anew, row)
        found = placed_among(fleet, pods, rows, pool_view.context.inputs.budget)
        self._wait(offer, (pod for pod in pods if pod.metadata.uid in found), "karpenter")
        return [pod for pod in pods if pod.metadata.uid not in found]

    def _in_order(self, offer: PoolOffer, pods: list[Pod]) -> None:
        """Buy by one launch option after the other, each for the pods that do not fit the options before."""
        outlook = offer.outlook
        if outlook.is_exhausted:
            self._refuse(offer, pods, _no_stock(offer))
            self._purchase_result.out_of_stock[offer.name] |= {pod.metadata.uid for pod in pods}
            return
        requestable: Requestable = "now" if outlook.may_request(offer.pool.pool_view.context.now) else "next_attempt"
        wanted: list[WantedNode] = []
        for choice in outlook.left:
            shape = _shape_of(offer.pool.shapes, choice)
            if pods and shape is not None:
                packed = self._packed(offer, pods, [shape], len(wanted))
                wanted += [_wanted(offer, each, choice, requestable) for each in packed.nodes]
                pods = [each.pod for each in packed.unplaced] + list(packed.not_evaluated)
        self._take(offer, wanted, "request" if requestable == "now" else "retry")

    def _packed(self, offer: PoolOffer, pods: list[Pod], shapes: list[Shape], taken: int = 0) -> Packed:
        """Pack pods on new nodes, and record the pods that the pool's limits or the filters refuse."""
        room = max(0, self._room(offer) - taken)
        context = offer.pool.pool_view.context
        if not room:
            self._refuse(offer, pods, _no_room(offer))
            self._purchase_result.full[offer.name] |= {pod.metadata.uid for pod in pods}
            return Packed((), (), tuple(pods), (), 0)
        packed = pack(context.fleet.snapshot, pods, shapes, BinpackLimits(room, context.inputs.budget))
        is_full = len(packed.nodes) == room
        for each in packed.unplaced:
            lacks_room = is_full and not each.is_ruled_out
            self._refuse(offer, [each.pod], _no_room(offer) if lacks_room else NoFit(each.why, is_packed=True))
            if lacks_room:
                self._purchase_result.full[offer.name].add(each.pod.metadata.uid)
        self._refuse(offer, packed.not_evaluated, NotServed(Unserved.NOT_EVALUATED))
        return packed

    def _take(self, offer: PoolOffer, wanted: Iterable[WantedNode], waits_for: WaitsFor) -> None:
        for each in wanted:
            self._purchase_result.wanted[offer.name].append(each)
            self._wait(offer, each.pods, waits_for)

    def _wait(self, offer: PoolOffer, pods: Iterable[Pod], waits_for: WaitsFor) -> None:
        for pod in pods:
            if waits_for == "retry":
                wait = PodWait(pod, waits_for, offer.pool.pool, until=offer.outlook.again_at)
            else:
                wait = PodWait(pod, "pool" if offer.barred else waits_for, offer.pool.pool, bar=offer.barred)
            self._purchase_result.waits[pod.metadata.uid] = wait

    def _refuse(self, offer: PoolOffer, pods: Iterable[Pod], why: Why) -> None:
        for pod in pods:
            self._purchase_result.refusals.setdefault(pod.metadata.uid, {})[offer.pool.pool] = why


def _wanted(
    offer: PoolOffer,
    node: NewNode,
    choice: LaunchOption,
    requestable: Requestable = "now",
    *,
    is_visible: bool = False,
) -> WantedNode:
    shape = next(each for each in offer.pool.shapes if each.name == node.shape)
    return WantedNode(
        pool=offer.pool.pool,
        provisioner=offer.name,
        why="demand",
        requestable=requestable,
        choice=choice,
        labels=labels_of(shape, node.zone, node.capacity_type),
        memory=shape.allocatable.get("memory", "0"),
        pods=node.pods,
        is_visible=is_visible,
    )


def _no_room(offer: PoolOffer) -> NoRoom:
    return NoRoom(offer.serving.room.limit)


def _no_stock(offer: PoolOffer) -> NoStock:
    return NoStock(offer.outlook.tried)


def _shape_of(shapes: Iterable[Shape], choice: LaunchOption) -> Shape | None:
    """The shape with the offerings of the launch option; None if there are none."""
    shape = next((each for each in shapes if each.name == choice.instance_type), None)
    if shape is None:
        return None
    offerings = tuple(
        each
        for each in shape.offerings
        if choice.capacity_type in {"", each.capacity_type} and choice.zone in {"", each.zone}
    )
    return msgspec.structs.replace(shape, offerings=offerings) if offerings else None
