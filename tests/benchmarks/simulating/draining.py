"""A thousand nodes that fit on five hundred, emptied with so many at a time: when it is done, in simulated time.

Run by test_draining.py in a process of its own: how many nodes may be drained at once, and for how many days to watch.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from reconciler.plan.drain.codes.emptying import Drained, DrainedNodeDeleted
from tests.stages.scaling.drawn import Json, Outcome, played, pool

NODES = 1_000
GRACE_MINUTES = 30
_BEGINS_MS = 600_000  # when the pods go that fill nodes up to then


def main(parallelism: int, days: float) -> dict[str, float | int | str]:
    began = time.process_time()
    with TemporaryDirectory() as folder:
        outcome = drained(Path(folder), parallelism, days)
    gone = [each.at for each in outcome.told if each.did == "delete" and each.reason == DrainedNodeDeleted.__name__]
    sums = outcome.simulated.sums
    return {
        "drained": len(gone),
        "hours": round((max(gone) - outcome.play.start - _BEGINS_MS) / 3_600_000, 1),
        "nodes_at_the_end": sums.nodes,
        "pending_at_the_end": sums.pending_pods,
        "most_at_once": most_at_once(outcome),
        "evicted": sum(outcome.evicted.values()),
        "cycles": sums.cycles,
        "broken": len(outcome.simulated.broken),
        "processor_seconds": round(time.process_time() - began, 1),
    }


def drained(folder: Path, parallelism: int, days: float) -> Outcome:
    """On each node a pod that goes, and one of three GPUs: two of these fit on a node of eight."""
    spec = {
        "poolNames": ["a100"],
        "maxDrainParallelism": parallelism,
        "maxScaleDownParallelism": parallelism,
        "maxGracefulTerminationSeconds": 60 * GRACE_MINUTES,
    }
    policy: Json = {
        "apiVersion": "gpu.scheduling/v1",
        "kind": "DrainPolicy",
        "metadata": {"name": "drains"},
        "spec": spec,
    }
    scenario = {
        "duration": f"{round(days * 1_440)}m",
        "warmUp": "5m",
        "cycleEvery": "5s",
        "cluster": {"nodes": [{"pool": "a100", "count": NODES}]},
        "workloads": [
            {"name": "old", "gpus": 5, "constant": {"pods": NODES}, "ends": f"{_BEGINS_MS // 60_000}m"},
            {
                "name": "web",
                "gpus": 3,
                "constant": {"pods": NODES},
                "grace": f"{GRACE_MINUTES}m",
                "maxUnavailable": NODES // 5,
            },
        ],
    }
    return played(folder, [pool("a100"), policy], scenario)


def most_at_once(outcome: Outcome) -> int:
    """Nodes with our hard taint, or deleted since and no more."""
    count = most = 0
    for each in sorted(outcome.told, key=lambda told: (told.at, told.did != "delete")):
        count += (each.did == "harden" and each.reason == Drained.__name__) - (
            each.reason == DrainedNodeDeleted.__name__
        )
        most = max(most, count)
    return most


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), float(sys.argv[2]))))
