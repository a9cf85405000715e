"""When schedules and windows begin and end, and that a plan is made anew then."""

from typing import Any

import pytest

from reconciler.model.instant import instant
from reconciler.model.policy.guards import Window
from reconciler.model.quantity import Duration
from reconciler.plan.windows import changes_at, is_open
from tests.unit.plan.scaling.stage import NOW, World

OFFICE = Window(schedule="0 8 * * *", time_zone="Europe/Berlin", duration=Duration(10 * 3_600_000))


@pytest.mark.parametrize(
    ("now", "opens", "changes"),
    [
        ("2026-10-24T05:59:59Z", False, "2026-10-24T06:00:00Z"),
        ("2026-10-24T06:00:00Z", True, "2026-10-24T16:00:00Z"),
        ("2026-10-24T16:00:00Z", False, "2026-10-25T07:00:00Z"),  # clocks are set back in the night
        ("2027-03-27T18:00:00Z", False, "2027-03-28T06:00:00Z"),  # and forward
    ],
)
def test_a_window_opens_and_closes_by_the_clocks_of_its_zone(now: str, opens: bool, changes: str) -> None:
    assert is_open(OFFICE, instant(now)) is opens
    assert changes_at(OFFICE, instant(now)) == instant(changes)


@pytest.mark.parametrize(
    ("schedule", "seconds"),
    [
        ({"schedule": "0 9 * * *", "duration": "1h", "minSize": 2}, 3_600),  # begins in an hour
        ({"schedule": "30 7 * * *", "duration": "1h", "warmNodes": 0}, 1_800),  # ends in half an hour
    ],
)
def test_a_plan_is_made_anew_when_a_schedule_begins_and_when_it_ends(schedule: dict[str, Any], seconds: int) -> None:
    case = {"nodes": 1, "busy": "0", "keep": {"schedules": [schedule]}}
    assert World(case).planned().wake_at == NOW + 1_000 * seconds
    assert World({**case, "keep": {"suspend": True, "schedules": [schedule]}}).planned().wake_at is None


def test_what_cannot_be_read_never_opens() -> None:
    for schedule, zone, hours in (("0 25 * * *", "UTC", 1), ("0 8 * * *", "No/Where", 1), ("0 8 * * *", "UTC", 10**9)):
        window = Window(schedule=schedule, time_zone=zone, duration=Duration(hours * 3_600_000))
        assert not is_open(window, NOW)
        assert changes_at(window, NOW) is None
