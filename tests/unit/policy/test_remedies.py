"""The corrections that problems suggest are accepted when copied."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.fields import Shaped
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.guards import ChangeApproval
from reconciler.model.policy.scaling import PressurePolicy
from reconciler.model.problem import Problem
from reconciler.model.quantity import LONGEST_MILLISECONDS, Duration, Quantity
from reconciler.policy.read import read_spec
from reconciler.policy.rules.kinds import KINDS
from reconciler.policy.shape import ListOf, MapOf, Object, Shape, Words, describe
from reconciler.policy.tree import Mapping, Scalar
from reconciler.policy.words import measure_advice
from reconciler.policy.yaml import read

EXPIRES_AFTER = next(field.shape for field in describe(GpuPool).fields if field.name == "expireAfter")
MEM_SLOT = next(field.shape for field in describe(PressurePolicy).fields if field.name == "memSlotSize")
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


@pytest.mark.parametrize("text", ["40GB", "40 GB", "1152 Mb", " 8 TB"])
def test_the_quantities_that_a_remedy_proposes_are_accepted(text: str) -> None:
    advice = measure_advice(MEM_SLOT, text)  # type: ignore[arg-type]
    proposed = advice.removeprefix("write ").removesuffix(" for powers of 1024").split(", or ")
    assert len(proposed) == 2
    for each in proposed:
        Quantity.parse(each)


@pytest.mark.parametrize("expires", ["tomorrow", "the day after tomorrow at nine in the morning", '""'])
def test_a_value_of_the_wrong_form_has_one_problem_whatever_its_length(expires: str) -> None:
    assert [each.code for each in read_problems(expires)] == ["RC106"]


def read_problems(expires: str) -> list[Problem]:
    (node,), problems = read("a.yaml", f"{{guardName: fleet, revision: abc, expires: {expires}}}".encode())
    return [*problems, *read_spec(describe(ChangeApproval), node, node.at)[1]]


def forms(shape: Shape) -> Iterator[Shaped]:
    """The forms of all texts in a shape."""
    match shape:
        case Object(fields=fields):
            for field in fields:
                yield from forms(field.shape)
        case ListOf(item=inner) | MapOf(value=inner):
            yield from forms(inner)
        case Words(shaped=Shaped() as shaped):
            yield shaped


EXAMPLES = sorted(
    {
        (example.removesuffix(" in quotes"), shaped.pattern)
        for kind in KINDS
        for shaped in forms(kind.shape)
        for example in re.split(", or | or ", shaped.words.partition("such as ")[2] or shaped.words)
        if "such as " in shaped.words or shaped.words.startswith('"')
    }
)


@pytest.mark.parametrize(("example", "pattern"), EXAMPLES)
def test_an_example_of_a_form_is_accepted_when_copied(example: str, pattern: str) -> None:
    (node,), problems = read("a.yaml", f"field: {example}\n".encode())
    assert problems == []
    assert isinstance(node, Mapping)
    value = node.get("field")
    assert isinstance(value, Scalar)
    assert isinstance(value.value, str)
    assert re.fullmatch(pattern, value.value)
