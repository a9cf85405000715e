"""Quantities, durations, percentages and money: exact integers with their text formats.

No floats are used: at a threshold, a rounding error would decide about a node.
"""

import re
from decimal import Decimal
from functools import lru_cache
from typing import Self

import msgspec

_DECIMAL = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

# Each unit's precision exceeds what the text format can express, so no value is rounded or refused.
QUANTITY_PATTERN = r"^([0-9]{1,18}m|[0-9]{1,18}(\.[0-9]{1,3})?(k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?)$"
DURATION_PATTERN = r"^([0-9]{1,9}(\.[0-9]{1,3})?[smh]|[0-9]{1,9}ms)+$"
PERCENT_PATTERN = r"^(100|[0-9]{1,2}(\.[0-9]{1,2})?)%$"
MONEY_PATTERN = r"^[0-9]{1,9}(\.[0-9]{1,6})?$"

_QUANTITY = re.compile(QUANTITY_PATTERN)
_DURATION = re.compile(DURATION_PATTERN)
_DURATION_PART = re.compile(r"([0-9.]+)(ms|s|m|h)")
_PERCENT = re.compile(PERCENT_PATTERN)
_MONEY = re.compile(MONEY_PATTERN)
_UNIT_MILLISECONDS = {"h": 3_600_000, "m": 60_000, "s": 1_000, "ms": 1}
_LARGEST_MILLI = (2**63 - 1) * 1000
LONGEST_MILLISECONDS = 10 * 366 * 24 * 3_600_000


class OutOfRange(ValueError):
    """A well-formed value that is too large."""


class Quantity(msgspec.Struct, frozen=True, gc=False):
    """A Kubernetes quantity (500m, 40Gi, 8) in thousandths; remembers whether its suffix was binary."""

    milli: int
    binary: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with a message."""
        if not _QUANTITY.fullmatch(text):
            raise ValueError("expected a quantity such as 8, 500m or 40Gi")
        suffix = text.lstrip("0123456789.")
        number = Decimal(text.removesuffix(suffix))
        if suffix in _BINARY:
            milli = number * 1000 * 2 ** _BINARY[suffix]
        else:
            milli = number * (1 if suffix == "m" else Decimal(1000) * 10 ** _DECIMAL[suffix])
        if milli > _LARGEST_MILLI:
            raise OutOfRange("is more than Kubernetes can hold")
        return cls(int(milli), suffix in _BINARY)

    def __str__(self) -> str:
        if self.milli % 1000:
            return f"{self.milli}m"
        whole = self.milli // 1000
        if self.binary and whole:
            for suffix, bits in reversed(_BINARY.items()):
                if whole % (1 << bits) == 0:
                    return f"{whole >> bits}{suffix}"
        for suffix, zeros in reversed(_DECIMAL.items()):
            if whole >= 10**15 and whole % 10**zeros == 0:
                return f"{whole // 10**zeros}{suffix}"
        return str(whole)


class Duration(msgspec.Struct, frozen=True, gc=False, order=True):
    """A duration, written 90s, 30m or 1h30m."""

    milliseconds: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with a message."""
        if not _DURATION.fullmatch(text):
            raise ValueError("expected a duration such as 90s, 30m or 1h30m")
        exact = sum(Decimal(number) * _UNIT_MILLISECONDS[unit] for number, unit in _DURATION_PART.findall(text))
        if exact > LONGEST_MILLISECONDS:
            raise OutOfRange("is longer than ten years")
        return cls(int(exact))

    def __str__(self) -> str:
        left, text = self.milliseconds, ""
        for unit, milliseconds in _UNIT_MILLISECONDS.items():
            count, left = divmod(left, milliseconds)
            text += f"{count}{unit}" if count else ""
        return text or "0s"


