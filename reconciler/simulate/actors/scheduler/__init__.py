"""The scheduler of a simulated cluster."""

from reconciler.simulate.actors.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]
