"""Which of several nodes is the best for a claim, and what an allocation takes from the requests seen.

Theory of operation. For each request of the mix, some of the free GPUs of the cluster are usable. An allocation makes
fewer usable, for some requests more than for others. Its loss is the sum over the requests of

    frequency of the request * usable GPUs lost on the node / usable GPUs of the cluster

which is the decrease of the sum of frequency * log(usable GPUs of the cluster). A GPU that a request cannot use is no
loss to that request. So a claim without a model takes GPUs of models that few ask for, a small claim takes a partly
used board as long as whole boards are rare, and a model of which few GPUs are left weighs more the fewer they are. With
equal weights, the least loss is the least increase of FGD's fragmentation (fragmentation.py).

FGD counts all suitable free GPUs of a node as usable as soon as one request fits, also the seventh for requests of two.
A quarter of the measure count only what is used if the node is filled with such requests until GPUs, cpu or
memory are exhausted. The share was found by trying on the traces of FGD (tests/benchmarks/devices/filling.py).
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from reconciler.fleet.devices.board import BoardLayout, DeviceSet, positions, suitable
from reconciler.fleet.devices.choice import DeviceScore
from reconciler.fleet.devices.fragmentation import NO_MIX, MixRequest, RequestMix, usable
from reconciler.fleet.devices.node_room import WHOLE, FreeAmounts, FreeParts, NodeRoom, Useful, in_steps, whole_gpus
from reconciler.model.policy.gpu import ClaimedDevices

FILLED, PARTS = 4, 16  # the measure is FILLED parts of filled GPUs, the other parts of PARTS are usable GPUs

_SCALE = 10**12  # loss of all GPUs of the cluster by a request with the whole mix
_LEAST_USABLE = 8 * WHOLE  # of a request, so that a request without usable GPUs does not outweigh all others

NodeState = tuple[BoardLayout, NodeRoom]


class NodeRank(NamedTuple):
    """The measures of a node for a claim, in the order in which they decide; the smallest rank is the best."""

    crosses_islands: int  # 1 if the claim prefers one island and the GPUs are in several
    preferred_slowness: tuple[int, int]  # of a claim that prefers or requires one island: negative GB/s, see `slowness`
    loss: int  # of the requests seen
    slowness: tuple[int, int]  # negative GB/s: of the slowest pair, and of all pairs
    lost_groups: tuple[int, int, int]  # pairs, quads and eights within islands
    free: int  # GPUs of the node: the fullest node is the best


class DemandWeights:
    """The requests of a mix with the weight of each usable GPU; compared by identity, as a fast key of a cache."""

    __slots__ = ("mix", "weights")

    def __init__(self, mix: RequestMix, usable_milli: Iterable[int]) -> None:
        """`usable_milli`: what each request can use in the cluster, in the order of the mix and in PARTS."""
        self.mix = mix
        self.weights = tuple(
            frequency * _SCALE // max(PARTS * _LEAST_USABLE, amount)
            for (_, frequency), amount in zip(mix.requests, usable_milli, strict=True)
        )

    def is_close_to(self, other: "DemandWeights") -> bool:
        """Whether the weights of the same mix differ by at most an eighth: ranks may be kept."""
        pairs = zip(self.weights, other.weights, strict=False)
        return self.mix is other.mix and all(8 * abs(one - another) <= another for one, another in pairs)


NO_DEMAND = DemandWeights(NO_MIX, ())


def demand_weights(mix: RequestMix, nodes: Mapping[NodeState, int]) -> DemandWeights:
    """The weights for a cluster with so many nodes of each state."""
    totals = [0] * len(mix.requests)
    for (layout, room), count in nodes.items():
        amounts = free_gpus(layout, room.gpus, mix).amounts(room.amounts)
        totals = [total + count * amount for total, amount in zip(totals, amounts, strict=True)]
    return DemandWeights(mix, totals)


@lru_cache(maxsize=1_024)
def useful_amounts(mix: RequestMix, gpus: int) -> Useful:
    """The cpu and memory of a node with so many free GPUs beyond which no request finds more use: enough for any one
    pod, and then for as many pods of any request as the GPUs allow.
    """
    kinds = [(request, gpus // request.gpus) for request, _ in mix.requests if 0 < request.gpus <= gpus]

    return Useful(
        _most([each.cpu_milli for each, _ in kinds]) + _most([each.cpu_milli * pods for each, pods in kinds]),
        _most([each.memory for each, _ in kinds]) + _most([each.memory * pods for each, pods in kinds]),
    )


def node_state(layout: BoardLayout, free: DeviceSet, amounts: FreeAmounts, mix: RequestMix) -> NodeState:
    """The state of a node with whole free GPUs, as far as the mix tells nodes apart."""
    useful = useful_amounts(mix, free.bit_count())
    return layout, NodeRoom(whole_gpus(layout, free), in_steps(amounts, useful))


def _most(amounts: list[int]) -> int:
    return max(amounts, default=0)


def node_value(state: NodeState, demand: DemandWeights) -> int:
    """What the free GPUs of a node are worth to the requests."""
    layout, room = state
    return free_gpus(layout, room.gpus, demand.mix).value(room.amounts, demand)


def node_rank(claimed: ClaimedDevices, score: DeviceScore, lost: int, free: int) -> NodeRank:
    """The rank of a node on which the claim gets GPUs of this score. `lost`: see `loss`; `free`: GPUs of the node."""
    prefers_island = claimed.policy != "any"
    slowness = -score.smallest_gbps, -score.sum_gbps
    return NodeRank(
        crosses_islands=int(prefers_island and not score.is_one_island),
        preferred_slowness=slowness if prefers_island else (0, 0),
        loss=lost,
        slowness=slowness,
        lost_groups=(score.lost.pairs, score.lost.quads, score.lost.eights),
        free=free,
    )


class FreeGpus:
    """Free GPUs of a node, and what the requests of a mix can use of these GPUs."""

    __slots__ = ("_uses",)

    def __init__(self, layout: BoardLayout, gpus: FreeParts, mix: RequestMix) -> None:
        self._uses = [_use_of(layout, gpus, request) for request, _ in mix.requests]

    def amounts(self, free: FreeAmounts) -> list[int]:
        """What each request can use, in thousandths of a GPU times PARTS. GPUs are usable if the free cpu and memory of
        the node suffice for one pod. This loop runs for each changed node and each kind of pod.
        """
        cpu, memory = free
        found = []
        for cpu_of_pod, memory_of_pod, usable_parts, pods, of_pod in self._uses:
            if cpu is not None and cpu_of_pod * pods > cpu:
                pods = cpu // cpu_of_pod  # noqa: PLW2901
            if memory is not None and memory_of_pod * pods > memory:
                pods = memory // memory_of_pod  # noqa: PLW2901
            found.append(usable_parts + pods * of_pod if pods else 0)
        return found

    def value(self, free: FreeAmounts, demand: DemandWeights) -> int:
        """What the GPUs are worth to all requests."""
        return sum(map(mul, demand.weights, self.amounts(free)))


class _Use(NamedTuple):
    """What a request can use of free GPUs, given enough cpu and memory."""

    cpu_milli: int
    memory: int
    usable: int
    pods: int  # that fill the node
    of_pod: int


def _use_of(layout: BoardLayout, gpus: FreeParts, request: MixRequest) -> _Use:
    of_pod = request.gpus * request.milli
    pods = filled(layout, gpus, request) // of_pod if of_pod else 0
    usable_parts = (PARTS - FILLED) * usable(layout, gpus, request)
    return _Use(request.cpu_milli, request.memory, usable_parts, pods, FILLED * of_pod)


@lru_cache(maxsize=65_536)
def free_gpus(layout: BoardLayout, gpus: FreeParts, mix: RequestMix) -> FreeGpus:
    """The one value of these free GPUs."""
    return FreeGpus(layout, gpus, mix)


def filled(layout: BoardLayout, free: FreeParts, request: MixRequest) -> int:
    """Thousandths of the free GPUs that such requests use on a node with enough cpu and memory until nothing fits."""
    able = suitable(layout, request.model or None, request.gpu_memory_milli)
    homes = layout.islands if request.is_one_island else (layout.everything,)
    parts = [sum(free[position] // request.milli for position in positions(home & able)) for home in homes]
    return sum(count // request.gpus for count in parts) * request.gpus * request.milli
