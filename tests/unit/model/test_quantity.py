"""Quantities, durations, percents and money are exact, and come back as they were written."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.quantity import Duration, Money, Percent, Quantity


@pytest.mark.parametrize(
    ("text", "milli", "canonical"),
    [
        ("8", 8_000, "8"),
        ("500m", 500, "500m"),
        ("1500m", 1_500, "1500m"),
        ("2000m", 2_000, "2"),
        ("0.5", 500, "500m"),
        ("40Gi", 40 * 1024**3 * 1000, "40Gi"),
        ("1024Mi", 1024**3 * 1000, "1Gi"),
        ("1.5Gi", 3 * 1024**3 * 500, "1536Mi"),
        ("2k", 2_000_000, "2000"),
        ("1E", 10**21, "1E"),
        ("9P", 9 * 10**18, "9P"),
        ("0", 0, "0"),
        ("0Ki", 0, "0"),
    ],
)
def test_a_quantity_is_exact(text: str, milli: int, canonical: str) -> None:
    quantity = Quantity.parse(text)
    assert quantity.milli == milli
    assert str(quantity) == canonical
    assert Quantity.parse(str(quantity)).milli == milli


@pytest.mark.parametrize(
    "text", ["", "-1", "+1", "1.", ".5", "1 Gi", "1gi", "40GB", "1e3", "0x1", "1n", "9" * 19, "0.0001"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a quantity|finer|more than"):
        Quantity.parse(text)


@pytest.mark.parametrize(
    ("text", "milliseconds", "canonical"),
    [
        ("90s", 90_000, "1m30s"),
        ("1h30m", 5_400_000, "1h30m"),
        ("1.5h", 5_400_000, "1h30m"),
        ("250ms", 250, "250ms"),
        ("720h", 720 * 3_600_000, "720h"),
        ("0s", 0, "0s"),
    ],
)
def test_a_duration_is_exact(text: str, milliseconds: int, canonical: str) -> None:
    assert Duration.parse(text) == Duration(milliseconds)
    assert str(Duration(milliseconds)) == canonical


@pytest.mark.parametrize("text", ["", "5", "5 s", "-5s", "1d", "5s ", "0.0001s", "100000h", "1h-30m"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a duration|finer|longer"):
        Duration.parse(text)


@pytest.mark.parametrize(("text", "points"), [("85%", 8_500), ("12.5%", 1_250), ("0%", 0), ("100%", 10_000)])
def test_a_percentage_is_exact(text: str, points: int) -> None:
    assert Percent.parse(text) == Percent(points)
    assert str(Percent(points)) == text


@pytest.mark.parametrize("text", ["85", "101%", "-1%", "1.234%", "%", "100.5%"])
def test_what_is_no_percentage_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a percentage"):
        Percent.parse(text)


@pytest.mark.parametrize(
    ("text", "canonical"), [("14.75", "14.75"), ("3", "3.00"), ("0.000001", "0.000001"), ("1.5", "1.50")]
)
def test_money_is_exact(text: str, canonical: str) -> None:
    assert str(Money.parse(text)) == canonical


@pytest.mark.parametrize("text", ["-1", "$3", "1,000", "1.2345678", "1e3", ""])
def test_what_is_no_money_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected dollars"):
        Money.parse(text)


@given(some.integers(0, 10**6), some.sampled_from(["", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti"]))
def test_any_quantity_comes_back(number: int, suffix: str) -> None:
    quantity = Quantity.parse(f"{number}{suffix}")
    assert Quantity.parse(str(quantity)).milli == quantity.milli


@given(some.integers(0, 10**11))
def test_any_duration_comes_back(milliseconds: int) -> None:
    assert Duration.parse(str(Duration(milliseconds))) == Duration(milliseconds)


@given(some.integers(0, 10**14))
def test_any_money_comes_back(micro_dollars: int) -> None:
    assert Money.parse(str(Money(micro_dollars))) == Money(micro_dollars)
