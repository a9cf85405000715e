"""The choice of GPUs: golden table, and exact agreement with a search by brute force."""

from itertools import combinations
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.devices.board import Board, Gpu, layout_of
from reconciler.fleet.devices.choice import Chosen, can_serve, choose
from reconciler.fleet.devices.fragmentation import MixRequest, RequestMix, fragmentation
from reconciler.fleet.devices.node_room import NodeRoom, whole_gpus
from reconciler.model.policy.gpu import ClaimedDevices
from reconciler.model.quantity import Quantity
from reconciler.plan.capacity.words import obstacle_words
from tests import folders
from tests.unit.fleet.devices.stage import board_of, claim_of, mix_of

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "gpu" / "choice.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_claim_gets_its_gpus(name: str) -> None:
    case = CASES[name]
    board = board_of(case)
    taken = board.layout.set_of(tuple(case.get("lent", ())))
    answer = choose(board, taken, claim_of(case["claim"]), mix_of(case.get("mix", [])))
    if "refused" in case:
        assert not isinstance(answer, Chosen)
        assert obstacle_words(answer) == case["refused"]
        return
    assert isinstance(answer, Chosen), answer
    assert list(answer.ids) == case["gets"]
    assert list(answer.uuids) == case.get("uuids", list(answer.uuids))
    assert {key: value for key, value in parts(answer).items() if key in case.get("score", {})} == case.get("score", {})


def parts(chosen: Chosen) -> dict[str, Any]:
    score = chosen.score
    return {
        "one_island": score.is_one_island,
        "smallest": score.smallest_gbps,
        "sum": score.sum_gbps,
        "known": score.is_bandwidth_known,
        "kept": [score.kept.pairs, score.kept.quads, score.kept.eights],
        "lost": [score.lost.pairs, score.lost.quads, score.lost.eights],
        "fragmentation": score.fragmentation,
    }


# --- An oracle that knows nothing of layouts: each set of ids is judged by the definition.

MODELS = ("h100", "l4")
GIB = 2**30 * 1_000


def is_alone(gpus: list[Gpu], gpu: Gpu) -> bool:
    return sum(each.island == gpu.island for each in gpus) == 1


def gbps(gpus: list[Gpu], one: Gpu, other: Gpu) -> int:
    if one.island == other.island:
        return min(one.bandwidth_gbps or 0, other.bandwidth_gbps or 0)
    return min((each.bandwidth_gbps or 0) if is_alone(gpus, each) else 64 for each in (one, other))


