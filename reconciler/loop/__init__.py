"""One cycle: load, observe, plan, check, remember, apply, publish. What sees the world and acts on it is plugged in."""

from reconciler.loop.attempts import Attempts
from reconciler.loop.cycle import Cycle, Parts
from reconciler.loop.deciding import InProcess, decide

__all__ = ["Attempts", "Cycle", "InProcess", "Parts", "decide"]
