"""A structural schema is checked as the API server does it, to each bound and each rule of Karpenter's NodePool."""

import copy
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.bundle import Rendering
from reconciler.policy.manifests.check import manifests_of
from reconciler.policy.manifests.kubernetes_schema import MOST_VIOLATIONS, Structural, Violation, filled
from reconciler.policy.tree import Path, written
from reconciler.sources.input_file import karpenter_schema
from tests.unit.policy.manifests.karpenter_schema import structural  # noqa: F401  a fixture

# Every field that a NodePool can have but `replicas`, which excludes others.
FULL: dict[str, Any] = yaml.safe_load("""
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: full}
spec:
  weight: 10
  limits: {cpu: 5, memory: 9Ti}
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 30s
    budgets: [{nodes: 10%, reasons: [Drifted], schedule: "@daily", duration: 8h}]
  template:
    metadata:
      labels: {team: x}
      annotations: {note: said}
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: x}
      expireAfter: 720h
      terminationGracePeriod: 30m
      requirements: [{key: team, operator: In, values: [x], minValues: 1}]
      taints: [{key: example.com/a, value: b, effect: NoSchedule, timeAdded: "2026-01-01T00:00:00Z"}]
      startupTaints: [{key: example.com/b, value: c, effect: NoExecute, timeAdded: "2026-01-01T00:00:00Z"}]
""")

Case = tuple[Path, Any, str]  # where, a value that is wrong there, and a part of the sentence
ABSENT = object()


def problems_of(document: Any, structural: Structural) -> list[tuple[str, str, str]]:  # noqa: F811
    """Code, sentence and the line of the text that each problem points to."""
    text = yaml.safe_dump(document, sort_keys=False)
    lines = text.splitlines()
    rendering = Rendering(text, tuple(("templates/x.j2", number) for number in range(1, len(lines) + 1)))
    _, problems = manifests_of(rendering, structural)
    return [(each.code, each.sentence, lines[each.line - 1]) for each in problems]


def changed(path: Path, value: Any) -> Any:
    document = copy.deepcopy(FULL)
    inner: Any = document
    for part in path[:-1]:
        inner = inner[part]
    if value is ABSENT:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return document


def bounds(schema: Mapping[str, Any], value: Any, path: Path) -> Iterator[tuple[str, Case]]:
    """Each thing that the schema demands of each value of the full NodePool, with a value that breaks it."""
    wrong_types = {"string": 7, "integer": "7", "object": "x", "array": "x"}
    if schema.get("x-kubernetes-int-or-string"):
        yield "type", (path, 1.5, "must be an integer or a string, got 1.5")
        yield "pattern", (path, "many", 'is "many", which does not match')
    elif len(path) > 1:  # without a spec at all, no schema is asked
        yield "type", (path, wrong_types[schema["type"]], "must be ")
    if len(path) > 1 and "default" not in schema:
        yield "null", (path, None, "is null")
    if "enum" in schema:
        yield "enum", (path, "Nope", 'is "Nope"')
    if "pattern" in schema and schema.get("type") == "string":
        yield "pattern", (path, "-,/", 'is "-,/", which does not match')
    if schema.get("minLength"):
        yield "minLength", (path, "", "has 0 characters, fewer than 1")
    if "maxLength" in schema and schema.get("type") == "string":
        yield "maxLength", (path, "a" * (schema["maxLength"] + 1), f"more than {schema['maxLength']}")
    if "minimum" in schema:
        yield "minimum", (path, schema["minimum"] - 1, "less than the minimum")
    if "maximum" in schema:
        yield "maximum", (path, schema["maximum"] + 1, "more than the maximum")
    yield from inner_bounds(schema, value, path)


