"""Whether a recurring time holds now: it begins whenever its schedule strikes, for its duration, in its time zone.

Windows of DrainPolicies and NodeProvisioners, and schedules of sizes, are such times. What can't be read never begins.
"""

from collections.abc import Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from reconciler.model.instant import Instant, later, utc
from reconciler.model.policy.window import Window


class Closed(msgspec.Struct, frozen=True, gc=False):
    """No window is open."""

    until: Instant | None  # None: none ever opens


def closed(windows: Sequence[Window], now: Instant) -> Closed | None:
    """None where one is open, or none was asked for."""
    if not windows:
        return None
    strikes = [_strike(each, now) for each in windows]
    if any(at is not None and at <= now for at in strikes):
        return None
    return Closed(min((at for at in strikes if at is not None), default=None))


def is_open(window: Window, now: Instant) -> bool:
    """Whether the window is open."""
    at = _strike(window, now)
    return at is not None and at <= now


def changes_at(window: Window, now: Instant) -> Instant | None:
    """When the window opens or closes next. One that strikes again while it is open may stay open then."""
    at = _strike(window, now)
    if at is None or at > now:
        return at
    return later(at, window.duration.milliseconds)


def _strike(window: Window, now: Instant) -> Instant | None:
    """When it opened, if it is open; else when it opens next; None where it never does, or can't be read."""
    try:
        zone = ZoneInfo(window.time_zone)
        # In UTC, since a day on which clocks are set has 23 or 25 hours.
        begins = utc(now) - timedelta(milliseconds=window.duration.milliseconds)
        struck = next(CronSim(window.schedule, begins.astimezone(zone)))
    except (CronSimError, OverflowError, StopIteration, ZoneInfoNotFoundError, ValueError):
        return None
    return Instant(round(struck.timestamp() * 1_000))
