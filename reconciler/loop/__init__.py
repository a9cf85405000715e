"""One cycle: load, observe, plan, check, remember, apply, publish. What sees the world and acts on it is plugged in."""

from reconciler.loop.cycle import Cycle, InProcess, LoopDependencies, decide
from reconciler.loop.retries import Attempts

__all__ = ["Attempts", "Cycle", "InProcess", "LoopDependencies", "decide"]
