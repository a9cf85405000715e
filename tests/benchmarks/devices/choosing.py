"""Measures the choice of GPUs on drawn boards, and the ledger of a large fleet.

Times are of this thread's processor, since others may be busy. No query is asked twice, so no answer comes from the
cache of results. In `new_layout`, the layout is new as well, so its bandwidths are computed first.
"""

import gc
import json
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Literal

from reconciler.fleet.devices.board import Board, BoardLayout, Gpu
from reconciler.fleet.devices.choice import choose
from reconciler.fleet.devices.device_lease import lease_name
from reconciler.fleet.devices.fragmentation import MixRequest, RequestMix
from reconciler.fleet.devices.ledger import DeviceLedger
from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Lease, LeaseSpec, Metadata, OwnerReference
from reconciler.model.policy.gpu import ClaimedDevices

QUERIES, NEW_LAYOUTS = 60, 4  # for each kind of board and each size
BATCH, BATCHES = 200, 50
GPUS = 8
POLICIES: tuple[Literal["any", "contiguous", "requireContiguous"], ...] = ("any", "contiguous", "requireContiguous")
Draw = random.Random
Query = tuple[int, ClaimedDevices]  # taken GPUs, and a claim

# Island and bandwidth by position.
BOARDS: dict[str, Callable[[Draw, int], tuple[int, int | None]]] = {
    "one switch": lambda _draw, _at: (0, 900),
    "one island, no two GPUs alike": lambda _, at: (0, 100 + at),
    "islands of four": lambda _, at: (at // 4, 300),
    "pairs": lambda _, at: (at // 2, 200),
    "pairs as fast as PCIe": lambda _, at: (at // 2, 64),
    "pairs, no two alike": lambda _, at: (at // 2, 100 + at),
    "PCIe alone": lambda _, at: (at, 64),
    "unknown": lambda _draw, _at: (0, None),
    "drawn": lambda draw, _at: (draw.randrange(6), draw.choice((None, 16, 64, 300, 600))),
}


def main(seed: int, nodes: int) -> dict[str, float | int | str]:
    """Figures in microseconds for one choice, milliseconds for the ledger."""
    gc.disable()
    draw = Draw(seed)
    mix = drawn_mix(draw)
    slowest: dict[str, tuple[float, str]] = {}
    all_known: list[float] = []
    for kind in BOARDS:
        for size in (8, 16):
            board = drawn_board(draw, kind, size)
            choose(board, 0, ClaimedDevices(count=size // 2), mix)  # the bandwidths of the layout are computed
            queries = drawn_queries(draw, board)
            known = [choice_us(board, each, mix) for each in queries]
            new = [choice_us(drawn_board(draw, kind, size), each, mix) for each in queries[:NEW_LAYOUTS]]
            all_known += known
            for name, times in (("known_layout", known), ("new_layout", new)):
                slowest[name] = max(slowest.get(name, (0.0, "")), (max(times), f"{kind}, {size} GPUs"))
    return {
        "choices": len(all_known),
        "median_us": round(statistics.median(all_known)),
        **{f"slowest_{name}_us": round(micros) for name, (micros, _) in slowest.items()},
        **{f"slowest_{name}_board": board for name, (_, board) in slowest.items()},
        **ledger_figures(draw, nodes),
    }


def choice_us(board: Board, query: Query, mix: RequestMix) -> float:
    taken, claimed = query
    return timed(lambda: choose(board, taken, claimed, mix))


def drawn_board(draw: Draw, kind: str, size: int) -> Board:
    gpus = []
    for position in range(size):
        island, bandwidth = BOARDS[kind](draw, position)
        model = draw.choice(("h100", "h200")) if kind == "drawn" else "h100"
        gpus.append(Gpu(position, island, bandwidth, model, 80))
    layout = BoardLayout(tuple(gpus))
    return Board(layout, tuple(f"GPU-{each}" for each in range(size)), layout.everything)


def drawn_queries(draw: Draw, board: Board) -> list[Query]:
    """Taken GPUs and a claim: almost half of a whole board first, which has the most sets, then any."""
    size = board.layout.size
    queries = [(0, ClaimedDevices(count=size // 2 - 1, policy=policy)) for policy in POLICIES[:2]]
    for _ in range(QUERIES):
        taken = sum(1 << each for each in range(size) if draw.random() < 0.2)
        policy = draw.choice(POLICIES)
        queries.append((taken, ClaimedDevices(count=draw.randint(1, size // 2), policy=policy)))
    return list({(taken, each.count, each.policy): (taken, each) for taken, each in queries}.values())


def drawn_mix(draw: Draw) -> RequestMix:
    requests = [
        MixRequest(
            draw.choice((1, 2, 4, 8)), model=draw.choice(("", "h100", "h200")), is_one_island=draw.random() < 0.5
        )
        for _ in range(12)
    ]
    return RequestMix({each: draw.randint(1, 50) for each in requests})


def ledger_figures(draw: Draw, nodes: int) -> dict[str, float | int]:
    """Leases of all GPUs; then batches of changed Leases, with the free GPUs of the touched nodes."""
    board = drawn_board(draw, "one switch", GPUS)
    leases = [lease(f"node-{node}", gpu, f"pod-{node}") for node in range(nodes) for gpu in range(GPUS)]
    ledger = DeviceLedger()
    built = timed(lambda: ledger.advance((), leases, (), ()))
    ledger.take_touched()

    def batch() -> None:
        changed = draw.sample(leases, BATCH)
        ledger.advance(changed[: BATCH // 2], changed[BATCH // 2 :], (), ())
        for node in ledger.take_touched():
            ledger.free(node, board)

    return {
        "leases": len(leases),
        "ledger_built_ms": round(built / 1_000, 1),
        "ledger_batch_ms": round(statistics.median(timed(batch) for _ in range(BATCHES)) / 1_000, 2),
        "ledger_batch": BATCH,
    }


def lease(node: str, gpu: int, holder: str) -> Lease:
    annotations = Annotations(device=str(gpu), device_uuid=f"GPU-{gpu}")
    owner = OwnerReference("Node", node, f"uid-{node}")
    name = lease_name(node, gpu)
    metadata = Metadata(name, names.LEASES_NAMESPACE, annotations=annotations, owner_references=(owner,))
    return Lease(metadata, LeaseSpec(holder))


def timed(call: Callable[[], object]) -> float:
    """Microseconds of this thread's processor."""
    started = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - started) / 1_000


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
