"""Finds which nodes of a fleet can go together, in a process of its own, and prints what that took.

python -m tests.benchmarks.draining.measuring (equal|distinct|diverse|spread) NODES
"""

import gc
import json
import resource
import sys
import time
from typing import NamedTuple

import msgspec
import numpy as np

from reconciler.fleet.first_fit import Search
from reconciler.fleet.fleet import Fleet
from reconciler.fleet.questions import ScaleDownOutcome, empty
from reconciler.model.cluster.observed import Observed
from tests.benchmarks.draining.drained_fleets import FLEETS

ROUNDS, FEWER_ROUNDS = 7, 3
LONG_SECONDS = 2  # what takes longer is done again less often


def main(kind: str, nodes: int) -> dict[str, float]:
    observed = FLEETS[kind](nodes)
    gc.collect()
    gc.freeze()
    first, fleet, done = timed(observed)
    rounds = ROUNDS if first.passed < LONG_SECONDS else FEWER_ROUNDS
    later = [changed(observed, fleet, number) for number in range(rounds)]
    classes, most = len(fleet.snapshot.classes.all), most_by_sums(fleet)
    del fleet
    firsts = [first, *(timed(observed)[0] for _ in range(rounds))]
    return {
        "nodes": nodes,
        "pods": len(observed.pods),
        "classes": classes,
        "can_go": len(done.together),
        "no_more_can_go_than": most,
        "steps": done.steps,
        "seconds": round(min(each.passed for each in firsts), 3),
        "cpu_seconds": round(min(each.worked for each in firsts), 3),
        "after_a_change_seconds": round(min(each.passed for each in later), 3),
        "after_a_change_cpu_seconds": round(min(each.worked for each in later), 3),
        "resident_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


class Took(NamedTuple):
    """Seconds."""

    passed: float
    worked: float  # what the processor gave to this process: others at work on the machine hardly change that


class Clock:
    """Runs from when it is made."""

    def __init__(self) -> None:
        self._passed, self._worked = time.perf_counter(), time.process_time()

    def read(self) -> Took:
        return Took(time.perf_counter() - self._passed, time.process_time() - self._worked)


def timed(observed: Observed) -> tuple[Took, Fleet, ScaleDownOutcome]:
    gc.collect()  # of the fleet before, which is no part of what this one costs
    clock = Clock()
    fleet = Fleet(observed)
    done = emptied(fleet)
    return clock.read(), fleet, done


def changed(observed: Observed, fleet: Fleet, number: int) -> Took:
    """With all that follows from it."""
    fleet.advance(observed)
    seen = with_changes(observed, number)
    clock = Clock()
    fleet.advance(seen)
    emptied(fleet)
    return clock.read()


def with_changes(observed: Observed, number: int) -> Observed:
    """One pod is another object, one is gone and one is new."""
    pods = list(observed.pods)
    pods[number] = msgspec.structs.replace(
        pods[number], status=msgspec.structs.replace(pods[number].status, reason="x")
    )
    metadata = msgspec.structs.replace(pods[-1].metadata, name="new", uid="new")
    pods.append(msgspec.structs.replace(pods[-1], metadata=metadata))
    del pods[len(pods) // 2 + number]
    return msgspec.structs.replace(observed, pods=tuple(pods))


def most_by_sums(fleet: Fleet) -> int:
    """How many nodes are left over if all pods that move fill the others to the brim."""
    what_if = fleet.snapshot
    rows = what_if.rows.order
    taken = np.zeros((2, len(what_if.classes.columns)), np.int64)  # what moves, and what goes with its node
    for row in rows.tolist():
        for each, count in what_if.booked_on(row).items():
            for column, amount in each.held:
                taken[int(each.goes_with_its_node), column] += amount * count
    moving, staying = taken
    room = what_if.stock.allocatable[rows].max(axis=0) - staying // len(rows)
    return len(rows) - int(max(-(-moving[room > 0] // room[room > 0])))


def emptied(fleet: Fleet) -> ScaleDownOutcome:
    what_if = fleet.snapshot
    with what_if.fork():
        return empty(what_if, what_if.rows.order.tolist(), Search(backwards=True))


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
