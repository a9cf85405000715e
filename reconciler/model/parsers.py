"""Bounded parsers of texts that others write into objects, names that objects may have, and schedules of
disruption budgets.
"""

import re
from datetime import UTC, datetime
from functools import lru_cache
from typing import Annotated, TypeVar

import msgspec
from cronsim import CronSim, CronSimError

from reconciler.model.fields import LONGEST_NAME, NAME, NAMESPACE

# --- Bounded parsers of texts that others write into objects. Each is total: a value, or None for what is no such
# value.
#
# Quantities are read in quantity.py, moments and unix seconds in instant.py, durations in plan/karpenter/budgets.py, by
# the same rules: ASCII digits, a limit of length, and nothing raised for any text.

T = TypeVar("T")

_MOST_DIGITS = 18
_LONGEST_JSON = 262_144  # characters: all annotations of an object together have no more

# Whole numbers as Kubernetes has them: what is larger can be neither counted in numpy nor written as JSON.
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


def natural(text: str) -> int | None:
    """ASCII digits without a sign: "0", "12"."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None


def integer(text: str) -> int | None:
    """The same with a sign: "-3", "+3"."""
    found = natural(text[1:] if text[:1] in {"-", "+"} else text)
    return None if found is None else -found if text.startswith("-") else found


def json_value(text: str, type: type[T]) -> T | None:  # noqa: A002 - as msgspec calls it
    """JSON of the type, as an annotation has it."""
    if len(text) > _LONGEST_JSON:
        return None
    try:
        return msgspec.json.decode(text, type=type)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError, OverflowError):
        return None


# --- Which names and namespaces an object of the cluster may have: whatever else a file says never becomes part of a
# path.
#
# Every kind that is read or written has the name of a DNS subdomain (RFC 1123); a namespace is a DNS label. CSIDriver
# alone may have upper case letters in its name.

_NAME, _NAMESPACE = re.compile(NAME.pattern), re.compile(NAMESPACE.pattern)
_IN_UPPER_CASE = frozenset({"CSIDriver"})
_SHOWN = 60  # characters of a text in a sentence


class BadName(ValueError):
    """No object of the cluster can have this name or be in this namespace; the sentence says which."""


def is_object_name(text: str, kind: str = "") -> bool:
    """Whether an object of the kind may be called so."""
    folded = text.lower() if kind in _IN_UPPER_CASE and text.isascii() else text
    return len(text) <= LONGEST_NAME and _NAME.fullmatch(folded) is not None


@lru_cache(maxsize=4096)
def is_namespace(text: str) -> bool:
    """Whether a namespace may be called so."""
    return len(text) <= LONGEST_NAME and _NAMESPACE.fullmatch(text) is not None


def why_no_object(kind: str, namespace: str, name: str) -> str:
    """Why there can be no such object, as a sentence; nothing where there can. Without a namespace it has none."""
    if not is_object_name(name, kind):
        return f"{shortened(name)} is no name of a {kind}: expected {NAME.words}, at most {LONGEST_NAME} characters"
    if namespace and not is_namespace(namespace):
        return f"{shortened(namespace)} is no namespace of a {kind}: expected {NAMESPACE.words}"
    return ""


def shortened(text: str) -> str:
    """In quotes, with what a terminal would obey written out."""
    sentence = ascii(text)
    return f'"{sentence[1:-1]}"' if len(sentence) <= _SHOWN else f'"{sentence[1:_SHOWN]}..."'


# --- The schedule of a NodePool's budget, in the words of cronsim.
#
# Karpenter reads schedules by the rules of Go's robfig/cron, we by those of cronsim, and the two differ at the edges:
# what only cronsim knows is refused here, and what it reads differently is written so that it means the same.

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
