"""Amounts of resources are read as Kubernetes reads them, and any text is read within bounds."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.fleet.amounts import counted, pod_request
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.quantity import LARGEST_EXPONENT, LONGEST, MOST, billionths, whole_number
from tests import builders

BILLION = 10**9

# Found by asking resource.ParseQuantity of apimachinery v0.36.3.
AS_KUBERNETES = {
    "0": 0,
    "8": 8 * BILLION,
    "8e0": 8 * BILLION,
    "8E0": 8 * BILLION,
    "80e-1": 8 * BILLION,
    "1e+3": 1000 * BILLION,
    "1E": 10**18 * BILLION,
    "1E3": 1000 * BILLION,
    "1Ei": 2**60 * BILLION,
    "9Ei": (2**63 - 1) * BILLION,
    "1.5Gi": 3 * 2**29 * BILLION,
    "0.1n": 1,
    "-0.1n": -1,
    "+5u": 5000,
    "100m": BILLION // 10,
    "5.": 5 * BILLION,
    ".5": BILLION // 2,
    ".": 0,
    "-": 0,
    "m": 0,
    "Ki": 0,
    "e3": 0,
    "Pi": None,
    "e-10": None,
    "": None,
    "K": None,
    "ki": None,
    "1e": None,
    "1e1.5": None,
    "1Ki2": None,
    "--1": None,
    "1..2": None,
    "1 ": None,
    "²": None,
    "٣": None,
    "0x10": None,
    "1_000": None,
    "NaN": None,
    "Infinity": None,
}


@pytest.mark.parametrize(("text", "expected"), AS_KUBERNETES.items())
def test_an_amount_is_what_kubernetes_reads(text: str, expected: int | None) -> None:
    assert billionths(text) == expected


@pytest.mark.parametrize("text", ["9" * 5000, "0" * LONGEST + "1", "1e65", "1e-65", "1e999999999", "1e4294967296"])
def test_what_is_longer_or_has_a_larger_exponent_than_anybody_needs_has_no_amount(text: str) -> None:
    assert billionths(text) is None


SUFFIXES = {"": 0, "n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
TWOS = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def reference(sign: str, whole: str, fraction: str, suffix: str) -> int:
    """By fractions: rounded away from zero to billionths, and amounts by powers of two capped at 64 bits."""
    value = Fraction(int(whole + fraction or "0"), 10 ** len(fraction))
    if suffix in TWOS:
        value = min(value * 2 ** TWOS[suffix], Fraction(2**63 - 1))
    else:
        exponent = SUFFIXES[suffix] if suffix in SUFFIXES else int(suffix[1:])
        value *= Fraction(10) ** exponent
    return ceil(value * BILLION) * (-1 if sign == "-" else 1)


DIGITS = st.text("0123456789", max_size=30)
EXPONENTS = st.integers(-LARGEST_EXPONENT, LARGEST_EXPONENT)
WRITTEN = st.one_of(
    st.sampled_from([*SUFFIXES, *TWOS]),
    st.builds(lambda sign, exponent: f"{sign}{exponent}", st.sampled_from("eE"), EXPONENTS),
)


@given(st.sampled_from(["", "+", "-"]), DIGITS.filter(bool), DIGITS, WRITTEN)
def test_any_quantity_is_read_exactly(sign: str, whole: str, fraction: str, suffix: str) -> None:
    point = "." if fraction else ""
    assert billionths(f"{sign}{whole}{point}{fraction}{suffix}") == reference(sign, whole, fraction, suffix)


@given(st.one_of(st.text(max_size=200), st.text("0123456789eE+-.mkKi²", max_size=200)))
def test_nothing_is_raised_for_any_text(text: str) -> None:
    found = billionths(text)
    assert found is None or abs(found) < 10 ** (LONGEST + LARGEST_EXPONENT + 10)
    assert 0 <= whole_number(text) <= MOST


def pod(**requests: str) -> Pod:
    return builders.pod(
        "p", asks={names.NVIDIA_GPU if name == "gpus" else name: text for name, text in requests.items()}
    )


def test_gpus_are_counted_however_they_are_written() -> None:
    node = builders.node("n", has={names.NVIDIA_GPU: "8e0"})
    assert (pod(gpus="8e0").gpus, node.gpus) == (8, 8)
    assert pod_request(pod(gpus="8e0")) == counted(node.status.allocatable) == {names.NVIDIA_GPU: 8}


def test_what_a_pod_asks_for_unreadably_is_the_most_and_what_a_node_has_unreadably_is_nothing() -> None:
    node = builders.node("n", has={names.NVIDIA_GPU: "9" * 5000})
    assert (pod(gpus="9" * 5000).gpus, node.gpus) == (MOST, 0)
    assert pod_request(pod(cpu="9" * 5000)) == {"cpu": MOST}
