"""Bounded parsers for untrusted texts in objects, object names, and schedules of disruption budgets."""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec
from cronsim import CronSim, CronSimError

from reconciler.model.fields import LONGEST_NAME, NAME, NAMESPACE

# --- Bounded parsers for untrusted texts in objects. Each is total: returns a value, or None for an invalid text.
#
# Quantities are parsed in quantity.py, instants and unix seconds in instant.py, durations in plan/karpenter/budgets.py,
# by the same rules: ASCII digits, a length limit, and no exception for any text.

T = TypeVar("T")

_MOST_DIGITS = 18
_LONGEST_JSON = 262_144  # characters: the limit for all annotations of an object together

# 64-bit integers as in Kubernetes: larger ones fit neither numpy nor JSON.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


def natural(text: str) -> int | None:
    """Parses ASCII digits without a sign: "0", "12"."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None


def json_value(text: str, type: type[T]) -> T | None:  # noqa: A002 - as msgspec calls it
    """Parses JSON of the type, from an annotation."""
    if len(text) > _LONGEST_JSON:
        return None
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError):
        return None


# --- Valid names and namespaces of cluster objects. No other text of a file becomes part of a request path.
#
# Every kind that is read or written has a DNS subdomain as name (RFC 1123); a namespace is a DNS label. Only CSIDriver
# names may contain upper case letters.

_NAME, _NAMESPACE = re.compile(NAME.pattern), re.compile(NAMESPACE.pattern)
_IN_UPPER_CASE = frozenset({"CSIDriver"})
_SHOWN = 60  # characters of a text in a message


class BadName(ValueError):
    """No object of the cluster can have this name or namespace; the message says which."""


def is_object_name(text: str, kind: str = "") -> bool:
    """Whether the text is a valid name for an object of the kind."""
    folded = text.lower() if kind in _IN_UPPER_CASE and text.isascii() else text
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(folded) is not None


@lru_cache(maxsize=4096)
def is_namespace(text: str) -> bool:
    """Whether the text is a valid namespace."""
    return len(text) <= LONGEST_NAME and _NAMESPACE.fullmatch(text) is not None


def why_no_object(kind: str, namespace: str, name: str) -> str:
    """Why there can be no such object; empty if there can. Without a namespace, only the name is checked."""
    if not is_object_name(name, kind):
        return (
            f"{shortened(name)} is not a valid name of a {kind}: expected {NAME.words}, "
            f"at most {LONGEST_NAME} characters"
        )
    if namespace and not is_namespace(namespace):
        return f"{shortened(namespace)} is not a valid namespace of a {kind}: expected {NAMESPACE.words}"
    return ""


def shortened(text: str) -> str:
    """The text in quotes, with control characters escaped."""
    sentence = ascii(text)
    return f'"{sentence[1:-1]}"' if len(sentence) <= _SHOWN else f'"{sentence[1:_SHOWN]}..."'


# --- Schedules of NodePool budgets, converted for cronsim.
#
# Karpenter parses schedules with Go's robfig/cron, reconciler with cronsim; the two differ in details. Syntax that only
# cronsim accepts is refused, and syntax that cronsim reads differently is rewritten to the same meaning.

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
# Karpenter accepts neither Sunday as 7 nor the last of a weekday (5L).
_WEEKDAYS = re.compile(r"([0-6A-KM-Za-km-z*,-]|/[0-9]+)+")
_LONGEST = 256  # characters
_FIELDS = (_NUMBERS, _NUMBERS, _NUMBERS, _MONTHS, _WEEKDAYS)


class UnreadableSchedule(ValueError):
    """A schedule that Karpenter cannot parse; Karpenter then disrupts no node."""


def is_readable(schedule: str) -> bool:
    """Whether Karpenter can parse the schedule."""
    try:
        return can_be_read(in_our_words(schedule))
    except UnreadableSchedule:
        return False


def can_be_read(words: str) -> bool:
    """Whether each field is valid by itself. Ignores combinations such as a day that no month has."""
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
    """A star in any term makes the field a star; cronsim checks only the first term. A star with a step does not."""
    return ",".join(sorted((_term(term, whole) for term in field.split(",")), key=lambda term: term != "*"))


def _term(term: str, whole: str) -> str:
    start, _, step = term.partition("/")
    if not step:
        return term
    if start == "*":
        return "*" if step == "1" else f"{whole}/{step}"
    # A single value with a step starts a range up to the maximum; a range of a single value is that value, whatever the
    # step.
    first, dash, last = start.partition("-")
    last = last if dash else whole.partition("-")[2]
    if first == last:
        return first
    return f"{first}-{last}" if step == "1" else f"{first}-{last}/{step}"
