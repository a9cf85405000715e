"""Demand of unschedulable pods: which pods are served by kept nodes, by in-flight nodes, or by nodes to buy.

Theory of operation. An unschedulable pod that fits on a node that stays is only not scheduled yet: the pod is no
demand, but its node is reserved. Nodes of pools that are acted on are searched before nodes of observed pools, and
the fullest nodes first. Every other pod is served once, by the first of these that has room, over all pools in the
order of their provisioners: marked empty nodes, which then are kept, the last in removal order first; the machines
that smart pods request; in-flight machines of any NodePool; and for the rest new nodes are packed, as many as
maxSize and the limits of a pool allow. If one pool can't serve a pod, the next pool is tried. All of this happens in
a fork of the fleet. The result says for each pod what it waits for.

Pods behind the capacity gate wait in the same way, although Karpenter does not see them. Smart pods are no demand:
they are requests, and their pods are served by the requested machines. Successors of evicted pods are no demand for
a minute, if their reserved node still has room. A pod without GPUs is no demand for GPU nodes, unless a pool serves
such pods. A pod with a GpuClaim fits only pools that can serve the claim.

Nothing is bought for recently evicted pods that were not recreated yet, but the empty node that is the only place
for such a pod stays, marked or not (unreplaced_pods.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.fleet.binpack.offers import Shape
from reconciler.fleet.filters.claims import GpuClaims
from reconciler.fleet.first_fit import Search
from reconciler.fleet.questions import place
from reconciler.fleet.rows import Mask, Places
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Ref
from reconciler.plan.capacity.demand import (
    GpuClaimIndex,
    PodReservation,
    asks_for_gpus,
    has_our_gate,
    is_coming,
    is_gated,
    promises,
    title_of,
    waits,
)
from reconciler.plan.capacity.refusals import (
    ClaimTrouble,
    NotServed,
    PodWait,
    PolicySuspended,
    PoolRefusal,
    PoolRefusals,
    Unserved,
    Why,
)
from reconciler.plan.capacity.wanted_nodes import NodeWithRoom
from reconciler.plan.containment import planning_for
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import observes
from reconciler.plan.likeness import fullest_first
from reconciler.plan.nodes.ownership import may_take_pods
from reconciler.plan.recent_evictions import unreplaced
from reconciler.plan.scaling.demand.assignment import Demand, Serving, beyond_limit, placed_among, without_option
from reconciler.plan.scaling.demand.buying import PoolOffer, PurchaseResult, PurchaseRound
from reconciler.plan.scaling.demand.fit import DemandQueue, PoolShapes, Refusing, fitting, why_barred
from reconciler.plan.scaling.demand.in_flight_nodes import Arrived, instead_of, real_name
from reconciler.plan.scaling.demand.shapes import OpenLabels, machines_elsewhere, shapes_of
from reconciler.plan.scaling.demand.unreplaced_pods import Awaiting, ReservedPlaces, keep
from reconciler.plan.scaling.pool_view import PoolView, ScalingContext

_MOST_LISTED = 5  # pools named in the reason of an unserved pod


class Demands(msgspec.Struct, frozen=True):
    """Demand by provisioner name, and nodes that waiting pods fit on."""

    of: dict[str, Demand] = {}
    spoken_for: frozenset[str] = frozenset()
    places: dict[str, NodeWithRoom] = {}  # uid of a gated pod -> a node with room
    schedulable: frozenset[str] = frozenset()  # uids of ungated pods that fit on existing nodes
    unfit: frozenset[str] = frozenset()  # smart pods whose nodes fit none of their pods
    promised: tuple[PodReservation, ...] = ()  # reservations that are kept
    awaiting: frozenset[str] = frozenset()  # names of empty nodes that are the only place of recently evicted pods
    waits: tuple[PodWait, ...] = ()  # what each other pod waits for


class PoolViews(msgspec.Struct, frozen=True):
    """The pools, in the order in which they are tried."""

    requested: Sequence[PoolView]
    idle: Sequence[PoolView] = ()  # pools with suspended provisioners, which request nothing


def demands(context: ScalingContext, views: PoolViews) -> Demands:
    """Demand of all waiting pods."""
    waiting = context.fleet.occupancy.waiting
    nominated = frozenset(pod.status.nominated_node_name for pod in waiting) - {""}
    pods = [pod for pod in waiting if waits(pod, context.draft.identity)]
    others = [_behind_others(pod) for pod in waiting if has_our_gate(pod) and not is_gated(pod)]
    evicted = unreplaced(context.inputs)
    if not pods and not evicted:
        return Demands(spoken_for=nominated, waits=tuple(others))
    claims, snapshot = GpuClaimIndex(context.inputs.observed, context.inputs.desired.pools), context.fleet.snapshot
    unclaimed = [(pod, trouble) for pod in pods if (trouble := claims.why_nothing_is_bought(pod)) is not None]
    others += [_behind_claim(pod, trouble) for pod, trouble in unclaimed]
    held = {pod.metadata.uid for pod, _ in unclaimed}
    pods = [pod for pod in pods if pod.metadata.uid not in held]
    pods.sort(key=lambda pod: snapshot.classes.of(pod).anew.rank)  # pods of one class are sorted by name
    with snapshot.fork(), snapshot.part(GpuClaims).judged(claims.requests):
        return _demands(context, views, pods, _PriorContext(nominated, others, fullest_first(snapshot)))


class _PriorContext(msgspec.Struct, frozen=True):
    """Data from before the first search."""

    nominated: frozenset[str]
    others: list[PodWait]
    order: Callable[[], Places]


def _demands(context: ScalingContext, views: PoolViews, pods: list[Pod], prior: _PriorContext) -> Demands:
    snapshot = context.fleet.snapshot
    arrived = Arrived(context, snapshot)
    for each in views.requested:
        with planning_for(each.pool.name):
            arrived.open(each)
    search = Search(order=prior.order, budget=context.inputs.budget, tells_why=False)
    coming: dict[str, str] = {}
    if any(is_gated(pod) for pod in pods):
        # Ungated pods keep the nodes that they were ungated for, before the scheduler has looked at them.
        let_go = [pod for pod in context.fleet.occupancy.waiting if is_coming(pod, context.draft.identity)]
        coming = place(snapshot, let_go, search).destinations
    by_uid = {pod.metadata.uid: pod for pod in pods}
    unfit = frozenset(name for each in views.requested for name in arrived.unfit(each, by_uid))
    open_labels = OpenLabels.of(pods)
    pools = [PoolShapes(each, _shapes(each, open_labels)) for each in (*views.requested, *views.idle)]
    allowed = _staying(context, views.requested)
    kept = keep(snapshot, promises(context.inputs, pods), allowed)
    pods = [pod for pod in pods if pod.metadata.uid not in kept.uids]
    staying = _on_staying(context, pods, allowed, search)
    left = [pod for pod in pods if pod.metadata.uid not in staying]
    awaited = Awaiting(context, views.requested, unreplaced(context.inputs))
    awaited.on_staying(allowed, prior.order)  # before new nodes are tried: the mask has no rows for new nodes
    line = _Pods(context, pools, left, _Beside(frozenset(each.wish.name for each in views.idle), _held(context, prior)))
    served = line.served()
    awaited.on_marked()
    places = {uid: real_name(name) for uid, name in staying.items()} | dict(kept.at_once)
    ready = {uid: name for uid, name in places.items() if _is_ready(context, name)}
    gated = {uid: name for uid, name in ready.items() if is_gated(by_uid[uid])}
    return Demands(
        served,
        prior.nominated.union(places.values(), (each.home for each in kept.promises)),
        _let_go_to(context, pools, {uid: by_uid[uid] for uid in gated}, gated),
        frozenset(coming.keys() | (ready.keys() - gated.keys())),
        unfit,
        kept.promises,
        frozenset(awaited.nodes),
        (*prior.others, *_scheduled_later(context, by_uid, places, kept), *line.waits),
    )


def _on_staying(context: ScalingContext, pods: Sequence[Pod], staying: Mask, search: Search) -> dict[str, str]:
    """By uid, the nodes of pods that fit on nodes that stay. Candidates and observed nodes are searched last."""
    result: dict[str, str] = {}
    acted_on = staying & ~_observed(context)
    for allowed in (acted_on & ~_candidates(context), acted_on, staying):
        left = [pod for pod in pods if pod.metadata.uid not in result]
        result |= place(context.fleet.snapshot, left, msgspec.structs.replace(search, allowed=allowed)).destinations
    return result


def _held(context: ScalingContext, prior: _PriorContext) -> tuple[Pod, ...]:
    """Pods that wait for their claim, or have other scheduling gates."""
    gated = (pod for pod in context.fleet.occupancy.waiting if pod.spec.scheduling_gates and not is_gated(pod))
    return (*(each.pod for each in prior.others), *(pod for pod in gated if not pod.metadata.leaving))


def _behind_others(pod: Pod) -> PodWait:
    return PodWait(pod, "other_gates")


def _behind_claim(pod: Pod, trouble: ClaimTrouble) -> PodWait:
    claim = Ref("GpuClaim", pod.metadata.namespace, pod.metadata.annotations.claim)
    return PodWait(pod, "claim", awaited=claim, trouble=trouble)


def _scheduled_later(
    context: ScalingContext, pods: Mapping[str, Pod], places: Mapping[str, str], kept: ReservedPlaces
) -> Iterator[PodWait]:
    for uid, name in places.items():
        if uid not in kept.uids:
            node = Ref("Node", "", name)
            yield PodWait(pods[uid], "scheduler" if _is_ready(context, name) else "ready_node", awaited=node)


def _let_go_to(
    context: ScalingContext, pools: Sequence[PoolShapes], pods: Mapping[str, Pod], places: Mapping[str, str]
) -> dict[str, NodeWithRoom]:
    """By uid, the node with room, and the pool whose mode decides about the gate. A node of an observed pool may take
    pods too, because the scheduler decides: if a pool that is acted on could serve the pod, the mode of that pool
    decides.
    """
    pool_of = {uid: node.pool if (node := context.fleet.node(name)) is not None else "" for uid, name in places.items()}
    elsewhere = [pods[uid] for uid, pool in pool_of.items() if observes(context.inputs, pool)]
    if elsewhere:
        acted_on = [each for each in pools if not observes(context.inputs, each.pool)]
        by_provisioner = fitting(context.fleet.snapshot, acted_on, elsewhere)
        for each in reversed(acted_on):
            pool_of |= {pod.metadata.uid: each.pool for pod in by_provisioner[each.name]}
    return {uid: NodeWithRoom(name, pool_of[uid]) for uid, name in places.items()}


def _shapes(pool_view: PoolView, open_labels: OpenLabels) -> list[Shape]:
    with planning_for(pool_view.pool.name):
        return shapes_of(pool_view, open_labels)


def _is_ready(context: ScalingContext, name: str) -> bool:
    node = context.fleet.node(name)
    return node is not None and node.is_ready


def _candidates(context: ScalingContext) -> Mask:
    """Candidate nodes of drains. The scheduler prefers other nodes too, and a pod on a candidate would cancel its
    drain.
    """
    rows = context.fleet.snapshot.rows
    mask: Mask = rows.alive & False
    mask[[rows.row_of[each.name] for each in context.fleet.nodes_drained if each.name in rows.row_of]] = True
    return mask


def _observed(context: ScalingContext) -> Mask:
    """Nodes of observed pools."""
    rows = context.fleet.snapshot.rows
    mask: Mask = rows.alive & False
    for pool in context.inputs.desired.pools:
        if observes(context.inputs, pool.name):
            there = (rows.row_of.get(each.name) for each in context.fleet.nodes_of(pool.name))
            mask[[row for row in there if row is not None]] = True
    return mask


def _staying(context: ScalingContext, pool_views: Sequence[PoolView]) -> Mask:
    """Nodes that nobody removes, and that are ready or may be ready soon."""
    rows = context.fleet.snapshot.rows
    mask: Mask = rows.alive.copy()
    leaving = [noted.node.name for pool_view in pool_views for noted in pool_view.noted]
    leaving += [each.name for each in context.fleet.nodes_unsettled]
    leaving += [each.name for each in context.fleet.nodes_unfit if not may_take_pods(each.node, context.now)]
    mask[[rows.row_of[name] for name in leaving]] = False
    return mask


class _Beside(msgspec.Struct, frozen=True):
    """Data besides pods and pools."""

    idle: frozenset[str]  # suspended provisioners
    held: tuple[Pod, ...]  # pods that can't be served now, so their gangs can't start


class _Pods:
    """Pods that fit on no existing node, served step by step. Mutable."""

    def __init__(self, context: ScalingContext, pools: Sequence[PoolShapes], pods: list[Pod], beside: _Beside) -> None:
        self._context, self._pools, self._idle = context, pools, beside.idle
        self._held = beside.held
        self._fleet: Snapshot = context.fleet.snapshot
        self._fitting = fitting(self._fleet, pools, pods)
        self._queue = DemandQueue(pods, self._fitting)
        self._servings = {each.name: Serving(each, self._queue) for each in pools}

    def served(self) -> dict[str, Demand]:
        """Demand by provisioner."""
        self._each(Serving.keep_marked, self._idle)
        self._each(Serving.cover)
        self._each(Serving.ride)
        self._ride_elsewhere()
        self._each(Serving.await_launches)
        bought = self._buy()
        self._attribute(bought)
        return {each.name: self._demand(each, bought) for each in self._pools}

    def _each(self, step: Callable[[Serving], None], without: AbstractSet[str] = frozenset()) -> None:
        """Run a step for all pools in order, except for some provisioners."""
        for pool in self._pools:
            if pool.name not in without:
                with planning_for(pool.pool):
                    step(self._servings[pool.name])

    @property
    def waits(self) -> Iterable[PodWait]:
        return self._queue.served.values()

    def _ride_elsewhere(self) -> None:
        """Assign pods to machines of NodePools that no policy declares."""
        pods = [pod for pod in self._queue.left if self._may_ride(pod)]
        if not pods:
            return
        machines = {}
        for each in machines_elsewhere(self._context, {pool.name for pool in self._context.inputs.desired.pools}):
            other = each.instead_of
            row = instead_of(self._fleet, other, each.node) if other is not None else self._fleet.bring(each.node)
            machines[each.node.name] = row, each
        rows = [row for row, _ in machines.values()]
        found = placed_among(self._fleet, pods, rows, self._context.inputs.budget) if rows else {}
        for pod in pods:
            if pod.metadata.uid in found:
                machine = machines[found[pod.metadata.uid]][1]
                self._queue.serve(PodWait(pod, "machine", machine.pool, Ref("NodeClaim", "", machine.claim)))

    def _may_ride(self, pod: Pod) -> bool:
        return asks_for_gpus(pod) or any(each.pool_view.pool.spec.serves_pods_without_gpus for each in self._pools)

    def _buy(self) -> PurchaseResult:
        """Buy nodes, but none for a gang that can't be served as a whole: other pods get the room instead."""
        freezes = Freezes(self._context.inputs, self._context.fleet)
        offers = [
            PoolOffer(each, self._servings[each.name], why_barred(each.pool_view, freezes))
            for each in self._pools
            if each.name not in self._idle
        ]
        fitting = {each.name: self._queue.fitting(each.name) for each in offers}
        gangs, broken, halves = self._context.draft.gangs, dict[str, str](), set[str]()
        earlier: list[PurchaseResult] = []
        while True:
            with self._fleet.fork():
                bought = PurchaseRound(offers, fitting).run(broken.keys())
            unserved = [pod for pod in self._queue.left if pod.metadata.uid not in bought.waits]
            unserved += self._held
            found = gangs.broken_by(unserved) if gangs.are_any else frozenset()
            members = {pod.metadata.uid: title_of(gang) for pod in self._queue.left if (gang := gangs.of(pod)) in found}
            halves |= members.keys() & bought.waits.keys()
            if members.keys() <= broken.keys() or not halves:
                break
            broken |= members
            earlier.append(bought)
        for each in earlier:
            bought.add_refusals(each)
        self._queue.serve_all(bought.waits.values())
        for pod in self._queue.left:
            if pod.metadata.uid in halves:
                self._queue.serve(PodWait(pod, "gang", gang=broken[pod.metadata.uid]))
        return bought

    def _attribute(self, bought: PurchaseResult) -> None:
        """Attribute unserved pods to the first pool that fits, and collect the reason of each pool."""
        pool_shapeses = [each for each in self._pools if each.name not in self._idle]
        fits = {each.name: {pod.metadata.uid for pod in self._queue.fitting(each.name)} for each in pool_shapeses}
        with self._fleet.fork():
            refusing = Refusing(self._fleet)
            for pod in self._queue.left:
                first = next((each for each in pool_shapeses if pod.metadata.uid in fits[each.name]), None)
                if first is not None:
                    self._servings[first.name].pods.append(pod)
                elif not asks_for_gpus(pod) and not self._may_ride(pod):
                    self._queue.serve(PodWait(pod, "gpu_pool"))
                    continue
                refusals = self._refusals(pod, bought.refusals.get(pod.metadata.uid, {}), refusing)
                pool = first.pool if first else ""
                self._queue.serve(PodWait(pod, "capacity", pool, refusals=refusals))

    def _refusals(self, pod: Pod, known: Mapping[str, Why], refusing: Refusing) -> PoolRefusals:
        """Why the first few pools can't serve the pod. Pools that fit the pod come first."""
        holding = [each for each in self._pools if each.pool in known]
        others = [each for each in self._pools if each.pool not in known]
        pool_refusals = []
        for each in (*holding, *others)[:_MOST_LISTED]:
            why = known.get(each.pool) or refusing.why_not(each, pod)
            if why is None:
                suspended = PolicySuspended(Ref("NodeProvisioner", "", each.name))
                why = suspended if each.name in self._idle else NotServed(Unserved.NOTHING_BOUGHT)
            pool_refusals.append(PoolRefusal(each.pool, why))
        return PoolRefusals(tuple(pool_refusals), len(self._pools) - len(pool_refusals))

    def _demand(self, pool: PoolShapes, bought: PurchaseResult) -> Demand:
        serving, name = self._servings[pool.name], pool.name
        wanted = bought.wanted.get(name, [])
        pods = [*serving.pods, *(pod for each in wanted for pod in each.pods)]
        lost = bought.out_of_stock.get(name, set())
        unserved = [pod for pod in serving.pods if pod.metadata.uid not in bought.waits]
        full = bought.full.get(name, set())
        later = without_option(pool.pool_view, [pod for pod in unserved if pod.metadata.uid in lost])
        never = beyond_limit(pool.pool_view, [pod for pod in unserved if pod.metadata.uid in full - lost])
        return Demand(
            pods=tuple(pods),
            keeps=serving.keeps,
            wanted=(*wanted, *later, *never),
            used=serving.used,
            requested_pods=serving.requested_pods,
            left=len(full - bought.waits.keys()),
            taken_machines=serving.taken_machines,
            taken_nodes=serving.taken_nodes,
        )
