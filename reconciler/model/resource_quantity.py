"""Amounts of resources as Kubernetes' resource.Quantity reads them: an optional sign, digits with an optional point,
and a suffix (n u m k M G T P E, Ki Mi Gi Ti Pi Ei) or an exponent (e3, E-2).

Everybody who may make a pod may write any quantity, so reading one is bounded and total: a text with more characters or
a larger exponent than anybody needs has no amount, and neither has a text that Kubernetes refuses. Such a text counts
as the most where a pod asks for it and as nothing where a node offers it.
"""

import re
from functools import lru_cache

# Far more than any node has of any resource: 4 PiB. The sums of all pods that one node can have still fit into 64 bits.
MOST = 2**52
LONGEST = 128  # characters
LARGEST_EXPONENT = 64
_QUANTITY = re.compile(
    r"([+-]?)([0-9]*)(?:\.([0-9]*))?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|[eE][+-]?[0-9]{1,19})?", re.ASCII
)
_TENS = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_FINEST = 9  # digits after the point: an amount is rounded up, away from zero, to billionths
_LARGEST_OF_TWOS: int = (2**63 - 1) * 10**_FINEST


@lru_cache(maxsize=50_000)
def billionths(text: str) -> int | None:
    """The amount in billionths; None for a text that is no quantity, or that is out of bounds."""
    if not text or len(text) > LONGEST:
        return None
    match = _QUANTITY.fullmatch(text)
    if match is None:
        return None
    sign, whole, fraction, suffix = match[1], match[2], match[3] or "", match[4] or ""
    if not whole and not fraction and not _is_zero(match):
        return None
    digits = int(whole + fraction or "0")
    amount = _of_twos(digits, len(fraction), _TWOS[suffix]) if suffix in _TWOS else _of_tens(digits, fraction, suffix)
    return -amount if amount is not None and sign == "-" else amount


def is_quantity(text: str) -> bool:
    """Whether the text has an amount."""
    return billionths(text) is not None


def requested_amount(text: str) -> int:
    """Billionths that are asked for: a text without an amount asks for the most."""
    amount = billionths(text)
    return MOST * 10**_FINEST if amount is None else amount


def amount_offered(text: str) -> int:
    """Billionths that are there: a text without an amount offers nothing."""
    return billionths(text) or 0


def whole_number(text: str) -> int:
    """How many there are of a resource that comes in whole numbers, such as GPUs, rounded up; 0 for what has no amount,
    or one below zero."""
    amount = billionths(text)
    return 0 if amount is None else max(0, min(MOST, -(-amount // 10**_FINEST)))


def _is_zero(match: "re.Match[str]") -> bool:
    """Whether Kubernetes reads a text without a digit as zero: a sign, a point or a suffix alone is zero, but for
    suffixes and exponents for which Kubernetes leaves its fast path."""
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