def inner_bounds(schema: Mapping[str, Any], value: Any, path: Path) -> Iterator[tuple[str, Case]]:
    if "maxItems" in schema:
        yield "maxItems", (path, value * (schema["maxItems"] + 1), f"more than {schema['maxItems']}")
    if "maxProperties" in schema:
        many = {f"k{number}": "v" for number in range(schema["maxProperties"] + 1)}
        yield "maxProperties", (path, many, f"more than {schema['maxProperties']}")
    if schema.get("x-kubernetes-list-type") == "set":
        yield "set", (path, value * 2, "twice")
    for name in schema.get("required", ()):
        if "default" not in schema["properties"][name]:
            yield "required", ((*path, name), ABSENT, f'has no "{name}"')
    if "properties" in schema:
        yield "unknown", ((*path, "unheardOf"), 1, "is an unknown field")
    if isinstance(value, dict):
        for name, inner in value.items():
            part = schema.get("properties", {}).get(name) or schema["additionalProperties"]
            yield from bounds(part, inner, (*path, name))
    if isinstance(value, list):
        yield from bounds(schema["items"], value[0], (*path, 0))


def test_the_full_node_pool_is_taken(structural: Structural) -> None:  # noqa: F811
    assert problems_of(FULL, structural) == []


def test_every_bound_of_karpenter_s_schema_is_kept_and_told_at_its_line(structural: Structural) -> None:  # noqa: F811
    spec = karpenter_schema()["properties"]["spec"]  # type: ignore[index]
    cases = list(bounds(spec, FULL["spec"], ("spec",)))
    assert {name for name, _ in cases} == {
        *("type", "null", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "maxItems"),
        *("maxProperties", "set", "required", "unknown"),
    }
    assert len(cases) > 130
    for name, (path, value, sentence) in cases:
        told = problems_of(changed(path, value), structural)
        where = path[:-1] if value is ABSENT else path
        found = [each for each in told if each[0] == "RC412" and sentence in each[1]]
        assert found, f"{name} of {written(path)} is not kept: {told}"
        assert f"{written(where)} " in found[0][1]
        assert points_to(where, found[0][2]), f"{name} of {written(path)} is told at {found[0][2]}"


def points_to(path: Path, line: str) -> bool:
    """Whether the line is where the value of the path stands: its key, or the dash of its item."""
    last = path[-1]
    return line.strip().startswith("- ") if isinstance(last, int) else f"{last}:" in line


REQUIREMENTS: Path = ("spec", "template", "spec", "requirements")
LABELS: Path = ("spec", "template", "metadata", "labels")
REFERENCE: Path = ("spec", "template", "spec", "nodeClassRef")
# Message of the rule, and what breaks it.
RULES: tuple[tuple[str, Path, Any], ...] = (
    ("'schedule' must be set with 'duration'", ("spec", "disruption", "budgets", 0, "duration"), ABSENT),
    ('label domain "karpenter.sh" is restricted', (*LABELS, "karpenter.sh/x"), "x"),
    ('label "karpenter.sh/nodepool" is restricted', (*LABELS, "karpenter.sh/nodepool"), "x"),
    ('label "kubernetes.io/hostname" is restricted', (*LABELS, "kubernetes.io/hostname"), "x"),
    ('label domain "karpenter.sh" is restricted', (*REQUIREMENTS, 0, "key"), "karpenter.sh/x"),
    ('label "karpenter.sh/nodepool" is restricted', (*REQUIREMENTS, 0, "key"), "karpenter.sh/nodepool"),
    ('label "kubernetes.io/hostname" is restricted', (*REQUIREMENTS, 0, "key"), "kubernetes.io/hostname"),
    ("group may not be empty", (*REFERENCE, "group"), ""),
    ("kind may not be empty", (*REFERENCE, "kind"), ""),
    ("name may not be empty", (*REFERENCE, "name"), ""),
    ("requirements with operator 'In' must have a value defined", (*REQUIREMENTS, 0, "values"), []),
    ("must have a single positive integer value", (*REQUIREMENTS, 0, "operator"), "Gt"),
    ("must have at least that many values", (*REQUIREMENTS, 0, "minValues"), 2),
    ("only 'limits.nodes' is supported on static NodePools", ("spec", "replicas"), 1),
    ("'weight' is not supported on static NodePools", ("spec", "replicas"), 1),
)


