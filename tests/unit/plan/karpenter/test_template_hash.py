"""The number that Karpenter writes for a template: what it wrote on the lab, and what must never change it."""

import json
import random
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.plan.karpenter.budgets import nanoseconds, nanoseconds_unless_never
from reconciler.plan.karpenter.template_hash import HASHED_PATHS, field_hashes, template_hash
from tests import folders

CASES: dict[str, Any] = yaml.safe_load((folders.CASES / "karpenter" / "template_hash.yaml").read_text())
CLASS = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"}


def complete(template: dict[str, Any]) -> dict[str, Any]:
    return {**template, "spec": {"requirements": [], "nodeClassRef": CLASS, **template["spec"]}}


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    assert template_hash(complete(CASES[name]["template"])) == CASES[name]["hash"]


def test_a_spec_of_nothing_is_left_out_and_one_of_requirements_is_not() -> None:
    nothing, empty = {"expireAfter": "Never"}, {"expireAfter": "Never", "requirements": []}
    assert template_hash({"spec": nothing}) == "17307646073972311821"
    assert template_hash({"spec": empty}) != "17307646073972311821"


WORDS = some.text("abcß-/.", max_size=4)
TAINTS = some.builds(
    lambda key, value, effect: {"key": key, "effect": effect, **({} if value is None else {"value": value})},
    WORDS,
    some.none() | WORDS,
    some.sampled_from(["NoSchedule", "NoExecute"]),
)
LENGTHS = some.integers(0, 10**6)


@some.composite
def templates(draw: some.DrawFn) -> dict[str, Any]:
    """Of everything that can be written; durations are whole seconds, to be put into other words."""
    metadata = {"labels": some.dictionaries(WORDS, WORDS), "annotations": some.dictionaries(WORDS, WORDS)}
    spec = {
        "taints": some.lists(TAINTS, max_size=4),
        "startupTaints": some.lists(TAINTS, max_size=4),
        "nodeClassRef": some.fixed_dictionaries({"group": WORDS, "kind": WORDS, "name": WORDS}),
        "terminationGracePeriod": LENGTHS.map(lambda seconds: f"{seconds}s"),
        "expireAfter": some.just("Never") | LENGTHS.map(lambda seconds: f"{seconds}s"),
    }
    return {
        "metadata": draw(some.fixed_dictionaries({}, optional=metadata)),
        "spec": draw(some.fixed_dictionaries({}, optional=spec)),
    }


def in_other_words(template: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """The same template as another hand would write it."""
    again: dict[str, Any] = json.loads(json.dumps(template))
    for part, written in again.items():
        keys = list(written)
        chance.shuffle(keys)
        again[part] = {key: _again(written[key], chance) for key in keys}
    if not again["metadata"]:
        del again["metadata"]
    return again


def _again(value: Any, chance: random.Random) -> Any:
    if isinstance(value, list):
        chance.shuffle(value)
        return [
            {key: each[key] for key in reversed(each)} | ({} if each.get("value") else {"value": ""}) for each in value
        ]
    if isinstance(value, dict):
        return {key: value[key] for key in reversed(value)}
    if value == "Never":
        return value
    minutes, seconds = divmod(int(value.removesuffix("s")), 60)
    return f"{seconds}s{minutes // 60}h{minutes % 60}m"


@given(templates(), some.randoms(use_true_random=False))
def test_order_words_and_empty_values_never_change_it(template: dict[str, Any], chance: random.Random) -> None:
    assert template_hash(in_other_words(template, chance)) == template_hash(template)


@given(templates(), templates())
def test_it_differs_where_a_field_differs(one: dict[str, Any], other: dict[str, Any]) -> None:
    same = field_hashes(one) == field_hashes(other)
    assert (template_hash(one) == template_hash(other)) == same


@given(templates(), some.sampled_from(HASHED_PATHS))
def test_a_field_that_is_taken_away_changes_it(template: dict[str, Any], path: str) -> None:
    part, key = path.split(".")
    without = {**template, part: {name: value for name, value in template[part].items() if name != key}}
    if key not in template[part] or (key, template[part].get(key)) == ("expireAfter", "2592000s"):
        assert template_hash(without) == template_hash(template)
    else:
        assert template_hash(without) != template_hash(template)


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"spec": {"expireAfter": "soon"}}, "expected a duration such as 720h or 1h30m"),
        ({"metadata": {"labels": {"a": 1}}}, "not valid for Karpenter"),
        ({"spec": {"taints": [{"key": "a", "effect": "NoSchedule", "timeAdded": "today"}]}}, "expected a time such as"),
        ({"spec": {"taints": [{"key": "a", "timeAdded": "2026-11-02T08:00:00"}]}}, "expected a time such as"),
    ],
)
def test_what_the_api_server_would_refuse_is_refused_with_a_sentence(template: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        template_hash(template)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("720h", 720 * 3600 * 10**9),
        ("1h30m", 90 * 60 * 10**9),
        ("1h1h", 2 * 3600 * 10**9),
        ("1.5h", 90 * 60 * 10**9),
        (".5s", 5 * 10**8),
        ("3.m", 180 * 10**9),
        ("1.0000000009s", 10**9),
        ("7ms8us9ns", 7_008_009),
        ("5µs", 5_000),
        ("-2s", -2 * 10**9),
        ("0", 0),
        ("0s", 0),
    ],
)
def test_durations_are_read_as_go_reads_them(text: str, length: int) -> None:
    assert nanoseconds(text) == length == nanoseconds_unless_never(text)


@pytest.mark.parametrize("text", ["", "1", "h", "1d", "1h ", " 1h", "1,5h", "..5s", ".s", "1h-2m", "2562048h", "Never"])
def test_what_go_refuses_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"expected a duration|longer than"):
        nanoseconds(text)


def test_never_is_no_length() -> None:
    assert nanoseconds_unless_never("Never") is None
