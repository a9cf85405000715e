"""Durations as Go writes them: what a NodePool's expireAfter and terminationGracePeriod say.

The same length has many words (720h, 30h690h, 2592000s), and Karpenter goes by the length.
"""

import re

NEVER = "Never"

_UNIT_NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,  # the other mu: both stand on keyboards
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART = re.compile(r"(?:([0-9]+)(?:\.([0-9]*))?|\.([0-9]+))(ns|us|µs|μs|ms|s|m|h)")
_WHOLE = re.compile(rf"([+-]?)((?:{_PART.pattern})+)")
_LONGEST_NANOSECONDS = 2**63 - 1
_LONGEST = 256  # characters


def nanoseconds(text: str) -> int:
    """Reads 1h30m, 90s or 1.5h. Raises ValueError with a sentence."""
    if text in ("0", "+0", "-0"):
        return 0
    whole = _WHOLE.fullmatch(text) if len(text) <= _LONGEST else None
    if whole is None:
        raise ValueError(f'expected a duration such as 720h or 1h30m, got "{text[:_LONGEST]}"')
    sign, parts = whole[1], whole[2]
    found = sum(_length(*part.groups(default="")) for part in _PART.finditer(parts))
    if found > _LONGEST_NANOSECONDS:
        raise ValueError(f'"{text}" is longer than the 292 years that Go can count')
    return -found if sign == "-" else found


def nanoseconds_unless_never(text: str) -> int | None:
    """The same, and None for Never."""
    return None if text == NEVER else nanoseconds(text)


def _length(whole: str, fraction: str, only_fraction: str, unit: str) -> int:
    """Of one number and its unit; what is finer than a nanosecond is cut off."""
    digits = fraction or only_fraction
    unit_nanoseconds = _UNIT_NANOSECONDS[unit]
    cut: int = int(digits or "0") * unit_nanoseconds // 10 ** len(digits)
    return int(whole or "0") * unit_nanoseconds + cut
