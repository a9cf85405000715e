"""The JSON Schemas of the kinds: valid, agreed with by the reader, and of use where editors show them."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some
from jsonschema import Draft7Validator

from reconciler.policy import read as spec_schema
from reconciler.policy.json_schema import combined_schema_of, object_schema_of, overlay_schema_of, schema_of
from reconciler.policy.read import read_spec
from reconciler.policy.rules.kinds import KINDS, POLICY_KINDS, kind_named
from reconciler.policy.shape import API_VERSION, Kind
from reconciler.policy.tree import Mapping, Mark, Node
from reconciler.policy.yaml import read
from reconciler.schema.generated import generated_files
from tests import folders
from tests.policies import specimens

POLICIES = folders.TESTS / "policies"
SHARED = POLICIES / "good" / "shared"
FULL = {kind.name: Draft7Validator(schema_of(kind)) for kind in KINDS}
OVERLAY = {kind.name: Draft7Validator(overlay_schema_of(kind)) for kind in KINDS}
ANY, ANY_OVERLAY = (Draft7Validator(combined_schema_of(POLICY_KINDS, overlay=each)) for each in (False, True))

# What a schema can refuse of the reader's problems: a type, a field, a range, a form, a key, a name.
SEEN_BY_SCHEMAS = ("RC103", "RC104", "RC105", "RC106", "RC107", "RC109")


def document(kind: str, spec: Any) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": "a100"}, "spec": spec}


def documents(folder: Path) -> list[Any]:
    return [each for path in sorted(folder.rglob("*.yaml")) for each in yaml.safe_load_all(path.read_text()) if each]


def faults(validator: Draft7Validator, one: Any) -> list[str]:
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(one)]


def as_read(kind: Kind, spec: Any) -> tuple[Any, list[str]]:
    """What the reader makes of plain data."""
    (node,), problems = read("spec.yaml", json.dumps({"spec": spec}).encode())
    assert isinstance(node, Mapping)
    value: Node | None = node.get("spec")
    struct, wrong = read_spec(kind.shape, value, Mark("spec.yaml", 1, 1))
    return struct, [each.sentence for each in (*problems, *wrong)]


@pytest.mark.parametrize("path", [path for path in generated_files() if path.endswith(".json")])
def test_every_schema_is_one_of_draft_07(path: str) -> None:
    schema = json.loads(generated_files()[path])
    assert schema["$schema"] == "http://json-schema.org/draft-07/schema#"
    Draft7Validator.check_schema(schema)


@pytest.mark.parametrize("one", documents(SHARED / "base"), ids=lambda one: f"{one['kind']}/{one['metadata']['name']}")
def test_what_a_team_should_be_able_to_write_is_valid(one: Any) -> None:
    assert faults(FULL[one["kind"]], one) == []
    assert ANY.is_valid(one)


@pytest.mark.parametrize("one", documents(SHARED / "overlays"), ids=lambda one: f"{one['kind']}")
def test_an_overlay_of_a_team_is_a_valid_overlay(one: Any) -> None:
    assert faults(OVERLAY[one["kind"]], one) == []
    assert ANY_OVERLAY.is_valid(one)


def test_an_overlay_that_lacks_what_is_required_is_no_whole_document() -> None:
    (overlay,) = (one for one in documents(SHARED / "overlays") if one["kind"] == "GpuPool")
    assert "$.spec: 'devices' is a required property" in faults(FULL["GpuPool"], overlay)


@pytest.mark.parametrize("code", SEEN_BY_SCHEMAS)
def test_the_schema_refuses_of_each_bad_case_what_the_reader_refuses(code: str) -> None:
    paths = sorted(POLICIES.glob(f"bad/{code}-*.yaml"))
    every = [one for path in paths for one in yaml.safe_load_all(path.read_text()) if one]
    assert any(faults(FULL[one["kind"]], one) for one in every)
    for one in every:
        kind = kind_named(one["kind"])
        assert kind
        assert not as_read(kind, one["spec"])[1] or faults(FULL[one["kind"]], one)


@pytest.mark.parametrize(
    ("kind", "change", "told"),
    [
        ("NodeProvisioner", {"minSize": -1}, "-1 is less than the minimum of 0"),
        ("NodeProvisioner", {"minSize": "8"}, "'8' is not of type 'integer'"),
        ("NodeProvisioner", {"scaleDownDelay": 600}, "600 is not of type 'string'"),
        ("NodeProvisioner", {"scaleDownDelay": "10 minutes"}, "'10 minutes' does not match"),
        ("NodeProvisioner", {"minSize": None}, "None is not of type 'integer'"),
        ("NodeProvisioner", {"maxsize": 3}, "'maxsize' was unexpected"),
        ("NodeProvisioner", {"poolName": "*"}, "'*' does not match"),
        ("DrainPolicy", {"poolNames": []}, "[] should be non-empty"),
        ("DrainPolicy", {"clusterMin": {"cpu": -1}}, "-1 is less than the minimum of 0"),
        ("DrainPolicy", {"clusterMin": {"c p u": 1}}, "'c p u' does not match"),
        ("PressurePolicy", {"resources": {}}, "{} should be non-empty"),
        ("PressurePolicy", {"memSlotSize": "1GB"}, "'1GB' does not match"),
        ("PressurePolicy", {"migration": "auto"}, "'auto' is not one of ['Auto', 'Evict', 'None', None]"),
        ("ChangeGuard", {"clusterUID": "prod"}, "'prod' does not match"),
        ("GpuPool", {"expireAfter": "never"}, "'never' does not match"),
        ("GpuPool", {"instanceTypes": [{"name": "g6", "pricePerHour": {"spot": 1.9}}]}, "1.9 is not of type 'string'"),
        (
            "GpuPool",
            {"instanceTypes": [{"name": "g6", "pricePerHour": {"ondemand": "1"}}]},
            "'ondemand' was unexpected",
        ),
        ("GpuPool", {"capacityTypes": ["spot"] * 4}, "is too long"),
    ],
)
def test_a_wrong_field_is_refused(kind: str, change: dict[str, Any], told: str) -> None:
    chosen = kind_named(kind)
    assert chosen
    found = faults(FULL[kind], document(kind, {**specimens.smallest(chosen.shape), **change}))
    assert len(found) == 1
    assert told in found[0]


@pytest.mark.parametrize(
    "change",
    [
        {"apiVersion": "gpu.scheduling/v9"},
        {"kind": "ChangeGuards"},
        {"metadata": {}},
        {"metadata": {"name": "Fleet Guard"}},
        {"metadata": {"name": "fleet", "namespace": "gpu-system"}},
        {"metadata": {"name": "fleet", "labels": {"team": 7}}},
        {"status": {}},
    ],
    ids=str,
)
def test_a_wrong_head_is_refused(change: dict[str, Any]) -> None:
    right = document("ChangeGuard", {"poolNames": ["*"]})
    assert FULL["ChangeGuard"].is_valid(right)
    assert not FULL["ChangeGuard"].is_valid({**right, **change})
    assert not ANY.is_valid({**right, **change})


@given(some.data())
def test_what_the_shape_allows_both_schemas_and_the_reader_take(given_: some.DataObject) -> None:
    kind = given_.draw(some.sampled_from(KINDS))
    spec = given_.draw(specimens.allowed(kind.shape))
    one = document(kind.name, spec)
    assert faults(FULL[kind.name], one) == faults(OVERLAY[kind.name], one) == as_read(kind, spec)[1] == []


@given(some.data())
def test_of_a_spec_with_one_fault_neither_the_schema_nor_the_reader_takes_it(given_: some.DataObject) -> None:
    kind = given_.draw(some.sampled_from(KINDS))
    spec = given_.draw(specimens.faulty(kind))
    assert faults(FULL[kind.name], document(kind.name, spec))
    assert as_read(kind, spec)[1]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"minSize": 1.0}, ["spec.minSize: expected an integer"]),
        ({"minSize": True}, ["spec.minSize: expected an integer"]),
        ({"poolName": "a100\n"}, ["spec.poolName: expected"]),
        ({"poolName": None}, ["spec.poolName is missing"]),
        ({"scaleDownDelay": "x" * 65}, ["spec.scaleDownDelay: expected a duration"]),
        (
            {"minSize": None, "minsize": 1, "scaleDownDelay": 5},
            ["spec.minSize is missing", "spec.scaleDownDelay: expected", "unknown key"],
        ),
    ],
)
def test_the_reader_tells_each_fault_that_the_schema_finds_once(change: dict[str, Any], told: list[str]) -> None:
    kind = kind_named("NodeProvisioner")
    assert kind
    struct, sentences = as_read(kind, {**specimens.smallest(kind.shape), **change})
    assert struct is None
    assert len(sentences) == len(told)
    assert all(sentence.startswith(beginning) for sentence, beginning in zip(sorted(sentences), told, strict=True))


def test_the_reader_asks_jsonschema(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a published schema refuses, the reader refuses, without a line about it in the reader."""
    kind = kind_named("NodeProvisioner")
    assert kind
    stricter = copy.deepcopy(object_schema_of(kind.shape))
    stricter["properties"]["minSize"]["not"] = {"const": 7}
    monkeypatch.setattr(spec_schema, "object_schema_of", lambda _shape: stricter)
    spec_schema._validator.cache_clear()  # noqa: SLF001 - a validator is made once for all tests
    try:
        _, sentences = as_read(kind, {**specimens.smallest(kind.shape), "minSize": 7})
        assert len(sentences) == 1
        assert sentences[0].startswith("spec.minSize: ")
    finally:
        spec_schema._validator.cache_clear()  # noqa: SLF001


