"""How many nodes of a NodePool Karpenter may disrupt at once, by the budgets in its spec."""

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from cronsim import CronSim, CronSimError

from reconciler.model.instant import Instant, utc
from reconciler.model.parsers import UnreadableSchedule, can_be_read, in_our_words

# Default of the API server for an absent field; an empty list means no budget at all.
_DEFAULT_NODES = "10%"
_DEFAULT: tuple[Mapping[str, Any], ...] = ({"nodes": _DEFAULT_NODES},)

_NUMBER = re.compile(r"([0-9]{1,18})(%?)", re.ASCII)
_LONGEST = 20


def allowed_at_once(node_pool_spec: Mapping[str, Any], nodes: int, reason: str, now: Instant) -> int | None:
    """The minimum that budgets in force allow for a reason (Drifted, Empty, Underutilized); None: unlimited.

    Unready and departing nodes count against a budget while they exist; they are not subtracted here.
    """
    least: int | None = None
    for budget in _budgets(node_pool_spec):
        try:
            allowed = _allowed(budget, nodes, now)
        except UnreadableWindow:
            # Whatever the budget's reason: Karpenter then disrupts no node of this NodePool.
            return 0
        if allowed is not None and _is_for(budget, reason):
            least = allowed if least is None else min(least, allowed)
    return least


def _budgets(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    disruption = spec.get("disruption") or {}
    found = disruption.get("budgets")
    return _DEFAULT if found is None else found


def _is_for(budget: Mapping[str, Any], reason: str) -> bool:
    reasons = budget.get("reasons")
    return reasons is None or reason in reasons


def _allowed(budget: Mapping[str, Any], nodes: int, now: Instant) -> int | None:
    if not is_open(budget.get("schedule"), budget.get("duration"), now):
        return None
    written = _NUMBER.fullmatch(str(budget.get("nodes", _DEFAULT_NODES))[:_LONGEST])
    if written is None:
        return 0
    number = int(written[1])
    # Rounded up: 5 % of 10 nodes is one node.
    return -(-number * nodes // 100) if written[2] else number


# --- Whether a budget's window is open: it opens at each time of its schedule, for its duration, in UTC.


class UnreadableWindow(Exception):
    """A schedule or duration that Karpenter cannot parse; Karpenter then disrupts nothing."""


def is_open(schedule: str | None, duration: str | None, now: Instant) -> bool:
    """Whether the schedule fired within the duration before now; a budget with neither is always in force."""
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
    except (OverflowError, ValueError):  # outside of the supported years
        return False
    except (CronSimError, StopIteration):
        if can_be_read(words):
            # It never fires, as on the 31st of February. Karpenter reads "never" as the year 1, and so as fired.
            return True
        raise UnreadableWindow(f'schedule "{schedule}"') from None


# --- Durations in Go's format: expireAfter and terminationGracePeriod of a NodePool.
#
# One duration has many spellings (720h, 30h690h, 2592000s), and Karpenter compares the duration.

NEVER = "Never"

_UNIT_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,  # the other mu: keyboards have both
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"([+-]?)((?:{_PART.pattern})+)")
_LONGEST_NANOSECONDS = 2**63 - 1
_DURATIONS_LONGEST = 256  # characters


def nanoseconds(text: str) -> int:
    """Parses 1h30m, 90s or 1.5h. Raises ValueError with a sentence."""
    if text in ("0", "+0", "-0"):
        return 0
    whole = _WHOLE.fullmatch(text) if len(text) <= _DURATIONS_LONGEST else None
    if whole is None:
        raise ValueError(f'expected a duration such as 720h or 1h30m, got "{text[:_DURATIONS_LONGEST]}"')
    sign, parts = whole[1], whole[2]
    found = sum(_length(*part.groups(default="")) for part in _PART.finditer(parts))
    if found > _LONGEST_NANOSECONDS:
        raise ValueError(f'"{text}" is longer than the 292 years supported by Go')
    return -found if sign == "-" else found


def nanoseconds_unless_never(text: str) -> int | None:
    """Like `nanoseconds`, and None for Never."""
    return None if text == NEVER else nanoseconds(text)


def _length(whole: str, fraction: str, only_fraction: str, unit: str) -> int:
    """Of one number with its unit; fractions of a nanosecond are dropped."""
    digits = fraction or only_fraction
    unit_nanoseconds = _UNIT_NANOSECONDS[unit]
    cut: int = int(digits or "0") * unit_nanoseconds // 10 ** len(digits)
    return int(whole or "0") * unit_nanoseconds + cut
