"""Nodes that answer alike about a claim, and their answers.

Nodes of one pool with equal boards, the same free GPUs and about as much free cpu and memory are one group: one answer
holds for the group, and groups with the same free GPUs share the search for GPUs. After a change of the mix of
requests, nodes are grouped anew; until then, they keep the answers of their earlier groups.
"""

from collections.abc import Iterable, Mapping

import msgspec

from reconciler.fleet.devices.board import Board, DeviceSet
from reconciler.fleet.devices.fragmentation import NO_MIX, RequestMix
from reconciler.fleet.devices.node_room import FreeAmounts, NodeRoom, PodRequest, in_steps, whole_gpus
from reconciler.fleet.devices.offer import Offer, offer
from reconciler.fleet.devices.ranking import NO_DEMAND, DemandWeights, NodeRank, NodeState, node_value, useful_amounts
from reconciler.fleet.obstacles import GpusOfNodeUnreported, NotInPoolOfClaim, PoolOfNodeObserved
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Obstacle
from reconciler.model.policy.gpu import ClaimedDevices, GpuPool

_MOST_GROUPS = 20_000  # then those of earlier states are forgotten


class ClaimedGpus(msgspec.Struct, frozen=True, gc=False):
    """A readable GpuClaim, and the declared pools that can serve it."""

    devices: ClaimedDevices
    pools: frozenset[str]


class Asked(msgspec.Struct, frozen=True, gc=False, eq=False):
    """What a pod asks for; one object for equal pods, compared by identity, as a fast key."""

    claimed: ClaimedGpus
    request: PodRequest


class NodeAnswer(msgspec.Struct, frozen=True, gc=False, eq=False):
    """Whether nodes of one group can serve a claim: their rank, or the obstacle. Nodes that answer alike share one
    object; compared by identity, as a fast key.
    """

    rank: NodeRank | None = None
    obstacle: Obstacle | None = None


class FreeGpusOfNodes:
    """The free GPUs of nodes with equal boards, of one pool. Owns what these GPUs offer claims, and the groups."""

    __slots__ = ("board", "free", "groups", "offers", "pool")

    def __init__(self, pool: str, board: Board, free: DeviceSet) -> None:
        self.pool, self.board, self.free = pool, board, free
        self.offers: dict[ClaimedGpus, Offer | NodeAnswer] = {}  # an answer is a refusal
        self.groups: dict[FreeAmounts, NodeGroup] = {}


class NodeGroup:
    """Owns the answers of its nodes."""

    __slots__ = ("amounts", "answers", "gpus", "value")

    def __init__(self, gpus: FreeGpusOfNodes, amounts: FreeAmounts, demand: DemandWeights) -> None:
        self.gpus, self.amounts = gpus, amounts
        self.value = node_value(self.state, demand)
        self.answers: dict[Asked, NodeAnswer] = {}

    @property
    def state(self) -> NodeState:
        """The state of each of the nodes."""
        layout = self.gpus.board.layout
        return layout, NodeRoom(whole_gpus(layout, self.gpus.free), self.amounts)


class NodeGroups:
    """Owner of all groups, and of the weights by which nodes are ranked."""

    def __init__(self) -> None:
        self.mix: RequestMix = NO_MIX
        self.demand: DemandWeights = NO_DEMAND
        self.pools: Mapping[str, Declared[GpuPool]] = {}
        self._gpus: dict[tuple[object, ...], FreeGpusOfNodes] = {}
        self._asked: dict[tuple[ClaimedGpus, PodRequest], Asked] = {}

    def set_pools(self, pools: Mapping[str, Declared[GpuPool]]) -> None:
        """Other pools: all earlier groups and answers are wrong."""
        self.pools = pools
        self._gpus.clear()

    @property
    def are_too_many(self) -> bool:
        """Whether most groups have no node any more."""
        return sum(len(each.groups) for each in self._gpus.values()) >= _MOST_GROUPS

    def begin_anew(self, demand: DemandWeights, claims: Iterable[ClaimedGpus]) -> None:
        """Other weights: groups that are found from now on answer by these. `claims`: those that still exist."""
        self.mix, self.demand = demand.mix, demand
        self._gpus = {}
        existing = set(claims)
        self._asked = {key: asked for key, asked in self._asked.items() if asked.claimed in existing}

    def asked(self, claimed: ClaimedGpus, request: PodRequest) -> Asked:
        """The one object for all equal pods."""
        found = self._asked.get((claimed, request))
        if found is None:
            found = self._asked[claimed, request] = Asked(claimed, request)
        return found

    def group(self, pool: str, board: Board, free: DeviceSet, amounts: FreeAmounts) -> NodeGroup:
        """The group of a node."""
        key = pool, board.layout, board.allocatable, free, all(board.uuids)
        gpus = self._gpus.get(key)
        if gpus is None:
            gpus = self._gpus[key] = FreeGpusOfNodes(pool, board, free)
        steps = in_steps(amounts, useful_amounts(self.mix, free.bit_count()))
        group = gpus.groups.get(steps)
        if group is None:
            group = gpus.groups[steps] = NodeGroup(gpus, steps, self.demand)
        return group

    def answer(self, group: NodeGroup, asked: Asked) -> NodeAnswer:
        """Whether the nodes can serve the pod; found once."""
        answer = group.answers.get(asked)
        if answer is None:
            offered = self._offer(group.gpus, asked.claimed)
            if isinstance(offered, Offer):
                answer = NodeAnswer(offered.rank_for(group.value, group.amounts, asked.request))
            else:
                answer = offered
            group.answers[asked] = answer
        return answer

    def renew(self, before: NodeGroup, after: NodeGroup) -> int:
        """Find the answers of an earlier group again. Returns how many were not known yet."""
        lacking = [
            each
            for each in before.answers
            if each not in after.answers and self._asked.get((each.claimed, each.request)) is each
        ]
        for asked in lacking:
            self.answer(after, asked)
        return len(lacking)

    def _offer(self, gpus: FreeGpusOfNodes, claimed: ClaimedGpus) -> Offer | NodeAnswer:
        found = gpus.offers.get(claimed)
        if found is None:
            refused = self.obstacle(gpus.pool, gpus.board, claimed)
            offered = refused or offer(gpus.board, gpus.free, claimed.devices, self.demand)
            found = gpus.offers[claimed] = offered if isinstance(offered, Offer) else NodeAnswer(obstacle=offered)
        return found

    def obstacle(self, pool_name: str, board: Board, claimed: ClaimedGpus) -> Obstacle | None:
        """Why no GPU of such nodes may be lent for the claim, free or not."""
        pool = self.pools.get(pool_name)
        if pool is None or pool_name not in claimed.pools:
            return NotInPoolOfClaim("", pool_name or "none")
        if not pool.spec.is_enforced:
            return PoolOfNodeObserved(pool.name)
        if pool.spec.allocation == "agent" and not all(board.uuids):
            return GpusOfNodeUnreported()
        return None