@pytest.mark.parametrize("kind", POLICY_KINDS, ids=lambda kind: kind.name)
def test_in_an_overlay_null_restores_any_default(kind: Kind) -> None:
    nothing = {field.name: None for field in kind.shape.fields}
    assert faults(OVERLAY[kind.name], document(kind.name, nothing)) == []
    deeper = document("ChangeGuard", {"perPlan": {"maxRemovedNodes": None}})
    assert OVERLAY["ChangeGuard"].is_valid(deeper)


def test_in_an_overlay_a_list_is_replaced_so_that_its_items_are_whole() -> None:
    spec = {"instanceTypes": [{"capacity": {"cpu": 8}}]}
    assert faults(OVERLAY["GpuPool"], document("GpuPool", spec)) == [
        "$.spec.instanceTypes[0]: 'name' is a required property"
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_defaults_of_the_schema_are_those_of_the_struct(kind: Kind) -> None:
    """Filled in, as an editor would do it, they make the same struct as leaving everything out."""
    spec = specimens.smallest(kind.shape)
    filled = filled_in(schema_of(kind)["properties"]["spec"], spec)
    assert as_read(kind, filled) == as_read(kind, spec)
    assert spec != filled


def filled_in(schema: Any, value: Any) -> Any:
    if isinstance(value, list):
        return [filled_in(schema["items"], each) for each in value]
    if not isinstance(value, dict) or "properties" not in schema:
        return value
    defaults = {name: each["default"] for name, each in schema["properties"].items() if "default" in each}
    whole = {**defaults, **value}
    return {name: filled_in(schema["properties"][name], each) for name, each in whole.items()}
