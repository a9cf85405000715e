"""One cycle: load, observe, plan, check, remember, apply, publish. Access to the cluster is injected."""

from reconciler.loop.cycle import Cycle, InProcess, LoopDependencies, decide
from reconciler.loop.retries import Attempts

__all__ = ["Attempts", "Cycle", "InProcess", "LoopDependencies", "decide"]
