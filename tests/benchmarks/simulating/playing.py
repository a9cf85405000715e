"""One play as `reconciler simulate` plays it: how long it takes, how much memory it holds, and what came of it.

Run by test_simulating.py in a process of its own: nodes, pods a day, days, and "judged" or "unjudged": whether rules of
safety are checked on each write.
"""

import gc
import json
import sys
import time
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from reconciler import report
from reconciler.report.simulation.simulated_document import simulated_document
from reconciler.simulate.runner.run import RunOptions, run
from tests.benchmarks.simulating.story import Size, play_of

_PARTS = 4


def measured(size: Size, is_judged: bool = True) -> dict[str, Any]:
    """The whole play, with what it holds at the end of each quarter."""
    with TemporaryDirectory() as folder:
        play = play_of(size, Path(folder))
    held: list[int] = []

    def tell(part: float) -> None:
        if part >= (len(held) + 1) / _PARTS:
            gc.collect()
            held.append(_resident_mib())

    began, busy = time.perf_counter(), time.process_time()
    told = run(play, RunOptions(tell=tell, is_judged=is_judged))
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    page = report.write(simulated_document((told,), "bench"), "json", color=False)
    sums = told.sums
    return {
        "seconds": round(seconds, 1),
        "processor_seconds": round(busy, 1),
        "resident_mib_by_quarter": held,
        "cycles": sums.cycles,
        "actions": sums.actions,
        "finished_pods": sums.finished_pods,
        "evictions": sums.evictions,
        "nodes_bought": sums.nodes_bought,
        "nodes_removed": sums.nodes_removed,
        "pending_at_the_end": sums.pending_pods,
        "nodes_at_the_end": sums.nodes,
        "utilization_percent": sums.utilization_percent,
        "troubles": len(told.troubles),
        "broken": len(told.broken),
        "digest": sha256(page.encode()).hexdigest(),
    }


def _resident_mib() -> int:
    """Now, not at its most."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 >> 20


if __name__ == "__main__":
    asked = Size(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
    print(json.dumps(measured(asked, sys.argv[4] == "judged")))
