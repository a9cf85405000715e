"""Fragmentation: golden table, and agreement with FGD's definition GPU by GPU."""

from fractions import Fraction
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.devices.board import BoardLayout, layout_of
from reconciler.fleet.devices.fragmentation import (
    MILLIONTHS,
    WEIGHTS,
    MixRequest,
    RequestMix,
    fragmentation,
    scopes,
)
from reconciler.fleet.devices.node_room import FreeAmounts, NodeRoom, whole_gpus
from tests import folders
from tests.unit.fleet.devices.stage import board_of, mix_of
from tests.unit.fleet.devices.test_choice import MIXES, REQUESTS, drawn_gpus

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "gpu" / "fragmentation.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_node_is_fragmented(name: str) -> None:
    case = CASES[name]
    layout, mix = board_of(case).layout, mix_of(case["mix"])
    cpu = 1_000 * case["cpu"] if "cpu" in case else None
    gpus = tuple(case["free"]) if "free" in case else whole_gpus(layout, layout.everything)
    room = NodeRoom(gpus, FreeAmounts(cpu, case.get("memory")))
    if "is" in case:
        assert fragmentation(layout, room, mix) == case["is"]
    if "takes" in case:
        left = NodeRoom(whole_gpus(layout, layout.everything & ~layout.set_of(tuple(case["takes"]))), FreeAmounts(cpu))
        assert fragmentation(layout, left, mix) - fragmentation(layout, room, mix) == case["increase"]


def by_definition(layout: BoardLayout, room: NodeRoom, mix: RequestMix) -> Fraction:
    """GPUs, with exact weights."""
    return sum(
        (Fraction(weight, WEIGHTS) * fragment(layout, room, request) for request, weight in mix.requests), Fraction(0)
    )


def fragment(layout: BoardLayout, room: NodeRoom, request: MixRequest) -> Fraction:
    free = {gpu: Fraction(part, 1_000) for gpu, part in zip(layout.gpus, room.gpus, strict=True)}
    able = {
        gpu: part
        for gpu, part in free.items()
        if part > 0
        and part >= Fraction(request.milli, 1_000)
        and request.model in {"", gpu.model}
        and request.gpu_memory_milli <= gpu.memory_milli
    }
    if request.is_one_island:
        of_island = {gpu.island: [other for other in able if other.island == gpu.island] for gpu in able}
        able = {gpu: part for gpu, part in able.items() if len(of_island[gpu.island]) >= request.gpus}
    runs = (
        0 < request.gpus <= len(able)
        and (room.amounts.cpu_milli is None or room.amounts.cpu_milli >= request.cpu_milli)
        and (room.amounts.memory is None or room.amounts.memory >= request.memory)
    )
    return sum((part for gpu, part in free.items() if not (runs and gpu in able)), Fraction(0))


SIZED = some.builds(
    MixRequest,
    gpus=some.integers(0, 8),
    milli=some.sampled_from((1_000, 500, 100)),
    model=some.sampled_from(("", "h100", "l4")),
    gpu_memory_milli=some.sampled_from((0, 80 * 2**30 * 1_000)),
    is_one_island=some.booleans(),
    cpu_milli=some.integers(0, 4),
    memory=some.integers(0, 4),
)


@given(
    drawn_gpus(),
    some.lists(some.sampled_from((0, 100, 400, 500, 1_000)), min_size=16, max_size=16),
    some.none() | some.integers(0, 4),
    some.none() | some.integers(0, 4),
    some.dictionaries(SIZED, some.integers(0, 9), max_size=4).map(RequestMix),
)
def test_fragmentation_is_that_of_the_definition(
    gpus: list[Any], parts: list[int], cpu: int | None, memory: int | None, mix: RequestMix
) -> None:
    layout = layout_of(tuple(gpus))
    room = NodeRoom(tuple(parts[: layout.size]), FreeAmounts(cpu, memory))
    assert Fraction(fragmentation(layout, room, mix), MILLIONTHS) == by_definition(layout, room, mix)


@given(some.dictionaries(REQUESTS, some.integers(0, 10**9), max_size=40))
def test_the_weights_of_a_mix_sum_up(counts: dict[MixRequest, int]) -> None:
    weights = dict(RequestMix(counts).requests)
    assert sum(weights.values()) == (WEIGHTS if any(counts.values()) else 0)
    assert len(weights) <= 32
    kept = {request: counts[request] for request in weights}
    total = sum(sorted(counts.values(), reverse=True)[:32])
    assert all(abs(weight * total - WEIGHTS * kept[request]) < total for request, weight in weights.items())


def test_a_mix_keeps_the_most_frequent_requests() -> None:
    counts = {MixRequest(gpus): 100 + gpus for gpus in range(80)}
    kept = dict(RequestMix(counts).requests)
    assert sorted(each.gpus for each in kept) == list(range(16, 80))
    assert sum(kept.values()) == WEIGHTS


@given(drawn_gpus(), some.integers(0, 2**16 - 1), some.integers(0, 2**16 - 1), MIXES)
def test_scopes_are_the_part_in_which_sets_differ(gpus: list[Any], one: int, other: int, mix: RequestMix) -> None:
    layout = layout_of(tuple(gpus))
    one, other = one & layout.everything, other & layout.everything
    while one.bit_count() > other.bit_count():
        one &= one - 1
    while other.bit_count() > one.bit_count():
        other &= other - 1
    usable = [
        sum(by_count[(scope & left).bit_count()] for scope, by_count in scopes(layout, mix)) for left in (one, other)
    ]
    fragments = [fragmentation(layout, NodeRoom(whole_gpus(layout, left)), mix) for left in (one, other)]
    assert (usable[0] - usable[1]) * 1_000 == fragments[1] - fragments[0]
