"""Binds pods with a GpuClaim where no second scheduler runs: `run --scheduler builtin`, for the simulator and for small
clusters.

A node must pass all predicates of the what-if fleet, as for other placements. Among these, nodes are compared and GPUs
chosen as by the scheduler extender. Pods are bound by priority, then by age. Each binding is booked in a fork, so that
the next pod does not count on the same resources. Leases arbitrate GPUs when the bindings are carried out; other
resources are as observed, so no other scheduler should bind pods to these nodes.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import cached_property

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY
from reconciler.fleet.devices.board import Board, BoardLayout, DeviceSet
from reconciler.fleet.devices.choice import Chosen
from reconciler.fleet.devices.device_lease import read_device_lease
from reconciler.fleet.devices.fragmentation import MixRequest, RequestMix
from reconciler.fleet.devices.free_devices import ClaimRequest, FreeDevices
from reconciler.fleet.devices.node_room import FreeAmounts, PodRequest
from reconciler.fleet.devices.offer import Offer, binding, offer
from reconciler.fleet.devices.ranking import DemandWeights, NodeState, demand_weights, node_state, node_value
from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.claims import GpuClaims
from reconciler.fleet.filters.nominated import Nominated
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Decision, Hold, Obstacle, Reason, Ref, pod_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import ClaimedDevices, GpuPool
from reconciler.plan.capacity.demand import GpuClaimIndex
from reconciler.plan.draft import Draft
from reconciler.plan.gpu.reasons import PLANNER, ClaimedGpusBound, NoNodeForClaim

# The rest is bound by the next plans: a plan is to stay short.
MOST_PODS = 500


def bind_pods(inputs: Inputs, draft: Draft, given_up: Set[Ref]) -> list[Decision]:
    """Bindings of waiting pods, and holds of pods that fit nowhere. `given_up`: pods whose Leases are released."""
    index = GpuClaimIndex(inputs.observed, inputs.desired.pools)
    waiting = [pod for pod in draft.fleet.occupancy.waiting if _is_ours(pod) and pod_ref(pod) not in given_up]
    waiting = [pod for pod in waiting if index.why_nothing_is_bought(pod) is None]
    if not waiting:
        return []
    waiting.sort(key=lambda pod: (-pod.spec.priority, pod.metadata.creation_timestamp, pod.title))
    snapshot, claims = draft.fleet.snapshot, index.requests
    with snapshot.fork(), snapshot.part(GpuClaims).judged(claims):
        binder = _Binder(inputs, draft, claims.by_claim)
        return [binder.bind(pod) for pod in waiting[:MOST_PODS]]


def _is_ours(pod: Pod) -> bool:
    is_held = pod.spec.scheduling_gates or pod.metadata.leaving
    return bool(pod.metadata.annotations.claim) and pod.spec.scheduler_name == names.GPU_SCHEDULER and not is_held


_Offers = dict[tuple[BoardLayout, DeviceSet], Offer | Obstacle]  # by GPUs, and the free ones among them


class _Place(msgspec.Struct, frozen=True):
    """The best node for a pod."""

    row: int
    pool: Declared[GpuPool]
    board: Board
    chosen: Chosen


class _Binder:
    """Owner of the GPUs that the bindings of one plan take, by row."""

    def __init__(self, inputs: Inputs, draft: Draft, requests: Mapping[tuple[str, str], ClaimRequest]) -> None:
        self._snapshot: Snapshot = draft.fleet.snapshot
        self._draft = draft
        self._requests = requests
        self._pools = {each.name: each for each in inputs.desired.pools if each.spec.is_enforced}
        self._boards: dict[int, tuple[Board, DeviceSet]] = {}  # free GPUs before this plan
        self._taken: dict[int, DeviceSet] = {}
        self._mix = RequestMix(_mix(inputs.observed.pods, requests))
        leases = (device for lease in inputs.observed.leases if (device := read_device_lease(lease)) is not None)
        self._held: dict[tuple[str, str], list[int]] = {}  # ids, by uid of the pod and node
        for device in leases:
            self._held.setdefault((device.holder, device.node), []).append(device.id)

    def bind(self, pod: Pod) -> Decision:
        """The binding of one pod; a hold if no node serves it."""
        request = self._requests.get((pod.metadata.namespace, pod.metadata.annotations.claim))
        place = self._best(pod, request) if request is not None else None
        if place is None:
            reason = NoNodeForClaim(pod_ref(pod), pod.metadata.annotations.claim, len(self._snapshot.rows.order))
            return Decision(PLANNER, pod_ref(pod), Hold(), Reason(reason))
        node = self._snapshot.rows.node(place.row)
        self._taken[place.row] = self._taken.get(place.row, 0) | place.chosen.devices
        self._snapshot.add(self._snapshot.classes.of(pod).anew, place.row)
        act = binding(node.name, place.board, place.chosen.devices, place.pool.spec.allocation)
        why = ClaimedGpusBound(pod_ref(pod), node.name, place.chosen.ids)
        return Decision(PLANNER, pod_ref(pod), act, Reason(why), place.pool.name)

    def _best(self, pod: Pod, request: ClaimRequest) -> _Place | None:
        fleet, devices, asked = self._snapshot, request.devices, PodRequest.of(pod)
        with fleet.part(Nominated).asking(pod):
            mask = fleet.part(FilterChain).mask(fleet.classes.of(pod).anew)
        order, best = fleet.rows.order, None
        offers: _Offers = {}
        for row in order[mask[order]].tolist():
            node = fleet.rows.node(row)
            pool = self._pools.get(node.pool)
            if pool is None or node.metadata.leaving:
                continue
            board, free = self._free(row)
            if pool.spec.allocation == "agent" and not all(board.uuids):
                continue
            held = board.layout.set_of(tuple(self._held.get((pod.metadata.uid, node.name), ())))
            # After a crash, the pod may hold GPUs already: the same ones if these are all, otherwise they are free.
            again = self._offer(board, held, devices, offers) if held.bit_count() == devices.count else None
            found = again if isinstance(again, Offer) else self._offer(board, free | held, devices, offers)
            if isinstance(found, Offer):
                amounts = self._amounts(row)
                value = node_value(node_state(board.layout, free | held, amounts, self._mix), self._demand)
                rank = found.rank_for(value, amounts, asked)
                order_of = int(found is not again), int(self._draft.leaves(node)), *rank
                if best is None or order_of < best[0]:
                    best = order_of, _Place(row, pool, board, found.chosen)
        return best[1] if best is not None else None

    def _offer(self, board: Board, free: DeviceSet, devices: ClaimedDevices, offers: _Offers) -> Offer | Obstacle:
        """Of boards with equal GPUs, UUIDs may differ: only the ids of an offer are used."""
        key = board.layout, free & board.allocatable
        if key not in offers:
            offers[key] = offer(board, free, devices, self._demand)
        return offers[key]

    @cached_property
    def _demand(self) -> DemandWeights:
        states: Counter[NodeState] = Counter()
        for row in self._snapshot.rows.order.tolist():
            board, free = self._free(row)
            states[node_state(board.layout, free, self._amounts(row), self._mix)] += 1
        return demand_weights(self._mix, states)

    def _amounts(self, row: int) -> FreeAmounts:
        """Free cpu and memory of the node."""
        stock, columns = self._snapshot.stock, self._snapshot.classes.columns
        return FreeAmounts(*(max(0, stock.free_at(row, columns[name])) for name in (CPU, MEMORY)))

    def _free(self, row: int) -> tuple[Board, DeviceSet]:
        """Without the GPUs that this plan has bound already."""
        if row not in self._boards:
            self._boards[row] = self._snapshot.part(FreeDevices).free_board(row)
        board, free = self._boards[row]
        return board, free & ~self._taken.get(row, 0)


def _mix(pods: Iterable[Pod], requests: Mapping[tuple[str, str], ClaimRequest]) -> Counter[MixRequest]:
    """The requests of all unfinished pods with a claim."""

    def requested() -> Iterator[MixRequest]:
        for pod in pods:
            claim = pod.metadata.annotations.claim
            if claim and not pod.is_finished and (request := requests.get((pod.metadata.namespace, claim))):
                yield MixRequest.of(request.devices, PodRequest.of(pod))

    return Counter(requested())
