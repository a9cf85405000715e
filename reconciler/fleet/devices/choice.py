"""The best GPUs of one node for a claim: an exact search over all sets.

Among the sets of so many suitable free GPUs, the first of these measures that differs decides:
1. where the claim prefers or requires one island: sets within one island (required: only these),
2. the smallest bandwidth of a pair, larger first; an unknown bandwidth counts as 0,
3. the sum of the bandwidths of all pairs, larger first,
4. least damage: the remaining free GPUs keep more disjoint pairs within islands, then quads, then eights,
5. the fragmentation of the remaining free GPUs over the mix of requests seen, smaller first,
6. the lowest ids.

A board has at most 16 GPUs, so there are at most 12,870 sets. The sets of each size are arrays in the order of ids,
the two measures of bandwidth are one number per set and layout, and each measure is a sweep over the sets that are
still equal. The last two depend only on how many GPUs of each island remain. Results are cached by layout.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from reconciler.fleet.devices.board import MOST_DEVICES, Board, BoardLayout, DeviceSet, positions, suitable_for
from reconciler.fleet.devices.fragmentation import NO_MIX, RequestMix, Scope, fragmentation, scopes
from reconciler.fleet.devices.node_room import NodeRoom, whole_gpus
from reconciler.fleet.obstacles import (
    GpuMemoryTooSmall,
    GpuModelDiffers,
    NewGpuAllocationsSuspended,
    NoIslandOfFreeGpus,
    TooFewFreeGpus,
)
from reconciler.model.plan.decision import Obstacle
from reconciler.model.policy.gpu import ClaimedDevices
from reconciler.model.quantity import Quantity

_Sets = NDArray[np.int32]
_Gbps = NDArray[np.int32]
_Keys = NDArray[np.int64]

_MOST_RESULTS = 100_000
_MOST_TABLES = 64  # of half a megabyte for 16 GPUs, 2 KB for 8
_LOW = MOST_DEVICES // 2
_NO_PAIR = 2**30  # larger than any bandwidth


class Groups(msgspec.Struct, frozen=True, gc=False, order=True):
    """Disjoint groups of GPUs, each within one island."""

    pairs: int
    quads: int
    eights: int

    def less(self, other: "Groups") -> "Groups":
        """The difference of each number."""
        return Groups(self.pairs - other.pairs, self.quads - other.quads, self.eights - other.eights)


class DeviceScore(msgspec.Struct, frozen=True, gc=False):
    """The quality of a set of GPUs in parts, in the order in which they decide."""

    is_one_island: bool
    smallest_gbps: int  # of any pair; 0 for a single GPU
    sum_gbps: int  # of all pairs
    is_bandwidth_known: bool  # of all pairs; an unknown bandwidth counts as 0
    kept: Groups  # of the GPUs that remain free
    lost: Groups  # fewer than before
    fragmentation: int  # of the GPUs that remain free, in millionths of a GPU


class Chosen(msgspec.Struct, frozen=True, gc=False):
    """The GPUs for a pod."""

    devices: DeviceSet
    ids: tuple[int, ...]
    uuids: tuple[str, ...]  # in the order of ids; empty where unknown
    score: DeviceScore


def choose(board: Board, taken: DeviceSet, claimed: ClaimedDevices, mix: RequestMix = NO_MIX) -> Chosen | Obstacle:
    """The best free GPUs of the node, or why there are none. `taken`: GPUs that are lent or used."""
    layout, free = board.layout, board.allocatable & ~taken
    devices = best_set(layout, free, claimed, mix)
    if not devices:
        return obstacle(board, taken, claimed)
    ids, uuids = layout.ids_of(devices), tuple([board.uuids[position] for position in positions(devices)])
    return Chosen(devices, ids, uuids, score(layout, free, devices, mix))


def best_set(layout: BoardLayout, free: DeviceSet, claimed: ClaimedDevices, mix: RequestMix = NO_MIX) -> DeviceSet:
    """The best set of free GPUs; the empty set if there is none."""
    candidates = free & suitable_for(layout, claimed)
    if not is_feasible(layout, candidates, claimed):
        return 0
    wants_island = claimed.policy != "any"
    return _search(layout, free, candidates, claimed.count, wants_island, scopes(layout, mix) if mix.requests else ())


def can_serve(layout: BoardLayout, free: DeviceSet, claimed: ClaimedDevices) -> bool:
    """Whether any set of free GPUs serves the claim; fast."""
    return is_feasible(layout, free & suitable_for(layout, claimed), claimed)


def is_feasible(layout: BoardLayout, candidates: DeviceSet, claimed: ClaimedDevices) -> bool:
    """Whether any set of these GPUs, all of which are suitable, serves the claim."""
    if not 0 < claimed.count <= candidates.bit_count():
        return False
    return claimed.policy != "requireContiguous" or claimed.count <= _largest_island(layout, candidates)


def score(layout: BoardLayout, free: DeviceSet, devices: DeviceSet, mix: RequestMix = NO_MIX) -> DeviceScore:
    """The parts of the score of one set."""
    pairs = [layout.pairs[one][other] for one, other in combinations(positions(devices), 2)]
    left = free & ~devices
    kept = groups(layout, left)
    return DeviceScore(
        is_one_island=any(not devices & ~island for island in layout.islands),
        smallest_gbps=min((each or 0 for each in pairs), default=0),
        sum_gbps=sum(each or 0 for each in pairs),
        is_bandwidth_known=None not in pairs,
        kept=kept,
        lost=groups(layout, free).less(kept),
        fragmentation=fragmentation(layout, NodeRoom(whole_gpus(layout, left)), mix),
    )


def groups(layout: BoardLayout, devices: DeviceSet) -> Groups:
    """The largest number of disjoint pairs, quads and eights within islands."""
    sizes = [(island & devices).bit_count() for island in layout.islands]
    return Groups(sum(size // 2 for size in sizes), sum(size // 4 for size in sizes), sum(size // 8 for size in sizes))


def _largest_island(layout: BoardLayout, devices: DeviceSet) -> int:
    return max(((island & devices).bit_count() for island in layout.islands), default=0)


def obstacle(board: Board, taken: DeviceSet, claimed: ClaimedDevices) -> Obstacle:
    """Why no set of GPUs serves the claim, if none does."""
    layout, able = board.layout, suitable_for(board.layout, claimed)
    if board.is_suspended:
        return NewGpuAllocationsSuspended()
    if layout.size and not able:
        of_model = suitable_for(layout, msgspec.structs.replace(claimed, memory=None))
        if not of_model:
            models = sorted({gpu.model or "unknown" for gpu in layout.gpus})
            return GpuModelDiffers(claimed.model or "", tuple(models))
        most = max(layout.gpus[position].memory_milli for position in positions(of_model))
        return GpuMemoryTooSmall(str(claimed.memory), str(Quantity(most, binary=True)) if most else "")
    candidates = board.allocatable & able & ~taken
    if 0 < claimed.count <= candidates.bit_count():
        return NoIslandOfFreeGpus(claimed.count, _largest_island(layout, candidates), candidates.bit_count())
    in_use, unhealthy = able & board.healthy & taken, able & ~board.healthy
    return TooFewFreeGpus(claimed.count, candidates.bit_count(), in_use.bit_count(), unhealthy.bit_count())


# --- The search.


@lru_cache(maxsize=_MOST_RESULTS)
def _search(
    layout: BoardLayout,
    free: DeviceSet,
    candidates: DeviceSet,
    count: int,
    wants_island: bool,
    mix_scopes: tuple[Scope, ...],
) -> DeviceSet:
    """The best set of `count` candidates, of which there are enough."""
    sets = _sets_of(layout, candidates, count, wants_island)
    if len(sets) > 1:
        for gbps in _bandwidths(layout):
            sets = _with_most(sets, gbps[sets])
    if len(sets) > 1:
        sets = _with_most(sets, _groups_kept(layout, free, sets))
    if len(sets) > 1 and mix_scopes:
        sets = _with_most(sets, _usable(free, sets, mix_scopes))
    return int(sets[0])


def _with_most(sets: _Sets, keys: _Keys | _Gbps) -> _Sets:
    most: _Sets = sets[keys == keys.max()]
    return most


def _sets_of(layout: BoardLayout, candidates: DeviceSet, count: int, wants_island: bool) -> _Sets:
    """The sets of candidates, in the order of ids; only those within one island if there are any and if wanted."""
    sets = _all_sets(layout.size, count)
    homes = [candidates & island for island in layout.islands] if wants_island else []
    large = [home for home in homes if home.bit_count() >= count] or [candidates]
    if large == [layout.everything]:
        return sets
    within = np.zeros(len(sets), bool)
    for home in large:
        within |= (sets & ~home) == 0
    found: _Sets = sets[within]
    return found


@lru_cache(maxsize=MOST_DEVICES * MOST_DEVICES)
def _all_sets(size: int, count: int) -> _Sets:
    """All sets of `count` of `size` GPUs. Sets with lower ids come first: 0,1 before 0,2 before 1,2.

    With the bits in reverse, so that the lowest id has the highest bit, this is the descending order of numbers.
    """
    reverse = np.arange(1 << size, dtype=np.int32)[::-1]
    reverse = reverse[np.bitwise_count(reverse) == count]
    sets: _Sets = np.zeros_like(reverse)
    for position in range(size):
        sets |= (reverse >> (size - 1 - position) & 1) << position
    return sets


@lru_cache(maxsize=_MOST_TABLES)
def _bandwidths(layout: BoardLayout) -> tuple[_Gbps, _Gbps]:
    """By set: the smallest bandwidth of a pair, and the sum of all pairs."""
    pairs = np.array([[gbps or 0 for gbps in row] for row in layout.pairs], np.int32)
    return _over_pairs(pairs, np.minimum, _NO_PAIR), _over_pairs(pairs, np.add, 0)


def _over_pairs(pairs: _Gbps, combine: np.ufunc, start: int) -> _Gbps:
    """By set: the pairs of its GPUs combined.

    The sets of the first eight GPUs are columns, those of the others rows. GPU N doubles the computed sets: each set
    with N as its last GPU is one without N, combined with the pairs of N.
    """
    low = min(len(pairs), _LOW)
    to_low, to_high = _to_sets(pairs[:, :low], combine, start), _to_sets(pairs[:, low:], combine, start)
    found: _Gbps = np.empty((to_high.shape[1], to_low.shape[1]), np.int32)
    found[0, 0] = start
    for gpu in range(low):
        half = 1 << gpu
        combine(found[0, :half], to_low[gpu, :half], out=found[0, half : 2 * half])
    for gpu in range(low, len(pairs)):
        half = 1 << gpu - low
        combine(found[:half], to_low[gpu], out=found[half : 2 * half])
        combine(found[half : 2 * half], to_high[gpu, :half, None], out=found[half : 2 * half])
    return found.ravel()


def _to_sets(pairs: _Gbps, combine: np.ufunc, start: int) -> _Gbps:
    """By GPU and set: the pairs of the GPU with the GPUs of the set combined."""
    gpus, others = pairs.shape
    found: _Gbps = np.full((gpus, 1 << others), start, np.int32)
    for other in range(others):
        half = 1 << other
        combine(found[:, :half], pairs[:, other, None], out=found[:, half : 2 * half])
    return found


def _by_count(values: Sequence[int]) -> _Keys:
    return np.array(values, np.int64)


# Disjoint groups in an island, by its number of free GPUs: pairs before quads before eights, at most 8 of each.
_GROUPS_IN = _by_count([(each // 2 << 8) + (each // 4 << 4) + each // 8 for each in range(MOST_DEVICES + 1)])


def _groups_kept(layout: BoardLayout, free: DeviceSet, sets: _Sets) -> _Keys:
    left = free & ~sets
    kept = np.zeros(len(sets), np.int64)
    for island in layout.islands:
        if (island & free).bit_count() > 1:
            kept += _GROUPS_IN[np.bitwise_count(left & island)]
    return kept


def _usable(free: DeviceSet, sets: _Sets, mix_scopes: tuple[Scope, ...]) -> _Keys:
    """What the mix can use of the remaining GPUs, as far as the sets differ."""
    left = free & ~sets
    usable = np.zeros(len(sets), np.int64)
    for scope, by_count in mix_scopes:
        usable += _by_count(by_count)[np.bitwise_count(left & scope)]
    return usable
