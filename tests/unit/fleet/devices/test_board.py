"""Boards: golden table of reports, and reports that may contain anything."""

from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.devices.board import Board, positions, read_board
from reconciler.fleet.devices.choice import choose
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.policy.gpu import ClaimedDevices
from tests import folders
from tests.unit.fleet.devices.stage import board_of, node_of, pool_of

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "gpu" / "boards.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_a_board_is_read(name: str) -> None:
    case = CASES[name]
    assert {key: value for key, value in parts(board_of(case)).items() if key in case["has"]} == case["has"]


def parts(board: Board) -> dict[str, Any]:
    layout = board.layout
    return {
        "ids": [gpu.id for gpu in layout.gpus],
        "islands": [list(layout.ids_of(island)) for island in layout.islands],
        "healthy": list(layout.ids_of(board.healthy)),
        "allocatable": list(layout.ids_of(board.allocatable)),
        "uuids": list(board.uuids),
        "models": [gpu.model for gpu in layout.gpus],
        "memories": [gpu.memory_milli // 1_000 // 2**30 for gpu in layout.gpus],
        "pairs": [[gbps for at, gbps in enumerate(row) if at != number] for number, row in enumerate(layout.pairs)],
        "reported": board.is_reported,
    }


def report(status: Any, spec: Any = None) -> Unstructured:
    return Unstructured(
        "gpu.scheduling/v1", "GpuNodeStatus", UnstructuredMetadata("n1"), {"status": status, "spec": spec}
    )


ANYTHING = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(max_size=5),
    lambda inner: some.lists(inner, max_size=3) | some.dictionaries(some.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
ENTRY = some.fixed_dictionaries(
    {},
    optional={
        "id": some.integers(-2, 20) | ANYTHING,
        "uuid": some.sampled_from(("GPU-a", "GPU-b", "a,b", "x" * 97)) | ANYTHING,
        "island": some.sampled_from(("a", "b", "alone 1")) | ANYTHING,
        "bandwidthGBps": some.integers(-1, 10**7) | ANYTHING,
        "model": some.sampled_from(("h100", "l4")) | ANYTHING,
        "memory": some.sampled_from(("80Gi", "-1", "9" * 40, "1e9")) | ANYTHING,
        "health": some.sampled_from(("Healthy", "Unhealthy", "Unknown")) | ANYTHING,
    },
)


@given(some.lists(ENTRY | ANYTHING, max_size=70), ANYTHING)
def test_any_report_is_read_within_bounds(devices: list[Any], spec: Any) -> None:
    board = read_board(node_of({}), report({"devices": devices}, spec), pool_of({}))
    layout = board.layout
    ids = [gpu.id for gpu in layout.gpus]
    assert ids == sorted(set(ids))
    assert all(0 <= each < 16 for each in ids)
    assert board.allocatable & ~layout.everything == 0
    assert sum(layout.islands) == layout.everything
    lendable = [board.uuids[position] for position in positions(board.healthy) if board.uuids[position]]
    assert len(lendable) == len(set(lendable)), "no GPU is lent under two ids"
    assert not any("," in each or len(each) > 96 for each in board.uuids)
    choose(board, 0, ClaimedDevices(count=2, policy="requireContiguous"))


@given(ANYTHING)
def test_any_status_is_read(status: Any) -> None:
    board = read_board(node_of({"allocatable": 3}), report(status), None)
    assert board.layout.size == 3
    assert not board.is_reported


NAMES = some.lists(some.sampled_from(("a", "b", "c", None)), min_size=1, max_size=16)


@given(NAMES, some.permutations(("x", "y", "zz")), some.randoms())
def test_boards_with_equal_gpus_share_one_layout(islands: list[str | None], names: list[str], random: Any) -> None:
    renamed = dict(zip(("a", "b", "c"), names, strict=True))
    one: list[dict[str, Any]] = [
        {"id": number, "bandwidthGBps": 300, **({"island": each} if each else {})}
        for number, each in enumerate(islands)
    ]
    other = [{**each, "island": renamed[each["island"]]} if "island" in each else each for each in one]
    other = [{**each, "uuid": f"GPU-{each['id']}"} for each in other]
    random.shuffle(other)
    boards = [read_board(node_of({}), report({"devices": devices}), pool_of({})) for devices in (one, other)]
    assert boards[0].layout is boards[1].layout
