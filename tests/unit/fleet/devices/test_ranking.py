"""The rank of nodes for a claim: golden table, and what the loss of an allocation depends on."""

from collections import Counter
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as some

from reconciler.fleet.devices.board import Board, BoardLayout, DeviceSet, layout_of
from reconciler.fleet.devices.fragmentation import MixRequest, RequestMix, fragmentation
from reconciler.fleet.devices.node_room import FreeAmounts, NodeRoom, PodRequest, Useful, in_steps, whole_gpus
from reconciler.fleet.devices.offer import Offer, offer
from reconciler.fleet.devices.ranking import DemandWeights, NodeRank, demand_weights, filled, node_value, useful_amounts
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
    rooms = {
        node: NodeRoom(
            whole_gpus(board.layout, board.allocatable & ~taken[node]),
            FreeAmounts(*amounts_of(case["nodes"][node], None)),
        )
        for node, board in boards.items()
    }
    demand = demand_weights(mix, Counter((board.layout, rooms[node]) for node, board in boards.items()))
    request = PodRequest(*amounts_of(case.get("request", {}), 0))
    ranks = {
        node: found
        for node, board in boards.items()
        if (found := rank_of(board, taken[node], rooms[node], claimed, request, demand)) is not None
    }
    assert sorted(node for node, rank in ranks.items() if rank == min(ranks.values())) == case["best"]


def amounts_of(said: dict[str, Any], otherwise: int | None) -> tuple[Any, Any]:
    return (1_000 * said["cpu"] if "cpu" in said else otherwise), said.get("memory", otherwise)


def rank_of(
    board: Board,
    taken: DeviceSet,
    room: NodeRoom,
    claimed: ClaimedDevices,
    request: PodRequest,
    demand: DemandWeights,
) -> NodeRank | None:
    found = offer(board, board.allocatable & ~taken, claimed, demand)
    return (
        found.rank_for(node_value((board.layout, room), demand), room.amounts, request)
        if isinstance(found, Offer)
        else None
    )


REQUESTS = some.builds(
    MixRequest, some.integers(1, 8), model=some.sampled_from(["", "h100", "l4"]), is_one_island=some.booleans()
)
ASKING = some.builds(
    MixRequest,
    some.integers(1, 8),
    is_one_island=some.booleans(),
    cpu_milli=some.integers(0, 64_000),
    memory=some.integers(0, 2**38),
)
SETS = some.integers(0, 2**16 - 1)


@given(drawn_gpus(), SETS, SETS, some.dictionaries(REQUESTS, some.integers(1, 9), max_size=5))
def test_no_allocation_gives_requests_more(
    gpus: list[Any], one: int, other: int, counts: dict[MixRequest, int]
) -> None:
    layout, mix = layout_of(tuple(gpus)), RequestMix(counts)
    demand = demand_weights(mix, {(layout, room(layout, layout.everything)): 3})
    free = one & layout.everything
    before, after = (node_value((layout, room(layout, each)), demand) for each in (free, free & other))
    assert before >= after


@given(drawn_gpus(), SETS, REQUESTS)
def test_filled_gpus_are_usable(gpus: list[Any], one: int, request: MixRequest) -> None:
    """And all of the usable ones are filled by requests of one GPU."""
    layout, mix = layout_of(tuple(gpus)), RequestMix({request: 1})
    state = room(layout, one & layout.everything)
    usable = sum(state.gpus) - fragmentation(layout, state, mix) // 1_000
    amount = filled(layout, state.gpus, request)
    assert 0 <= amount <= usable
    if request.gpus == 1:
        assert amount == usable


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
    assert not RequestMix({}).is_close_to(mix)
    assert RequestMix({}).is_close_to(RequestMix({}))


def test_a_rare_request_hardly_changes_a_mix() -> None:
    mix = RequestMix({MixRequest(1): 100, MixRequest(8): 100})
    assert RequestMix({MixRequest(1): 100, MixRequest(8): 100, MixRequest(4): 10}).is_close_to(mix)
    assert not RequestMix({MixRequest(1): 100, MixRequest(8): 100, MixRequest(4): 20}).is_close_to(mix)


AMOUNTS = some.one_of(some.none(), some.integers(0, 10**15))


@given(AMOUNTS, AMOUNTS, some.integers(0, 10**15), some.integers(0, 10**15))
def test_amounts_in_steps_are_an_eighth_smaller_at_most(
    cpu: int | None, memory: int | None, useful_cpu: int, useful_memory: int
) -> None:
    found = in_steps(FreeAmounts(cpu, memory), Useful(useful_cpu, useful_memory))
    for amount, useful, stepped in ((cpu, useful_cpu, found.cpu_milli), (memory, useful_memory, found.memory)):
        if amount is None:
            assert stepped is None
        else:
            least = min(amount, useful)
            assert stepped is not None
            assert least - least // 8 <= stepped <= least


@given(drawn_gpus(), SETS, some.dictionaries(ASKING, some.integers(1, 9), min_size=1, max_size=5), some.data())
def test_more_than_the_useful_amounts_change_no_loss(
    gpus: list[Any], one: int, counts: dict[MixRequest, int], data: some.DataObject
) -> None:
    layout, mix = layout_of(tuple(gpus)), RequestMix(counts)
    state = room(layout, one & layout.everything)
    demand = demand_weights(mix, {(layout, state): 3})
    fitting = [request for request, _ in mix.requests if request.gpus <= sum(state.gpus) // 1_000]
    assume(fitting)
    request = data.draw(some.sampled_from(fitting))
    asked = PodRequest(request.cpu_milli, request.memory)
    useful = useful_amounts(mix, sum(state.gpus) // 1_000)
    most, unlimited = FreeAmounts(*useful), FreeAmounts()
    after = whole_gpus(layout, data.draw(SETS) & one & layout.everything)
    losses = {
        node_value((layout, NodeRoom(state.gpus, each)), demand)
        - node_value((layout, NodeRoom(after, each.without(asked))), demand)
        for each in (most, unlimited)
    }
    assert len(losses) == 1


def room(layout: BoardLayout, free: DeviceSet) -> NodeRoom:
    return NodeRoom(whole_gpus(layout, free))
