"""The schedule of a NodePool's budget, in the words of cronsim.

Karpenter reads schedules by the rules of Go's robfig/cron, we by those of cronsim, and the two differ at the edges:
what only cronsim knows is refused here, and what it reads differently is written so that it means the same.
"""

import re
from datetime import UTC, datetime

from cronsim import CronSim, CronSimError

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_RANGES = ("0-59", "0-23", "1-31", "1-12", "0-6")
_NUMBERS = re.compile(r"[0-9*,/-]+")
_MONTHS = re.compile(r"[0-9A-Za-z*,/-]+")
# Neither Sunday as 7 nor the last of a weekday (5L): Karpenter knows none of them.
_WEEKDAYS = re.compile(r"([0-6A-KM-Za-km-z*,-]|/[0-9]+)+")
_LONGEST = 256  # characters
_FIELDS = (_NUMBERS, _NUMBERS, _NUMBERS, _MONTHS, _WEEKDAYS)


class UnreadableSchedule(ValueError):
    """A schedule that Karpenter can't read; it then disrupts nothing at all."""


def is_readable(schedule: str) -> bool:
    """Whether Karpenter can read it."""
    try:
        return can_be_read(in_our_words(schedule))
    except UnreadableSchedule:
        return False


def can_be_read(words: str) -> bool:
    """Whether each field is right by itself: days are also compared with the months, and that is left out here."""
    minute, hour, day, month, weekday = words.split()
    try:
        for apart in (f"{minute} {hour} {day} * {weekday}", f"{minute} {hour} * {month} {weekday}"):
            CronSim(apart, datetime.fromtimestamp(0, UTC))
    except CronSimError:
        return False
    return True


def in_our_words(schedule: str) -> str:
    fields = _NAMED.get(schedule, schedule[: _LONGEST + 1]).replace("?", "*").split()
    if len(schedule) > _LONGEST or len(fields) != len(_FIELDS) or not all(map(re.Pattern.fullmatch, _FIELDS, fields)):
        raise UnreadableSchedule(f'schedule "{schedule[:_LONGEST]}"')
    return " ".join(_field(field, whole) for field, whole in zip(fields, _RANGES, strict=True))


def _field(field: str, whole: str) -> str:
    """A star in any term makes the field a star, for which cronsim looks at the first; one with a step is none."""
    return ",".join(sorted((_term(term, whole) for term in field.split(",")), key=lambda term: term != "*"))


def _term(term: str, whole: str) -> str:
    start, _, step = term.partition("/")
    if not step:
        return term
    if start == "*":
        return "*" if step == "1" else f"{whole}/{step}"
    # From a single value on, to the end of the range; but a range of a single value, whatever the step, is that value.
    first, dash, last = start.partition("-")
    last = last if dash else whole.partition("-")[2]
    if first == last:
        return first
    return f"{first}-{last}" if step == "1" else f"{first}-{last}/{step}"