def by_brute_force(gpus: list[Gpu], free: set[int], claimed: ClaimedDevices, mix: RequestMix) -> tuple[int, ...] | None:
    """The ids of the best set; None if there is none."""
    layout = layout_of(tuple(gpus))
    able = [
        gpu
        for gpu in gpus
        if gpu.id in free
        and claimed.model in {None, gpu.model}
        and (claimed.memory is None or claimed.memory.milli <= gpu.memory_milli)
    ]
    best = None
    for chosen in combinations(able, claimed.count):
        is_one_island = len({gpu.island for gpu in chosen}) == 1
        if claimed.policy == "requireContiguous" and not is_one_island:
            continue
        pairs = [gbps(gpus, one, other) for one, other in combinations(chosen, 2)]
        left = [gpu for gpu in gpus if gpu.id in free and gpu not in chosen]
        sizes = [sum(gpu.island == island for gpu in left) for island in {gpu.island for gpu in left}]
        room = NodeRoom(whole_gpus(layout, layout.set_of(tuple(gpu.id for gpu in left))))
        rank = (
            claimed.policy != "any" and not is_one_island,
            -min(pairs, default=0),
            -sum(pairs),
            [-sum(size // group for size in sizes) for group in (2, 4, 8)],
            fragmentation(layout, room, mix),
            [gpu.id for gpu in chosen],
        )
        if best is None or rank < best[0]:
            best = rank, tuple(gpu.id for gpu in chosen)
    return best[1] if best is not None else None


@some.composite
def drawn_gpus(draw: some.DrawFn) -> list[Gpu]:
    ids = sorted(draw(some.sets(some.integers(0, 15), min_size=1, max_size=draw(some.sampled_from((4, 8, 10))))))
    islands = draw(some.sampled_from((1, 2, 4, 8)))
    speeds = draw(some.lists(some.sampled_from((None, 0, 16, 32, 64, 65, 300, 600)), min_size=1, max_size=4))
    memories = draw(some.sampled_from(((80 * GIB,), (40 * GIB, 80 * GIB), (0, 80 * GIB))))
    models = draw(some.sampled_from((("h100",), MODELS, ("", "h100"))))
    return [
        Gpu(
            number,
            draw(some.integers(0, islands - 1)),
            draw(some.sampled_from(speeds)),
            draw(some.sampled_from(models)),
            draw(some.sampled_from(memories)),
        )
        for number in ids
    ]


REQUESTS = some.builds(
    MixRequest,
    gpus=some.integers(0, 8),
    milli=some.sampled_from((1_000, 1_000, 500)),
    model=some.sampled_from(("", *MODELS)),
    gpu_memory_milli=some.sampled_from((0, 80 * GIB)),
    is_one_island=some.booleans(),
)
MIXES = some.dictionaries(REQUESTS, some.integers(0, 9), max_size=4).map(RequestMix)
CLAIMS = some.builds(
    ClaimedDevices,
    count=some.integers(1, 8),
    policy=some.sampled_from(("any", "contiguous", "requireContiguous")),
    model=some.sampled_from((None, None, *MODELS)),
    memory=some.sampled_from((None, None, Quantity(80 * GIB, binary=True))),
)


@given(drawn_gpus(), some.sets(some.integers(0, 15)), some.sets(some.integers(0, 15), max_size=3), CLAIMS, MIXES)
def test_the_choice_is_the_best_of_all_sets(
    gpus: list[Gpu], taken: set[int], unhealthy: set[int], claimed: ClaimedDevices, mix: RequestMix
) -> None:
    layout = layout_of(tuple(gpus))
    healthy = layout.everything & ~layout.set_of(tuple(unhealthy))
    board = Board(layout, ("",) * layout.size, healthy)
    answer = choose(board, layout.set_of(tuple(taken)), claimed, mix)
    free = {gpu.id for gpu in gpus} - taken - unhealthy
    expected = by_brute_force(gpus, free, claimed, mix)
    assert (answer.ids if isinstance(answer, Chosen) else None) == expected
    assert can_serve(layout, layout.set_of(tuple(free)), claimed) == (expected is not None)
    if not isinstance(answer, Chosen):
        assert obstacle_words(answer)
        return
    chosen = [gpu for gpu in gpus if gpu.id in answer.ids]
    pairs = [gbps(gpus, one, other) for one, other in combinations(chosen, 2)]
    assert (answer.score.smallest_gbps, answer.score.sum_gbps) == (min(pairs, default=0), sum(pairs))
    assert answer.score.is_one_island == (len({gpu.island for gpu in chosen}) == 1)


@given(drawn_gpus(), some.permutations(range(8)), CLAIMS, MIXES)
def test_other_numbers_of_islands_make_no_difference(
    gpus: list[Gpu], numbers: list[int], claimed: ClaimedDevices, mix: RequestMix
) -> None:
    renamed = [Gpu(each.id, numbers[each.island], each.bandwidth_gbps, each.model, each.memory_milli) for each in gpus]
    boards = [
        Board(layout, ("",) * layout.size, layout.everything) for layout in map(layout_of, map(tuple, (gpus, renamed)))
    ]
    assert choose(boards[0], 0, claimed, mix) == choose(boards[1], 0, claimed, mix)


@given(drawn_gpus(), some.permutations(range(16)), CLAIMS, MIXES)
def test_other_ids_change_no_score(gpus: list[Gpu], ids: list[int], claimed: ClaimedDevices, mix: RequestMix) -> None:
    moved = sorted(
        (Gpu(ids[each.id], each.island, each.bandwidth_gbps, each.model, each.memory_milli) for each in gpus),
        key=lambda each: each.id,
    )
    boards = [
        Board(layout, ("",) * layout.size, layout.everything) for layout in map(layout_of, map(tuple, (gpus, moved)))
    ]
    one, other = choose(boards[0], 0, claimed, mix), choose(boards[1], 0, claimed, mix)
    if isinstance(one, Chosen) and isinstance(other, Chosen):
        # The search does not tell an unknown bandwidth from 0, nor islands where the claim has any GPUs.
        untold = {"is_bandwidth_known": True} | ({"is_one_island": True} if claimed.policy == "any" else {})
        scores = [msgspec.structs.replace(each.score, **untold) for each in (one, other)]
        assert scores[0] == scores[1]
    else:
        assert one == other
