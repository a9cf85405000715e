"""Fragmentation of the free GPUs of a node: the expected amount that the requests seen cannot use.

The measure of FGD (Weng et al., "Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
Descent", USENIX ATC 2023). For one request, the fragments of a node are
- all free GPUs, if the request cannot run on the node: too few suitable GPUs, too little cpu or memory; also if the
  request needs no GPU,
- else the free parts of the GPUs that cannot serve the request: another model, too little GPU memory, a free part
  smaller than the requested part, or an island with too few such GPUs where the request needs one island.
The fragmentation of a node is the mean over the mix of requests, weighted by their frequency. An allocation is good if
the fragmentation of its node increases little.

Free GPUs are counted in thousandths of each GPU, and the weights of a mix are thousandths that sum up to 1,000. So the
mean is an exact integer, in millionths of a GPU.
"""

from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

import msgspec

from reconciler.fleet.devices.board import BoardLayout, DeviceSet, positions, suitable
from reconciler.fleet.devices.node_room import NO_REQUEST, WHOLE, FreeParts, NodeRoom, PodRequest
from reconciler.model.policy.gpu import ClaimedDevices

WEIGHTS = 1_000  # sum of the weights of a mix that is not empty
MILLIONTHS = WHOLE * WEIGHTS  # one GPU

_MOST_REQUESTS = 64  # of a mix: the most frequent ones


class MixRequest(msgspec.Struct, frozen=True, gc=False, order=True):
    """What one pod requests, as far as fragmentation depends on it."""

    gpus: int
    milli: int = WHOLE  # thousandths of each GPU
    model: str = ""  # empty: any
    gpu_memory_milli: int = 0  # of each GPU, in thousandths of a byte
    is_one_island: bool = False  # GPUs of several islands do not serve the request
    cpu_milli: int = 0
    memory: int = 0  # bytes of the node

    @classmethod
    def of(cls, claimed: ClaimedDevices, request: PodRequest = NO_REQUEST) -> "MixRequest":
        """The request of a pod with such a claim."""
        return cls(
            gpus=claimed.count,
            model=claimed.model or "",
            gpu_memory_milli=0 if claimed.memory is None else claimed.memory.milli,
            is_one_island=claimed.policy == "requireContiguous",
            cpu_milli=request.cpu_milli,
            memory=request.memory,
        )


def _weighted(counts: list[tuple[MixRequest, int]]) -> tuple[tuple[MixRequest, int], ...]:
    """Weights in thousandths, by largest remainder. Requests rarer than that are left out."""
    total = sum(count for _, count in counts)
    shares = [divmod(count * WEIGHTS, total) for _, count in counts]
    weights = [share for share, _ in shares]
    by_remainder = sorted(range(len(counts)), key=lambda number: (-shares[number][1], number))
    for number in by_remainder[: WEIGHTS - sum(weights)] if counts else ():
        weights[number] += 1
    return tuple((request, weight) for (request, _), weight in zip(counts, weights, strict=True) if weight)


class RequestMix:
    """The requests seen, with their frequencies in thousandths; compared by identity, as a fast key of a cache."""

    __slots__ = ("requests",)

    def __init__(self, counts: Mapping[MixRequest, int]) -> None:
        frequent = sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MOST_REQUESTS]
        self.requests = _weighted([(each, count) for each, count in frequent if count > 0])

    def is_close_to(self, other: "RequestMix") -> bool:
        """Whether requests are about as frequent: at most a sixteenth of the pods request something else."""
        before, after = Counter(dict(other.requests)), Counter(dict(self.requests))
        return max((before - after).total(), (after - before).total()) <= WEIGHTS // 16


NO_MIX = RequestMix({})


def fragmentation(layout: BoardLayout, room: NodeRoom, mix: RequestMix) -> int:
    """Millionths of GPUs that are free on the node and that the mix cannot use, on average."""
    runs = 0
    for number, (request, _) in enumerate(mix.requests):
        runs |= _has_room(request, room) << number
    return _fragmentation(layout, room.gpus, mix, runs)


def _has_room(request: MixRequest, room: NodeRoom) -> bool:
    cpu, memory = room.amounts
    return (cpu is None or request.cpu_milli <= cpu) and (memory is None or request.memory <= memory)


@lru_cache(maxsize=65_536)
def _fragmentation(layout: BoardLayout, free: FreeParts, mix: RequestMix, runs: int) -> int:
    """`runs`: bit N is set if the node has the cpu and memory for request N of the mix."""
    total = sum(free)
    return sum(
        weight * (total - (usable(layout, free, request) if runs >> number & 1 else 0))
        for number, (request, weight) in enumerate(mix.requests)
    )


def usable(layout: BoardLayout, free: FreeParts, request: MixRequest) -> int:
    """Thousandths of the free GPUs that such requests can use, given enough cpu and memory."""
    if request.gpus < 1:
        return 0
    large_enough = sum(1 << position for position, part in enumerate(free) if part and part >= request.milli)
    able = large_enough & suitable(layout, request.model or None, request.gpu_memory_milli)
    homes = layout.islands if request.is_one_island else (layout.everything,)
    return sum(
        sum(free[position] for position in positions(home & able))
        for home in homes
        if (home & able).bit_count() >= request.gpus
    )


# --- For the choice among equally many whole GPUs of one node: the parts of the measure in which the sets differ.
#
# For whole GPUs, the usable ones depend on the number of remaining free GPUs in each scope: an island, or all GPUs of a
# model. The sum over scopes is larger where the fragmentation is smaller.

ByCount = tuple[int, ...]  # weighted usable GPUs, by the number of free GPUs in the scope
Scope = tuple[DeviceSet, ByCount]


@lru_cache(maxsize=4_096)
def scopes(layout: BoardLayout, mix: RequestMix) -> tuple[Scope, ...]:
    """The scopes in which sets of one size can differ, for whole GPUs."""
    weights: dict[DeviceSet, Counter[int]] = {}  # by scope, the weights by number of GPUs
    for request, weight in mix.requests:
        able = suitable(layout, request.model or None, request.gpu_memory_milli)
        homes = layout.islands if request.is_one_island and request.gpus > 1 else (layout.everything,)
        for home in homes if 0 < request.milli <= WHOLE and request.gpus > 0 else ():
            if (home & able).bit_count() >= request.gpus:
                weights.setdefault(home & able, Counter())[request.gpus] += weight
    weights.pop(layout.everything, None)  # equally many remain free of all GPUs
    return tuple((scope, _by_count(scope, counts)) for scope, counts in sorted(weights.items()))


def _by_count(scope: DeviceSet, weights: Counter[int]) -> ByCount:
    return tuple(
        free * sum(weight for gpus, weight in weights.items() if gpus <= free) for free in range(scope.bit_count() + 1)
    )