class Percent(msgspec.Struct, frozen=True, gc=False, order=True):
    """A percentage, written 85% or 12.5%, in hundredths of a percent."""

    basis_points: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with a message."""
        if not _PERCENT.fullmatch(text):
            raise ValueError("expected a percentage from 0% to 100%, such as 85%")
        return cls(int(Decimal(text[:-1]) * 100))

    def __str__(self) -> str:
        whole, rest = divmod(self.basis_points, 100)
        return f"{whole}.{rest:02d}".rstrip("0") + "%" if rest else f"{whole}%"


class Money(msgspec.Struct, frozen=True, gc=False, order=True):
    """Dollars, written "14.75", in millionths."""

    micro_dollars: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with a message."""
        if not _MONEY.fullmatch(text):
            raise ValueError('expected dollars in quotes, such as "14.75"')
        return cls(int(Decimal(text) * 1_000_000))

    def __str__(self) -> str:
        whole, rest = divmod(self.micro_dollars, 1_000_000)
        return f"{whole}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}"


# --- Resource amounts as parsed by Kubernetes' resource.Quantity: an optional sign, digits with an optional point, and
# a suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or an exponent (e3, E-2).
#
# Anyone who can create a pod can write any quantity, so parsing is bounded and total: an overlong text or an extreme
# exponent is invalid, like any text that Kubernetes refuses. An invalid request counts as the maximum, an invalid
# capacity as nothing.

# Far more than any node has of any resource: 4 PiB. Sums over all pods of a node still fit into 64 bits.
MOST = 2**52
LONGEST = 128  # characters
LARGEST_EXPONENT = 64
_RESOURCE_QUANTITY = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,19})?", re.ASCII
)
_TENS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FINEST = 9  # decimal places: amounts are rounded up, away from zero, to billionths
_LARGEST_OF_TWOS: int = (2**63 - 1) * 10**_FINEST


@lru_cache(maxsize=50_000)
def billionths(text: str) -> int | None:
    """The amount in billionths; None for a text that is not a quantity or is out of bounds."""
    if not text or len(text) > LONGEST:
        return None
    match = _RESOURCE_QUANTITY.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4] or ""
    if not whole and not fraction and not _is_zero(match):
        return None
    digits = int(whole + fraction or "0")
    amount = _of_twos(digits, len(fraction), _TWOS[suffix]) if suffix in _TWOS else _of_tens(digits, fraction, suffix)
    return -amount if amount is not None and sign == "-" else amount


def is_quantity(text: str) -> bool:
    """Whether the text is a valid quantity."""
    return billionths(text) is not None


def requested_amount(text: str) -> int:
    """Requested billionths; an invalid text requests the maximum."""
    amount = billionths(text)
    return MOST * 10**_FINEST if amount is None else amount


def amount_offered(text: str) -> int:
    """Offered billionths; an invalid text offers nothing."""
    return billionths(text) or 0


def whole_number(text: str) -> int:
    """The number of an integer resource such as GPUs, rounded up; 0 for an invalid or negative amount."""
    amount = billionths(text)
    return 0 if amount is None else max(0, min(MOST, -(-amount // 10**_FINEST)))


def _is_zero(match: "re.Match[str]") -> bool:
    """Whether Kubernetes reads a text without digits as zero.

    A sign, a point or a suffix alone is zero, except for suffixes and exponents for which Kubernetes leaves its fast
    path.
    """
    suffix = match[4] or ""
    if suffix in _TWOS:
        return _fits_fast(suffix)
    exponent = _TENS.get(suffix)
    if exponent is None:
        exponent = int(suffix[1:])
    return exponent >= -_FINEST


def _fits_fast(suffix: str) -> bool:
    return 15 - 1 - _TWOS[suffix] * 3 // 10 - 1 >= 0


def _of_twos(digits: int, places: int, power: int) -> int:
    amount: int = -(-((digits << power) * 10**_FINEST) // 10**places)
    return min(amount, _LARGEST_OF_TWOS)


def _of_tens(digits: int, fraction: str, suffix: str) -> int | None:
    exponent = _TENS.get(suffix)
    if exponent is None:
        exponent = int(suffix[1:])
        if abs(exponent) > LARGEST_EXPONENT:
            return None
    shift = exponent + _FINEST - len(fraction)
    power: int = 10 ** max(0, shift)
    divisor: int = 10 ** max(0, -shift)
    return -(-digits * power // divisor)
