"""Packs pods in a process of its own, and prints what that took and how good it is.

python -m tests.benchmarks.packing.measuring (equal|distinct|diverse) PODS
"""

import gc
import json
import resource
import sys
import time
from typing import NamedTuple

from reconciler.fleet.amounts import pod_request
from reconciler.fleet.binpack.pack import pack
from reconciler.fleet.binpack.result import Packed
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests.benchmarks.packing.pending import (
    CPU_MILLI,
    KEPT_MIB,
    KEPT_MILLI,
    MEMORY_MIB,
    MIB,
    PENDING,
    TYPES,
    Pending,
    one_shape,
    price_of,
)
from tests.unit.fleet.binpack.checker import faults

ROUNDS = 5
LONG_SECONDS = 3  # what takes longer is not done again


def main(kind: str, count: int) -> dict[str, float | str]:
    pending = PENDING[kind](count)
    gc.collect()
    gc.freeze()
    first = timed(pending)
    packed = first.packed
    runs = [first, *(timed(pending) for _ in range(ROUNDS if first.seconds < LONG_SECONDS else 0))]
    resident_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    # From here on nothing is measured any more.
    wrong = faults(Observed(), pending.shapes, pending.pods, packed)
    bound = diverse_bound(pending.pods) if kind == "diverse" else one_shape_bound(pending.pods)
    return {
        "pods": len(pending.pods),
        "shapes": len(pending.shapes),
        "nodes": len(packed.nodes),
        "without": len(packed.unplaced) + len(packed.not_evaluated),
        "faults": len(wrong),
        "first_fault": wrong[0] if wrong else "",
        "micro_dollars_per_hour": packed.micro_dollars_per_hour,
        "of_lower_bound": round(packed.micro_dollars_per_hour / bound, 4),
        "steps": packed.steps,
        "seconds": round(min(each.seconds for each in runs), 3),
        "cpu_seconds": round(min(each.cpu_seconds for each in runs), 3),
        "resident_mib": resident_mib,
    }


class Run(NamedTuple):
    """One packing: by the clock, and by what of it the processor was ours."""

    seconds: float
    cpu_seconds: float
    packed: Packed


def timed(pending: Pending) -> Run:
    """From what was observed on."""
    started, cpu_started = time.perf_counter(), time.process_time()
    packed = pack(Snapshot(Observed(pods=pending.pods)), pending.pods, pending.shapes)
    return Run(time.perf_counter() - started, time.process_time() - cpu_started, packed)


def diverse_bound(pods: tuple[Pod, ...]) -> float:
    """What no packing of the diverse pods can cost less than.

    A node of type i costs i times one rate, or a little more by rounding, and gives i cpus and 2 i Gi less what is kept
    on each node. So the sum of all i is at least what the pods ask for and what is kept on all nodes, whichever of cpu
    and memory makes that more. A fifth of the pods keep apart on hosts: there are at least so many nodes.
    """
    nodes = len(pods) // 5
    asked = [pod_request(pod) for pod in pods]
    cpus = sum(each["cpu"] for each in asked) + nodes * KEPT_MILLI
    memory = sum(each["memory"] for each in asked) + nodes * KEPT_MIB * MIB
    rate = min(price_of(number) / number for number in range(1, TYPES + 1))
    return rate * max(cpus / CPU_MILLI, memory / (MEMORY_MIB * MIB))


def one_shape_bound(pods: tuple[Pod, ...]) -> float:
    """What the cpus alone cost if every node is full to the last millicore."""
    shape = one_shape()
    full = int(shape.allocatable["cpu"]) * 1000
    return shape.offerings[0].micro_dollars_per_hour * sum(pod_request(pod)["cpu"] for pod in pods) / full


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
