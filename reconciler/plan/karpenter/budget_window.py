"""Whether the window of a NodePool's budget is open: it opens when its schedule strikes, for its duration, in UTC."""

from datetime import timedelta

from cronsim import CronSim, CronSimError

from reconciler.model.budget_schedule import UnreadableSchedule, can_be_read, in_our_words
from reconciler.model.instant import Instant, utc
from reconciler.plan.karpenter.durations import nanoseconds


class UnreadableWindow(Exception):
    """A schedule or a duration that Karpenter can't read; it then disrupts nothing at all."""


def is_open(schedule: str | None, duration: str | None, now: Instant) -> bool:
    """Whether the schedule struck within the duration up to now; a budget with neither is always in force."""
    if schedule is None and duration is None:
        return True
    try:
        length = timedelta(microseconds=nanoseconds(duration or "0") // 1000)
    except ValueError as error:
        raise UnreadableWindow(str(error)) from None
    moment = utc(now)
    try:
        words = in_our_words(schedule or "")
    except UnreadableSchedule as error:
        raise UnreadableWindow(str(error)) from None
    try:
        return next(CronSim(words, moment - length)) <= moment
    except (OverflowError, ValueError):  # before the first year, or beyond the last one that a calendar has
        return False
    except (CronSimError, StopIteration):
        if can_be_read(words):
            # It never strikes, as on a 31st of February. Karpenter takes "never" for the year 1, and so for struck.
            return True
        raise UnreadableWindow(f'schedule "{schedule}"') from None
