"""Which of several nodes is the best for a claim, and what an allocation takes from the requests seen.

Theory of operation. For each request of the mix, some of the free GPUs of the cluster are usable. An allocation makes
fewer usable, for some requests more than for others. Its loss is the sum over the requests of

    frequency of the request * usable GPUs lost on the node / usable GPUs of the cluster

which is the decrease of the sum of frequency * log(usable GPUs of the cluster). A GPU that a request cannot use is no
loss to that request. So a claim without a model takes GPUs of models that few ask for, a small claim takes a partly
used board as long as whole boards are rare, and a model of which few GPUs are left weighs more the fewer they are. With
equal weights, the least loss is the least increase of FGD's fragmentation (fragmentation.py).

FGD counts all suitable free GPUs of a node as usable as soon as one request fits, also the seventh for requests of two.
Three sixteenths of the measure count only what is used if the node is filled with such requests until GPUs, cpu or
memory are exhausted. The share was found by trying on the traces of FGD (tests/benchmarks/devices/filling.py).
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from operator import mul
from typing import NamedTuple

from reconciler.fleet.devices.board import BoardLayout, DeviceSet, positions, suitable
from reconciler.fleet.devices.choice import DeviceScore
from reconciler.fleet.devices.fragmentation import NO_MIX, WHOLE, MixRequest, NodeRoom, RequestMix, usable, whole_gpus
from reconciler.model.policy.gpu import ClaimedDevices

FILLED, PARTS = 3, 16  # the measure is FILLED parts of filled GPUs, the other parts of PARTS are usable GPUs

_SCALE = 10**12  # loss of all GPUs of the cluster by a request with the whole mix
_LEAST_USABLE = 8 * WHOLE  # of a request, so that a request without usable GPUs does not outweigh all others

NodeStates = Mapping[tuple[BoardLayout, DeviceSet], int]  # numbers of nodes by board and free GPUs


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


def demand_weights(mix: RequestMix, nodes: NodeStates) -> DemandWeights:
    """The weights for a cluster in which GPUs are free or used as a whole."""
    totals = [0] * len(mix.requests)
    for (layout, free), count in nodes.items():
        amounts = _amounts(layout, NodeRoom(whole_gpus(layout, free)), mix)
        totals = [total + count * amount for total, amount in zip(totals, amounts, strict=True)]
    return DemandWeights(mix, totals)


def loss(layout: BoardLayout, before: NodeRoom, after: NodeRoom, demand: DemandWeights) -> int:
    """What an allocation on a node takes from the requests."""
    return _value(layout, before, demand) - _value(layout, after, demand)


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


def _value(layout: BoardLayout, room: NodeRoom, demand: DemandWeights) -> int:
    return sum(map(mul, demand.weights, _amounts(layout, room, demand.mix)))


@lru_cache(maxsize=65_536)
def _amounts(layout: BoardLayout, room: NodeRoom, mix: RequestMix) -> tuple[int, ...]:
    return tuple([_amount(layout, room, request) for request, _ in mix.requests])


def _amount(layout: BoardLayout, room: NodeRoom, request: MixRequest) -> int:
    """What such requests can use of the free GPUs of a node, in thousandths of a GPU times PARTS."""
    copies = _most_copies(request, room)
    if request.gpus < 1 or not copies:
        return 0
    return (PARTS - FILLED) * usable(layout, room.gpus, request) + FILLED * filled(layout, room.gpus, request, copies)


def filled(layout: BoardLayout, free: tuple[int, ...], request: MixRequest, most_copies: int) -> int:
    """Thousandths of the free GPUs that are used once the node is filled with such requests."""
    able = suitable(layout, request.model or None, request.gpu_memory_milli)
    homes = layout.islands if request.is_one_island else (layout.everything,)
    parts = [sum(free[position] // request.milli for position in positions(home & able)) for home in homes]
    copies = min(most_copies, sum(count // request.gpus for count in parts))
    return copies * request.gpus * request.milli


def _most_copies(request: MixRequest, room: NodeRoom) -> int:
    """How many such requests the cpu and the memory of a node allow."""
    copies = _UNLIMITED
    if room.cpu_milli is not None and request.cpu_milli:
        copies = min(copies, room.cpu_milli // request.cpu_milli)
    if room.memory is not None and request.memory:
        copies = min(copies, room.memory // request.memory)
    return copies


_UNLIMITED = 2**31
