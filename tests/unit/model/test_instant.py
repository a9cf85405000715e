"""Moments are read and written the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.instant import Instant, instant, timestamp


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T02:00:00+02:00", 0),
        ("2026-11-02T10:00:00.123456Z", 1793613600123),
    ],
)
def test_what_kubernetes_and_people_write_is_read(text: str, expected: int) -> None:
    assert instant(text) == expected


@pytest.mark.parametrize("text", ["", "noon", "2026-11-02", "2026-11-02T10:00:00", "2026-13-02T10:00:00Z"])
def test_anything_else_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(ValueError, match="2026-11-02T08:00:00Z"):
        instant(text)


@given(st.integers(0, 4_000_000_000_000))
def test_what_is_written_is_read_as_the_same(moment: int) -> None:
    assert instant(timestamp(Instant(moment))) == moment


def test_a_moment_beyond_all_calendars_is_written_as_the_last_of_them() -> None:
    assert timestamp(Instant(10**18)) == "9999-12-31T23:59:59Z"
    assert timestamp(Instant(-(10**18))) == "0001-01-01T00:00:00Z"
