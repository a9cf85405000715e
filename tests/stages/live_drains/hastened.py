"""`reconciler run` by a clock that goes faster than the cluster's, so that a minute of patience takes some seconds.

Called with how many times as fast it goes, since when (unix seconds), and the arguments of `run`. All else is as it is
shipped; how long an answer is waited for, and a write is patient, shrinks with the clock.
"""

import sys
import time
from functools import partial

from reconciler.cli.main import main
from reconciler.controller import loop_thread, run
from reconciler.kube.apply.execute import Executor
from reconciler.kube.apply.fenced_writer import WriteLimits
from reconciler.kube.client import Client
from reconciler.kube.client import connect as connected
from reconciler.kube.connections import Timeouts
from reconciler.model.instant import Instant

_LOOK_SECONDS = 0.2  # waits are of the cluster's seconds: it looks often enough to notice that one is over


def hasten(factor: int, since: float) -> None:
    """From then on this process lives by that clock."""
    answers = Timeouts(answer_seconds=Timeouts().answer_seconds / factor)
    limits = WriteLimits(patience_seconds=WriteLimits().patience_seconds / factor)

    def connect(context: str | None = None, timeouts: Timeouts | None = None) -> Client:
        return connected(context, timeouts or answers)

    def now() -> Instant:
        return Instant(round(1_000 * (since + factor * (time.time() - since))))

    loop_thread.current_instant = now  # type: ignore[attr-defined]
    loop_thread.LOOK_SECONDS = _LOOK_SECONDS
    run.connect = connect  # type: ignore[attr-defined]
    run.Executor = partial(Executor, limits=limits)  # type: ignore[assignment, attr-defined]


if __name__ == "__main__":
    hasten(int(sys.argv[1]), float(sys.argv[2]))
    sys.exit(main(sys.argv[3:]))
