"""The desk: answers kube-scheduler's questions about pods with a GpuClaim, and reserves GPUs for Bindings.

Theory of operation. Questions are pure: they read which GPUs are free, and reserve nothing, since the scheduler may ask
again, or ask about another pod before the first is bound. Only a Binding reserves: the desk chooses the GPUs on the
node, and they are not free for later answers. A reservation ends when the Binding definitely failed, or when the
observed cluster shows its result. While the effect of a Binding is unknown, the reservation stays; after a minute it
stays only if the pod holds Leases, because a Binding is sent after its Leases.

Nodes in about the same state are one group with one answer (node_groups.py). So a question costs one lookup for each
node, however many GPUs the cluster has. Free cpu and memory only decide which node is the best: whether they are enough
is judged by the scheduler.

Owner: one thread, which also applies the observed changes.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet

import msgspec

from reconciler.fleet.amounts import claim_of, read_gpu_requests
from reconciler.fleet.devices.board import Board, DeviceSet, read_board
from reconciler.fleet.devices.choice import Chosen, can_serve, choose
from reconciler.fleet.devices.fragmentation import MixRequest, RequestMix
from reconciler.fleet.devices.ledger import DeviceLedger
from reconciler.fleet.devices.node_room import NO_REQUEST, FreeAmounts, PodRequest, RequestLedger
from reconciler.fleet.devices.offer import binding
from reconciler.fleet.devices.ranking import NodeState, demand_weights, node_state
from reconciler.fleet.gpu_claims import claimed_devices, serving_pools
from reconciler.fleet.obstacles import GpuClaimUnusable, NodeAbsent
from reconciler.model import names
from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Bind, Obstacle
from reconciler.model.policy.gpu import GpuPool
from reconciler.protocol.known_answers import KnownAnswers
from reconciler.protocol.node_groups import Asked, ClaimedGpus, NodeAnswer, NodeGroup, NodeGroups

ClaimKey = tuple[str, str]  # namespace and name

_NODES_OF_AN_ANSWER = 5  # to find the group of so many nodes takes about as long as one answer


class Reservation(msgspec.Struct, frozen=True):
    """GPUs of a node that a Binding of a pod is about to take."""

    uid: str
    node: str
    bind: Bind
    request: PodRequest = PodRequest()

    def on(self, board: Board) -> DeviceSet:
        """The GPUs on the board as it is now: after a reboot, the GPU with a UUID may have another id."""
        devices = 0
        for lease in self.bind.leases:
            devices |= board.layout.set_of((lease.device,)) | board.set_of_uuid(lease.uuid)
        return devices


class _DeskNode(msgspec.Struct):
    node: Node
    board: Board
    offered: FreeAmounts
    group: NodeGroup | None = None  # None: to be found again


class Desk:
    """Methods that change the desk are called in the order of the observed changes."""

    def __init__(self) -> None:
        self.is_read = False  # whether all observed kinds have been read once
        self._has_pools = False  # whether the policies have been read
        self._groups, self._known = NodeGroups(), KnownAnswers()
        self._nodes: dict[str, _DeskNode] = {}
        self._reports: dict[str, Unstructured] = {}  # GpuNodeStatuses, by node
        self._claims: dict[ClaimKey, Unstructured] = {}
        self._claimed: dict[ClaimKey, ClaimedGpus | Obstacle] = {}
        self._requested_by: dict[str, tuple[ClaimKey, PodRequest]] = {}  # unfinished pods with a claim, by uid
        self._requested: Counter[tuple[ClaimKey, PodRequest]] = Counter()
        self._leaving: set[str] = set()  # uids of pods that are being deleted
        self._ledger, self._requests = DeviceLedger(), RequestLedger()
        self._reservations: dict[str, dict[str, Reservation]] = {}  # by node, then by uid; also of nodes that are gone
        self._claims_changed = False  # since the ledger read them
        self._outdated: list[str] = []  # nodes whose answers have earlier weights

    # --- Observed changes

    def set_pools(self, pools: Iterable[Declared[GpuPool]]) -> None:
        """The declared pools."""
        self._groups.set_pools({each.name: each for each in pools})
        self._has_pools = True
        self._claimed.clear()
        self._outdated.clear()
        for name in list(self._nodes):
            self.put_node(self._nodes[name].node)

    def put_node(self, node: Node) -> None:
        """A new or changed node."""
        pool = self._groups.pools.get(node.pool)
        board = read_board(node, self._reports.get(node.name), pool.spec.devices if pool is not None else None)
        self._nodes[node.name] = _DeskNode(node, board, FreeAmounts.of(node))
        self._known.change(node.name)

    def drop_node(self, name: str) -> None:
        self._nodes.pop(name, None)
        self._known.change(name)

    def put_policy(self, found: Unstructured) -> None:
        """A new or changed GpuClaim or GpuNodeStatus; other kinds are ignored."""
        if found.kind == "GpuNodeStatus":
            self._reports[found.name] = found
            if (there := self._nodes.get(found.name)) is not None:
                self.put_node(there.node)
        elif found.kind == "GpuClaim":
            key = found.metadata.namespace, found.name
            before = self._claims.get(key)
            self._claims[key] = found
            if before is None or before.spec != found.spec:  # most changes are of the status
                self._forget_claim(key)

    def drop_policy(self, found: Unstructured) -> None:
        if found.kind == "GpuNodeStatus":
            self._reports.pop(found.name, None)
            if (there := self._nodes.get(found.name)) is not None:
                self.put_node(there.node)
        elif found.kind == "GpuClaim":
            self._claims.pop((found.metadata.namespace, found.name), None)
            self._forget_claim((found.metadata.namespace, found.name))

    def _forget_claim(self, key: ClaimKey) -> None:
        self._claimed.pop(key, None)
        self._claims_changed = True

    def put_pod(self, pod: Pod) -> None:
        """A new or changed pod."""
        uid = pod.metadata.uid
        asks = pod.metadata.annotations.claim and not pod.is_finished
        self._count(uid, (claim_of(pod), PodRequest.of(pod)) if asks else None)
        if pod.metadata.leaving:
            self._leaving.add(uid)
        self._ledger.put_pod(pod)
        self._requests.put_pod(pod)
        if pod.node or pod.is_finished:
            self._end_reservations(uid)

    def drop_pod(self, pod: Pod) -> None:
        self._count(pod.metadata.uid, None)
        self._leaving.discard(pod.metadata.uid)
        self._ledger.drop_pod(pod.metadata.uid)
        self._requests.drop_pod(pod.metadata.uid)
        self._end_reservations(pod.metadata.uid)

    def _count(self, uid: str, requested: tuple[ClaimKey, PodRequest] | None) -> None:
        before = self._requested_by.pop(uid, None)
        if before is not None:
            self._requested[before] -= 1
        if requested is not None:
            self._requested_by[uid] = requested
            self._requested[requested] += 1

    def put_lease(self, lease: Lease) -> None:
        """A new or changed Lease."""
        self._ledger.put_lease(lease)

    def drop_lease(self, lease: Lease) -> None:
        """A released Lease also ends the reservation of a pod whose Binding had an unknown effect."""
        self._ledger.drop_lease(lease.metadata.name)
        uid = lease.spec.holder_identity
        if lease.metadata.namespace == names.LEASES_NAMESPACE and not self._ledger.leases_of(uid):
            self._end_reservations(uid)

    def look_at_mix(self) -> None:
        """Take over the mix of requests, and how much of the cluster each can use. Earlier answers are
        outdated if either has changed much.
        """
        self._regroup()
        mix = self._requested_mix()
        mix = self._groups.mix if mix.is_close_to(self._groups.mix) else mix
        demand = demand_weights(mix, self._states(mix))
        if demand.is_close_to(self._groups.demand) and not self._groups.are_too_many:
            return
        self._groups.begin_anew(demand, (each for each in self._claimed.values() if isinstance(each, ClaimedGpus)))
        for there in self._nodes.values():
            there.group = there.group if there.group is not None and there.group.answers else None
        self._outdated = [name for name, there in self._nodes.items() if there.group is not None]

    def _states(self, mix: RequestMix) -> Counter[NodeState]:
        """The numbers of nodes by state."""
        nodes = self._nodes.values()
        if mix is not self._groups.mix:
            return Counter(
                [node_state(each.board.layout, self._free(each), self._free_amounts(each), mix) for each in nodes]
            )
        states: Counter[NodeState] = Counter()
        for group, count in Counter([each.group or self._grouped(each) for each in nodes]).items():
            states[group.state] += count
        return states

    def _requested_mix(self) -> RequestMix:
        requests: Counter[MixRequest] = Counter()
        for (key, request), pods in (+self._requested).items():
            claimed = self._claimed_by(key)
            if isinstance(claimed, ClaimedGpus):
                requests[MixRequest.of(claimed.devices, request)] += pods
        return RequestMix(requests)

    def renew_answers(self, most: int) -> bool:
        """Find about so many answers again after a change of the mix. Returns whether others are left. Until then,
        their ranks have earlier weights, which may cost a better node; which nodes can serve a claim does not depend on
        the mix.
        """
        self._regroup()
        effort = most * _NODES_OF_AN_ANSWER
        while self._outdated and effort > 0:
            effort -= 1
            there = self._nodes.get(self._outdated.pop())
            if there is not None and there.group is not None:  # groups that are found later have the new weights
                before, after = there.group, self._grouped(there)
                self._known.change(there.node.name)
                effort -= _NODES_OF_AN_ANSWER * self._groups.renew(before, after)
        return bool(self._outdated)

    # --- Questions

    @property
    def why_unready(self) -> str:
        """Why the desk cannot answer yet; empty if it can."""
        if not self._has_pools:
            return "the policies have not been read yet"
        return "" if self.is_read else "the cluster has not been read yet"

    def answers(
        self, claim: ClaimKey, node_names: Iterable[str], uid: str = "", request: PodRequest = NO_REQUEST
    ) -> dict[str, NodeAnswer]:
        """Whether each of the nodes can serve a pod with the claim, by node name. `uid`: of the pod, for which GPUs are
        free that the pod holds after a Binding that failed or has an unknown effect. `request`: of the pod.
        """
        claimed = self._claimed_by(claim)
        if not isinstance(claimed, ClaimedGpus):
            return dict.fromkeys(node_names, NodeAnswer(obstacle=claimed))
        self._regroup()
        asked, names_asked = self._groups.asked(claimed, request), list(node_names)
        known = self._known.of(asked, lambda: list(self._nodes), lambda name: self._find_answer(name, asked))
        try:
            result = dict(zip(names_asked, map(known.__getitem__, names_asked), strict=True))
        except KeyError:
            result = {name: known.get(name) or NodeAnswer(obstacle=NodeAbsent(name)) for name in names_asked}
        for name in self._nodes_of_holder(uid) if uid else ():
            if name in result and (there := self._nodes.get(name)) is not None:
                result[name] = self._groups.answer(self._group_for(uid, there), asked)
        return result

    def _find_answer(self, name: str, asked: Asked) -> NodeAnswer | None:
        there = self._nodes.get(name)
        return self._groups.answer(there.group or self._grouped(there), asked) if there is not None else None

    def serves_without(self, claim: ClaimKey, node: str, victims: Iterable[str]) -> bool:
        """Whether the node could serve the claim if the pods with these uids and their Leases were gone."""
        claimed, there = self._claimed_by(claim), self._nodes.get(node)
        if not isinstance(claimed, ClaimedGpus) or there is None:
            return False
        return self._serves_without(claimed, there, frozenset(victims))

    def awaits_release(self, claim: ClaimKey, refused: AbstractSet[str], nominated: str = "") -> bool:
        """Whether a node can serve the claim as soon as the leader has released the Leases of ended pods, so that no
        pod need be preempted; or since they were released, in the moment after the desk refused the node. `refused`:
        nodes that only the desk excluded. On the nominated node, whose victims were chosen earlier, pods that are being
        deleted count as ended: the scheduler may know of their end before the desk.
        """
        claimed = self._claimed_by(claim)
        if not isinstance(claimed, ClaimedGpus):
            return False
        ended = self._ended_holders()
        return self._serves_soon(claimed, nominated, ended | self._leaving) or any(
            self._serves_soon(claimed, name, ended) for name in refused
        )

    def _ended_holders(self) -> AbstractSet[str]:
        """Uids of pods that have ended or are gone, and still hold Leases. Leases that others wrote stay."""
        ended = self._ledger.holders - self._requested_by.keys()
        return {uid for uid in ended if any(each.pod for each in self._ledger.leases_of(uid))}

    def _serves_soon(self, claimed: ClaimedGpus, name: str, ended: AbstractSet[str]) -> bool:
        there = self._nodes.get(name)
        if there is None or not there.node.is_ready or there.node.spec.unschedulable:
            return False
        return self._serves_without(claimed, there, ended)

    def _serves_without(self, claimed: ClaimedGpus, there: _DeskNode, gone: AbstractSet[str]) -> bool:
        self._regroup()
        if self._groups.obstacle(there.node.pool, there.board, claimed) is not None:
            return False
        name, board = there.node.name, there.board
        free = board.allocatable & ~self._ledger.taken_without(name, board, gone).all
        for uid, each in self._reservations.get(name, {}).items():
            free &= ~(0 if uid in gone else each.on(board))
        return can_serve(board.layout, free, claimed.devices)

    def _claimed_by(self, key: ClaimKey) -> ClaimedGpus | Obstacle:
        found = self._claimed.get(key)
        if found is None:
            found = self._claimed[key] = self._read_claim(key)
        return found

    def _read_claim(self, key: ClaimKey) -> ClaimedGpus | Obstacle:
        claim, title = self._claims.get(key), "/".join(key)
        if claim is None:
            return GpuClaimUnusable(title, "does not exist")
        if claim.spec.get("suspend"):
            return GpuClaimUnusable(title, "is suspended")
        devices = claimed_devices(claim.spec)
        if devices is None:
            return GpuClaimUnusable(title, "can't be read")
        pools = serving_pools(claim.spec, devices, self._groups.pools.values())
        return ClaimedGpus(devices, frozenset(each.name for each in pools))

    def _regroup(self) -> None:
        if self._claims_changed:
            self._claims_changed = False
            self._ledger.take_requests(read_gpu_requests(self._claims.values()))
        for name in self._ledger.take_touched() | self._requests.take_touched():
            if (there := self._nodes.get(name)) is not None:
                self._ungroup(there)

    def _ungroup(self, there: _DeskNode) -> None:
        """The state of the node has changed."""
        there.group = None
        self._known.change(there.node.name)

    def _free(self, there: _DeskNode) -> DeviceSet:
        free = self._ledger.free(there.node.name, there.board)
        for each in self._reservations.get(there.node.name, {}).values():
            free &= ~each.on(there.board)
        return free

    def _free_amounts(self, there: _DeskNode, without: str = "") -> FreeAmounts:
        """`without`: uid of a pod whose reservation does not count."""
        taken = self._requests.taken(there.node.name)
        for uid, each in self._reservations.get(there.node.name, {}).items():
            taken = taken.plus(each.request) if uid != without else taken
        return there.offered.without(taken)

    def _grouped(self, there: _DeskNode) -> NodeGroup:
        there.group = self._groups.group(there.node.pool, there.board, self._free(there), self._free_amounts(there))
        return there.group

    # --- Reservations

    def reserve(self, pod: Pod, node: str) -> Reservation | Obstacle:
        """GPUs of the node for a Binding of the pod; the same ones if the Binding is tried again."""
        uid = pod.metadata.uid
        if (held := self._reservations.get(node, {}).get(uid)) is not None:
            return held
        claimed, there = self._claimed_by(claim_of(pod)), self._nodes.get(node)
        if not isinstance(claimed, ClaimedGpus):
            return claimed
        if there is None:
            return NodeAbsent(node)
        self._regroup()
        devices = self._choose_for(pod, there, claimed)
        if isinstance(devices, Obstacle):
            return devices
        bind = binding(node, there.board, devices, self._groups.pools[there.node.pool].spec.allocation)
        reservation = Reservation(uid, node, bind, PodRequest.of(pod))
        self._reservations.setdefault(node, {})[uid] = reservation
        self._ungroup(there)
        return reservation

    def _choose_for(self, pod: Pod, there: _DeskNode, claimed: ClaimedGpus) -> DeviceSet | Obstacle:
        """After a crash, or by another replica, the pod may hold GPUs of the node already: the same ones if these are
        all and may still be lent.
        """
        held, gpus = self._lent(pod.metadata.uid, there), self._group_for(pod.metadata.uid, there).gpus
        if (obstacle := self._groups.obstacle(gpus.pool, gpus.board, claimed)) is not None:
            return obstacle
        if held.bit_count() == claimed.devices.count and not held & ~there.board.allocatable:
            return held
        chosen = choose(gpus.board, ~gpus.free, claimed.devices, self._groups.mix)
        return chosen.devices if isinstance(chosen, Chosen) else chosen

    def _group_for(self, uid: str, there: _DeskNode) -> NodeGroup:
        """The group of a node for a pod, for which what the pod holds is free."""
        group, held = there.group or self._grouped(there), self._lent(uid, there)
        if (reservation := self._reservations.get(there.node.name, {}).get(uid)) is not None:
            held |= reservation.on(there.board)
        if not held:
            return group
        free = group.gpus.free | (held & there.board.allocatable)
        return self._groups.group(there.node.pool, there.board, free, self._free_amounts(there, uid))

    def _lent(self, uid: str, there: _DeskNode) -> DeviceSet:
        """GPUs of the node that Leases lend to the pod."""
        ids = tuple([each.id for each in self._ledger.leases_of(uid) if each.node == there.node.name])
        return there.board.layout.set_of(ids)

    def _nodes_of_holder(self, uid: str) -> set[str]:
        """Nodes of which the pod holds GPUs, by Leases or by a reservation."""
        reserved = {node for node, held in self._reservations.items() if uid in held}
        return reserved | {each.node for each in self._ledger.leases_of(uid)}

    def end_reservation(self, reservation: Reservation) -> None:
        """The Binding definitely failed."""
        held = self._reservations.get(reservation.node, {})
        if held.pop(reservation.uid, None) is None:
            return
        if not held:
            del self._reservations[reservation.node]
        if (there := self._nodes.get(reservation.node)) is not None:
            self._ungroup(there)

    def give_up(self, reservation: Reservation) -> None:
        """The effect of the Binding has been unknown for long. Without Leases of the pod, the Binding has no effect any
        more; with Leases, the reservation ends with them."""
        if self._reservations.get(reservation.node, {}).get(reservation.uid) is not reservation:
            return
        if not self._ledger.leases_of(reservation.uid):
            self.end_reservation(reservation)

    def _end_reservations(self, uid: str) -> None:
        for each in self.reservations:
            if each.uid == uid:
                self.end_reservation(each)

    def node(self, name: str) -> Node | None:
        """The node as last observed."""
        there = self._nodes.get(name)
        return there.node if there is not None else None

    def free_gpus(self) -> Mapping[str, int]:
        """Free GPUs by pool, for metrics and tests."""
        self._regroup()
        free: Counter[str] = Counter()
        for each in self._nodes.values():
            free[each.node.pool] += self._free(each).bit_count()
        return free

    @property
    def reservations(self) -> Sequence[Reservation]:
        """Reservations whose result is not observed yet."""
        return tuple(each for held in self._reservations.values() for each in held.values())
