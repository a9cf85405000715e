"""Parsers of what others write are total and bounded: a value or None, for any text."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.kube.normalize import shallow
from reconciler.model.cluster.refusal import TOO_DEEP
from reconciler.model.instant import EARLIEST, LATEST, Instant, bounded, later, moment, timestamp, unix_seconds
from reconciler.model.parsers import json_value, natural
from reconciler.plan.nodes.eviction import FOREVER, stays_until_of


class Read(msgspec.Struct):
    """Of JSON in an annotation."""

    key: str = ""
    count: int = 0


TEXTS = st.one_of(st.text(max_size=80), st.text("0123456789²٣+-:TZ. ", max_size=80))


@given(TEXTS)
def test_nothing_is_raised_for_any_text(text: str) -> None:
    for parse in (natural, unix_seconds, moment):
        assert parse(text) is None or isinstance(parse(text), int)
    found = json_value(text, Read)
    assert found is None or isinstance(found, Read)
    assert isinstance(stays_until_of(text, text), int)


@pytest.mark.parametrize("text", ["²", "٣", "", "1_000", " 1", "9" * 5000, "1.0", "0x1"])
def test_digits_are_ascii_and_few(text: str) -> None:
    assert (natural(text), unix_seconds(text)) == (None, None)


def test_a_natural_number_has_no_sign() -> None:
    assert (natural("12"), natural("-12")) == (12, None)


@pytest.mark.parametrize("text", ["[" * 5000, '{"key": 1}', '{"count": 1' + "0" * 400 + "e", "x" * 300_000, "null"])
def test_json_of_another_shape_is_none(text: str) -> None:
    assert json_value(text, Read) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0001-01-01T00:00:00Z", EARLIEST),
        ("0001-01-01T00:00:00+14:00", EARLIEST),
        ("9999-12-31T23:59:59Z", LATEST),
        ("9999-12-31T23:59:59.999Z", LATEST),
        ("9999-12-31T23:59:59-14:00", LATEST),
    ],
)
def test_times_beyond_the_calendar_are_its_ends(text: str, expected: int) -> None:
    found = moment(text)
    assert found == expected
    assert timestamp(found) in {"0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"}


@given(st.integers(), st.integers())
def test_the_sum_of_a_moment_and_a_length_stays_within_the_calendar(start: int, length: int) -> None:
    assert EARLIEST <= later(bounded(start), length) <= LATEST
    assert timestamp(Instant(start))


def test_a_pod_that_is_kept_for_a_time_since_nobody_knows_when_is_kept() -> None:
    assert stays_until_of("1h", "yesterday") == FOREVER


@given(
    st.recursive(
        st.one_of(st.none(), st.text(), st.integers()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_that_is_not_nested_deeply_stays_as_it_is(value: object) -> None:
    raw = json.dumps(value).encode()
    assert shallow(raw) == raw


@pytest.mark.parametrize("levels", [1_000, 200_000])
def test_what_is_nested_too_deeply_is_cut_and_the_rest_stays(levels: int) -> None:
    raw = b'{"a": {"deep": ' + b'{"b":[' * levels + b"]}" * levels + b'}, "c": "]}[{"}'
    found = msgspec.json.decode(shallow(raw))
    assert found["c"] == "]}[{"
    assert TOO_DEEP in repr(found["a"])
