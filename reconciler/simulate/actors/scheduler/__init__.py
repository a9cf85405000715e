"""The scheduler of an imagined cluster."""

from reconciler.simulate.actors.scheduler.scheduler import Scheduler

__all__ = ["Scheduler"]
