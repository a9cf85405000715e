"""The process that plans for `run`: what it is given as an argument is the folder of its history."""

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
    """What starts it."""
    return (sys.executable, "-m", __name__, *((str(history),) if history else ()))


def main() -> None:
    """Until the parent ends."""
    history = History(Path(sys.argv[1])) if len(sys.argv) > 1 else None

    def keep(inputs: Inputs, plan: Plan) -> None:
        """Inputs of plans that are to act; whatever is wrong with a volume must not keep us from planning."""
        acts = any(not isinstance(each.act, Hold) and not each.would for each in plan.decisions)
        if history is not None and acts:
            try:
                history.keep(inputs, plan.digest)
            except Exception as fault:  # noqa: BLE001
                sys.stderr.write(f"the history could not be kept: {fault}\n")

    serve(_sharing(), keep)


def _sharing() -> Callable[[Observed], None]:
    """What comes over a pipe has lost what its objects had in common."""
    sharing = Interning()

    def share(put: Observed) -> None:
        for pod in put.pods:
            sharing.pod(pod)
        for workload in put.workloads:
            sharing.workload(workload)

    return share


if __name__ == "__main__":
    main()
