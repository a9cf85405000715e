"""Recurring times: a window opens whenever its schedule fires, for its duration, in its time zone.

Windows of DrainPolicies and NodeProvisioners, and schedules of sizes, are recurring times. An unreadable window
never opens.
"""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import msgspec
from cronsim import CronSim, CronSimError

from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later, utc
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.guards import Window
from reconciler.model.policy.scaling import NodeProvisioner


class Closed(msgspec.Struct, frozen=True, gc=False):
    """No window is open."""

    until: Instant | None  # None: no window ever opens


def closed(windows: Sequence[Window], now: Instant) -> Closed | None:
    """None if a window is open, or no windows are declared."""
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
    """Time of the next opening or closing. A window whose schedule fires again while the window is open may stay open
    at that time.
    """
    at = _strike(window, now)
    if at is None or at > now:
        return at
    return later(at, window.duration.milliseconds)


def _strike(window: Window, now: Instant) -> Instant | None:
    """Time of the last opening if the window is open, else of the next one; None if the window never opens or can't be
    read.
    """
    try:
        zone = ZoneInfo(window.time_zone)
        # In UTC, because a day with a change of daylight saving time has 23 or 25 hours.
        begins = utc(now) - timedelta(milliseconds=window.duration.milliseconds)
        struck = next(CronSim(window.schedule, begins.astimezone(zone)))
    except (CronSimError, OverflowError, StopIteration, ZoneInfoNotFoundError, ValueError):
        return None
    return Instant(round(struck.timestamp() * 1_000))


# --- NodeProvisioners with the sizes of their schedules at one moment.
#
# A schedule is active from each start for its duration. An active schedule raises `minSize` and `warmNodes`, never
# above `maxSize`; of several the largest size counts. The provisioner's own sizes always apply. So planners see one
# provisioner with fixed sizes, and a reason refers to the line of the schedule that decides.

_FIELDS = (("min_size", "minSize"), ("warm_nodes", "warmNodes"))


def provisioners_now(inputs: Inputs) -> tuple[Declared[NodeProvisioner], ...]:
    """All provisioners with the sizes that apply now, in the order of the policies."""
    return tuple(at(each, inputs.now) for each in inputs.desired.provisioners)


def at(declared: Declared[NodeProvisioner], now: Instant) -> Declared[NodeProvisioner]:
    """One provisioner with the sizes that apply at a moment."""
    spec, origins = declared.spec, dict(declared.origins)
    holding = holding_at(spec, now)
    if not holding:
        return declared
    sizes: dict[str, int] = {}
    for field, written in _FIELDS:
        size = getattr(spec, field)
        for number in holding:
            wanted = min(getattr(spec.schedules[number], field) or 0, spec.max_size)
            if wanted > size:
                size = wanted
                origins[f"spec.{written}"] = declared.origin(f"spec.schedules[{number}].{written}")
        sizes[field] = size
    return msgspec.structs.replace(
        declared, spec=msgspec.structs.replace(spec, **sizes), origins=tuple(origins.items())
    )


def holding_at(spec: NodeProvisioner, now: Instant) -> list[int]:
    """Indexes of the active schedules."""
    return [number for number, each in enumerate(spec.schedules) if is_open(each, now)]


def next_change(inputs: Inputs) -> Instant | None:
    """Time when a schedule of any provisioner starts or ends next."""
    return min(_changes(inputs), default=None)


def _changes(inputs: Inputs) -> Iterator[Instant]:
    for each in inputs.desired.provisioners:
        for schedule in each.spec.schedules if not each.spec.suspend else ():
            moment = changes_at(schedule, inputs.now)
            if moment is not None and moment > inputs.now:
                yield moment