@pytest.mark.parametrize("case", RULES, ids=lambda case: f"{case[0]} at {written(case[1])}")
def test_each_rule_of_karpenter_s_is_told_with_its_message(case: tuple[str, Path, Any], structural: Structural) -> None:  # noqa: F811
    message, path, value = case
    told = [each for each in problems_of(changed(path, value), structural) if message in each[1]]
    assert [code for code, _, _ in told] == ["RC413"]
    # Of a list, the line of the item that breaks the rule; else of what holds the rule.
    last = path[-1] if isinstance(path[-1], str) else ""
    assert f"{last}:" in told[0][2] or told[0][2].strip().startswith("- ") or told[0][2] == "spec:"


def test_no_rule_of_karpenter_s_is_left_out(structural: Structural) -> None:  # noqa: F811
    def messages(part: Any) -> Iterator[str]:
        if isinstance(part, dict):
            for rule in part.get("x-kubernetes-validations", ()):
                if "oldSelf" not in rule["rule"]:
                    yield rule["message"]
            for each in part.values():
                yield from messages(each)

    assert structural.unjudged == ()
    written_rules = list(messages(karpenter_schema()))
    assert len(written_rules) == len(RULES)
    for message, _, _ in RULES:
        assert any(message in each for each in written_rules)


def violations(schema: dict[str, Any], value: Any) -> list[Violation]:
    return Structural(schema).violations(value)


def test_a_default_stands_in_for_a_field_that_is_absent_or_null() -> None:
    schema = {
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": "object", "default": {"b": 1}, "properties": {"b": {"type": "integer"}, "c": {"default": 2}}}
        },
    }
    assert filled(schema, {}) == {"a": {"b": 1, "c": 2}}
    assert violations(schema, {}) == []
    assert violations(schema, {"a": None}) == []
    assert violations(schema["properties"]["a"], {"b": None}) != []  # type: ignore[index]


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "boolean"}, True, 1),
        ({"type": "integer"}, 1, True),
        ({"type": "integer"}, 1, 1.0),
        ({"type": "number"}, 1.5, "1.5"),
        ({"type": "string", "nullable": True}, None, 1),
        ({"type": "integer", "format": "int32"}, 2**31 - 1, 2**31),
        ({"type": "integer"}, -(2**63), -(2**63) - 1),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, 2, 1),
        ({"type": "integer", "maximum": 1, "exclusiveMaximum": True}, 0, 1),
        ({"type": "integer", "multipleOf": 3}, 6, 7),
        ({"type": "string", "maxLength": 2}, "üü", "aaa"),
        ({"type": "string", "pattern": "^a$"}, "a", "a\n"),
        ({"type": "string", "format": "of-the-future"}, "x", 1),
        ({"type": "array", "items": {"type": "string"}, "maxLength": 1, "pattern": "^x$"}, ["a", "b"], [1]),
        ({"type": "array", "uniqueItems": True}, [1, 2], [{"a": 1}, {"a": 1}]),
        (
            {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]},
            [{"k": 1, "v": 1}, {"k": 2, "v": 1}],
            [{"k": 1, "v": 1}, {"k": 1, "v": 2}],
        ),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"a": "x"}, {"a": 1}),
        ({"type": "object", "additionalProperties": True}, {"a": 1}, []),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": True}, {"a": 1}, []),
        ({"type": "object"}, {}, {"a": 1}),
        ({"type": "object", "minProperties": 1, "additionalProperties": True}, {"a": 1}, {}),
        ({"allOf": [{"minimum": 1}, {"maximum": 2}]}, 2, 3),
        ({"anyOf": [{"minimum": 9}, {"maximum": 2}]}, 2, 3),
        ({"oneOf": [{"minimum": 1}, {"minimum": 2}]}, 1, 3),
        ({"not": {"enum": ["x"]}}, "y", "x"),
        (
            {"additionalProperties": True, "anyOf": [{"required": ["a"]}, {"properties": {"b": {"minimum": 1}}}]},
            {"b": 1, "c": 1},
            {"b": 0},
        ),
    ],
)
def test_each_word_of_a_schema_is_understood(schema: dict[str, Any], good: Any, bad: Any) -> None:
    assert violations(schema, good) == []
    assert [each.code for each in violations(schema, bad)][:1] == ["RC412"]


