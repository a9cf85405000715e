"""The rank of nodes for a claim: golden table, and what the loss of an allocation depends on."""

from collections import Counter
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.devices.board import Board, BoardLayout, DeviceSet, layout_of
from reconciler.fleet.devices.choice import Chosen, choose
from reconciler.fleet.devices.fragmentation import MixRequest, NodeRoom, RequestMix, fragmentation, whole_gpus
from reconciler.fleet.devices.ranking import DemandWeights, NodeRank, demand_weights, filled, loss, node_rank
from reconciler.model.policy.gpu import ClaimedDevices
from tests import folders
from tests.unit.fleet.devices.stage import board_of, mix_of
from tests.unit.fleet.devices.test_choice import drawn_gpus

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "gpu" / "ranking.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_the_best_nodes(name: str) -> None:
    case = CASES[name]
    claimed, mix = ClaimedDevices(**case["claim"]), mix_of(case.get("mix", []))
    boards = {
        node: board_of({**said, "pool": {"model": said.get("model", "h100")}}) for node, said in case["nodes"].items()
    }
    taken = {node: boards[node].layout.set_of(tuple(said.get("taken", ()))) for node, said in case["nodes"].items()}
    states = Counter((board.layout, board.allocatable & ~taken[node]) for node, board in boards.items())
    demand = demand_weights(mix, states)
    ranks = {
        node: rank
        for node, board in boards.items()
        if (rank := rank_of(board, taken[node], claimed, demand)) is not None
    }
    assert sorted(node for node, rank in ranks.items() if rank == min(ranks.values())) == case["best"]


def rank_of(board: Board, taken: DeviceSet, claimed: ClaimedDevices, demand: DemandWeights) -> NodeRank | None:
    chosen, free = choose(board, taken, claimed, demand.mix), board.allocatable & ~taken
    if not isinstance(chosen, Chosen):
        return None
    before, after = (NodeRoom(whole_gpus(board.layout, each)) for each in (free, free & ~chosen.devices))
    return node_rank(claimed, chosen.score, loss(board.layout, before, after, demand), free.bit_count())


REQUESTS = some.builds(
    MixRequest, some.integers(1, 8), model=some.sampled_from(["", "h100", "l4"]), is_one_island=some.booleans()
)
SETS = some.integers(0, 2**16 - 1)


@given(drawn_gpus(), SETS, SETS, some.dictionaries(REQUESTS, some.integers(1, 9), max_size=5))
def test_no_allocation_gives_requests_more(
    gpus: list[Any], one: int, other: int, counts: dict[MixRequest, int]
) -> None:
    layout, mix = layout_of(tuple(gpus)), RequestMix(counts)
    demand = demand_weights(mix, {(layout, layout.everything): 3})
    free = one & layout.everything
    assert loss(layout, room(layout, free), room(layout, free & other), demand) >= 0


@given(drawn_gpus(), SETS, SETS, REQUESTS)
def test_filled_gpus_are_usable(gpus: list[Any], one: int, other: int, request: MixRequest) -> None:
    """And all of the usable ones are filled by requests of one GPU."""
    layout, mix = layout_of(tuple(gpus)), RequestMix({request: 1})
    state = room(layout, one & layout.everything)
    usable = sum(state.gpus) - fragmentation(layout, state, mix) // 1_000
    amount = filled(layout, state.gpus, request, other)
    assert 0 <= amount <= usable
    if request.gpus == 1:
        assert filled(layout, state.gpus, request, 16) == usable


def test_weights_that_differ_little_are_close() -> None:
    mix = RequestMix({MixRequest(1): 1, MixRequest(8): 1})
    demand = DemandWeights(mix, (10**9, 10**9))
    assert DemandWeights(mix, (10**9, 11 * 10**8)).is_close_to(demand)
    assert not DemandWeights(mix, (10**9, 12 * 10**8)).is_close_to(demand)
    assert not DemandWeights(RequestMix({MixRequest(1): 1, MixRequest(8): 1}), (10**9, 10**9)).is_close_to(demand)


def test_mixes_of_other_requests_or_frequencies_are_not_close() -> None:
    mix = RequestMix({MixRequest(1): 100, MixRequest(8): 100})
    assert RequestMix({MixRequest(1): 101, MixRequest(8): 99}).is_close_to(mix)
    assert not RequestMix({MixRequest(1): 130, MixRequest(8): 70}).is_close_to(mix)
    assert not RequestMix({MixRequest(1): 200}).is_close_to(mix)
    assert not RequestMix({MixRequest(1): 100, MixRequest(8): 100, MixRequest(4): 1}).is_close_to(mix)


def room(layout: BoardLayout, free: DeviceSet) -> NodeRoom:
    return NodeRoom(whole_gpus(layout, free))
