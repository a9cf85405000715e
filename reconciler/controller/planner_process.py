"""The planner process of `run`. Its argument is the history folder."""

import sys
from collections.abc import Callable
from pathlib import Path

from reconciler.kube.watch.interning import Interning
from reconciler.loop.child import serve
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.sources.history import History


def command(history: Path | None) -> tuple[str, ...]:
    return (sys.executable, "-m", __name__, *((str(history),) if history else ()))


def main() -> None:
    """Runs until the parent ends."""
    history = History(Path(sys.argv[1])) if len(sys.argv) > 1 else None

    def keep(inputs: Inputs, plan: Plan) -> None:
        """Records the inputs of plans with actions. Errors of the volume must not prevent planning."""
        acts = any(not isinstance(each.act, Hold) and not each.would for each in plan.decisions)
        if history is not None and acts:
            try:
                history.keep(inputs, plan.digest)
            except Exception as fault:  # noqa: BLE001
                sys.stderr.write(f"the history could not be written: {fault}\n")

    serve(_sharing(), keep)


def _sharing() -> Callable[[Observed], None]:
    """Restores sharing of equal objects, which is lost over a pipe."""
    sharing = Interning()

    def share(put: Observed) -> None:
        for pod in put.pods:
            sharing.pod(pod)
        for workload in put.workloads:
            sharing.workload(workload)

    return share


if __name__ == "__main__":
    main()
