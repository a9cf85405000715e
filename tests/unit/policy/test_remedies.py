"""The corrections that problems suggest are accepted when copied."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.policy.gpu import GpuPool
from reconciler.model.quantity import LONGEST_MILLISECONDS, Duration
from reconciler.policy.read import read_spec
from reconciler.policy.shape import describe
from reconciler.policy.tree import Mark
from reconciler.policy.words import measure_advice
from reconciler.policy.yaml import read
from tests.policies import specimens

EXPIRES_AFTER = next(field.shape for field in describe(GpuPool).fields if field.name == "expireAfter")
UNITS = {"days": 86_400, "d": 86_400, "weeks": 604_800, "hrs": 3_600, "min": 60, "sec": 1}


@pytest.mark.parametrize(("text", "remedy"), [("11d", "264h"), ("12d", "288h"), ("40d", "960h"), ("3660d", "87840h")])
def test_days_are_written_in_hours(text: str, remedy: str) -> None:
    assert measure_advice(EXPIRES_AFTER, text) == f"write {remedy}"  # type: ignore[arg-type]


@given(some.integers(1, 999_999), some.sampled_from(sorted(UNITS)))
def test_each_duration_that_is_allowed_has_a_remedy_and_no_other_has(count: int, unit: str) -> None:
    milliseconds = count * UNITS[unit] * 1_000
    remedy = f"write {Duration(milliseconds)}" if milliseconds <= LONGEST_MILLISECONDS else ""
    assert measure_advice(EXPIRES_AFTER, f"{count}{unit}") == remedy  # type: ignore[arg-type]
    assert not remedy or Duration.parse(remedy.removeprefix("write ")).milliseconds == milliseconds