def test_rules_are_asked_only_of_what_is_otherwise_right() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "self.a > 1", "message": "too little"}],
    }
    assert [each.code for each in violations(schema, {"a": 1})] == ["RC413"]
    assert [each.code for each in violations(schema, {"a": "1"})] == ["RC412"]
    (told,) = violations(schema, {})
    assert "too little (the rule cannot be evaluated" in told.sentence


def test_a_rule_that_only_the_api_server_can_judge_is_left_to_it_and_named() -> None:
    rules = [
        {"rule": "isQuantity(self)", "message": "of another library"},
        {"rule": "self.?a.hasValue()", "message": "of another syntax"},
        {"rule": "self == oldSelf", "message": "immutable"},
    ]
    schema = Structural({"type": "string", "x-kubernetes-validations": rules})
    assert schema.violations("x") == []
    assert schema.unjudged == ("of another library", "of another syntax")


def test_a_map_and_what_is_in_it_are_told_of_together() -> None:
    schema = {
        "type": "object",
        "required": ["b"],
        "properties": {"a": {"type": "integer", "maximum": 1}, "b": {"type": "integer"}},
        "x-kubernetes-validations": [{"rule": "false", "message": "asked"}],
    }
    told = violations(schema, {"a": 2, "c": 3})
    assert {(each.path, each.sentence) for each in told} == {
        ((), 'has no "b"'),
        (("a",), "is 2, more than the maximum 1"),
        (("c",), "is an unknown field"),
    }


def test_of_a_number_or_a_text_one_sentence_says_what_is_wrong() -> None:
    part = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    schema = {"type": "object", "properties": {"a": part}}
    assert violations(schema, {"a": 7}) == violations(schema, {"a": "7"}) == []
    values: tuple[Any, ...] = (1.5, True, [], 2**63)
    for wrong in values:
        (told,) = violations(schema, {"a": wrong})
        assert told.path == ("a",)


def test_items_are_compared_in_time_that_grows_with_their_number() -> None:
    schema = {"type": "array", "uniqueItems": True}
    began = time.process_time()
    assert violations(schema, [{"a": number} for number in range(30_000)]) == []
    assert time.process_time() - began < 20  # one by one, it would be several minutes


def test_nothing_that_a_schema_refers_to_is_fetched() -> None:
    schema = {"type": "object", "properties": {"a": {"$ref": "https://127.0.0.1:9/schema.json", "type": "integer"}}}
    assert violations(schema, {"a": 1}) == []


def test_very_many_violations_are_not_all_told() -> None:
    schema = {"type": "array", "items": {"type": "string", "enum": ["some", "other"]}}
    assert len(violations(schema, ["same"] * 50_000)) == MOST_VIOLATIONS
    assert len(violations({"type": "object", "properties": {"a": {}}}, {f"k{n}": 1 for n in range(50_000)})) == 50


def test_a_pattern_takes_no_longer_for_a_text_that_is_made_to_be_slow(structural: Structural) -> None:  # noqa: F811
    """Python's own expressions would take hours for the schedule's."""
    path: Path = ("spec", "disruption", "budgets", 0, "schedule")
    told = problems_of(changed(path, " " * 100_000 + "\n!"), structural)
    assert told == []  # as the API server sees it: five parts with blanks between them
    told = problems_of(changed(("spec", "template", "spec", "taints", 0, "key"), "a-" * 50_000), structural)
    assert [code for code, _, _ in told] == ["RC412"]


LEAVES = some.none() | some.booleans() | some.integers() | some.floats() | some.text()
FIELDS = some.sampled_from(["spec", "template", "limits", "disruption", "budgets", "a"])
ANYTHING = some.recursive(LEAVES, lambda inner: some.lists(inner) | some.dictionaries(FIELDS, inner))


@given(value=ANYTHING)
def test_whatever_the_data_is_no_exception_comes_of_it(structural: Structural, value: Any) -> None:  # noqa: F811
    structural.violations(value)
    structural.violations({"spec": value})
