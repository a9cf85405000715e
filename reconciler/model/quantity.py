"""Quantities, durations, percents and money: exact integers behind the way people write them.

Nothing here is ever a float: at a threshold a rounding would decide over a node.
"""

import re
from decimal import Decimal
from typing import Self

import msgspec

_DECIMAL = {"": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}

# None can express anything finer than what is kept, so that nothing is rounded and no reader need refuse it.
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
_LONGEST_MILLISECONDS = 10 * 366 * 24 * 3_600_000


class OutOfRange(ValueError):
    """Written as the measure is, and more than it may be."""


class Quantity(msgspec.Struct, frozen=True, gc=False):
    """An amount as Kubernetes writes it (500m, 40Gi, 8), in thousandths; it remembers whether by powers of 1024."""

    milli: int
    binary: bool = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with a sentence."""
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
    """A length of time, written 90s, 30m or 1h30m."""

    milliseconds: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with a sentence."""
        if not _DURATION.fullmatch(text):
            raise ValueError("expected a duration such as 90s, 30m or 1h30m")
        exact = sum(Decimal(number) * _UNIT_MILLISECONDS[unit] for number, unit in _DURATION_PART.findall(text))
        if exact > _LONGEST_MILLISECONDS:
            raise OutOfRange("is longer than ten years")
        return cls(int(exact))

    def __str__(self) -> str:
        left, text = self.milliseconds, ""
        for unit, milliseconds in _UNIT_MILLISECONDS.items():
            count, left = divmod(left, milliseconds)
            text += f"{count}{unit}" if count else ""
        return text or "0s"


class Percent(msgspec.Struct, frozen=True, gc=False, order=True):
    """A share of a whole, written 85% or 12.5%, in hundredths of a percent."""

    basis_points: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises ValueError with a sentence."""
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
        """Raises ValueError with a sentence."""
        if not _MONEY.fullmatch(text):
            raise ValueError('expected dollars in quotes, such as "14.75"')
        return cls(int(Decimal(text) * 1_000_000))

    def __str__(self) -> str:
        whole, rest = divmod(self.micro_dollars, 1_000_000)
        return f"{whole}.{f'{rest:06d}'.rstrip('0').ljust(2, '0')}"
