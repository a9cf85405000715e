"""Whether a recurring time holds now: it begins whenever its schedule strikes, for its duration, in its time zone.

Windows of DrainPolicies and NodeProvisioners, and schedules of sizes, are such times. What can't be read never begins.
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


# --- NodeProvisioners as their schedules make them at one moment.
#
# A schedule holds from each strike for its duration. The sizes of the provisioner itself hold always; a schedule that
# holds raises `minSize` and `warmNodes`, never above `maxSize`, and of several the largest counts. So planners look at
# one provisioner with fixed sizes, and reasons lead back to the line of the schedule that decides.

_FIELDS = (("min_size", "minSize"), ("warm_nodes", "warmNodes"))


def provisioners_now(inputs: Inputs) -> tuple[Declared[NodeProvisioner], ...]:
    """All provisioners, in the order of the policies, with the sizes that hold now."""
    return tuple(at(each, inputs.now) for each in inputs.desired.provisioners)


def at(declared: Declared[NodeProvisioner], now: Instant) -> Declared[NodeProvisioner]:
    """One provisioner, with the sizes that hold at a moment."""
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
    """The numbers of the schedules that hold."""
    return [number for number, each in enumerate(spec.schedules) if is_open(each, now)]


def next_change(inputs: Inputs) -> Instant | None:
    """When a schedule of any provisioner begins or ends next."""
    return min(_changes(inputs), default=None)


def _changes(inputs: Inputs) -> Iterator[Instant]:
    for each in inputs.desired.provisioners:
        for schedule in each.spec.schedules if not each.spec.suspend else ():
            moment = changes_at(schedule, inputs.now)
            if moment is not None and moment > inputs.now:
                yield moment
