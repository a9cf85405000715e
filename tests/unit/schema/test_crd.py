"""The definitions of the kinds keep the rules that API servers have for them, and say what the structs say."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from reconciler.policy.json_schema import schema_of
from reconciler.policy.rules.kinds import (
    DRAIN_POLICY,
    GPU_CLAIM,
    GPU_NODE_STATUS,
    GPU_POOL,
    KINDS,
    NODE_PROVISIONER,
    PRESSURE_POLICY,
)
from reconciler.policy.shape import Kind
from reconciler.schema.crd import crd_of

Schema = dict[str, Any]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)


def schema(kind: Kind) -> Schema:
    (version,) = crd_of(kind)["spec"]["versions"]
    found: Schema = version["schema"]["openAPIV3Schema"]
    return found


def spec(kind: Kind) -> Schema:
    found: Schema = schema(kind)["properties"]["spec"]
    return found


def nodes(node: Schema, path: str = "") -> Iterator[tuple[str, Schema]]:
    """Every schema in a schema, but for alternatives of one value."""
    yield path, node
    for name, inner in node.get("properties", {}).items():
        yield from nodes(inner, f"{path}.{name}")
    if "items" in node:
        yield from nodes(node["items"], f"{path}[]")
    if isinstance(node.get("additionalProperties"), dict):
        yield from nodes(node["additionalProperties"], f"{path}.*")


@each_kind
def test_it_is_named_as_kubernetes_asks(kind: Kind) -> None:
    crd = crd_of(kind)
    names = crd["spec"]["names"]
    assert crd["metadata"] == {"name": f"{kind.plural}.gpu.scheduling"}
    assert names["plural"] == kind.plural == kind.plural.lower()
    assert (names["singular"], names["listKind"]) == (kind.name.lower(), f"{kind.name}List")
    assert names["categories"] == ["gpu-scheduling"]


def test_no_two_kinds_share_a_name() -> None:
    names = [name for kind in KINDS for name in (kind.plural, kind.short, kind.name.lower())]
    assert len(set(names)) == len(names)


def test_only_claims_are_in_a_namespace() -> None:
    scopes = {kind.name: crd_of(kind)["spec"]["scope"] for kind in KINDS}
    assert {name for name, scope in scopes.items() if scope == "Namespaced"} == {GPU_CLAIM.name}


@each_kind
def test_every_value_has_a_type_and_no_unknown_field_is_kept(kind: Kind) -> None:
    for path, node in nodes(schema(kind)):
        assert ("type" in node) != bool(node.get("x-kubernetes-int-or-string")), path
        assert "x-kubernetes-preserve-unknown-fields" not in node, path
        assert not {"properties", "additionalProperties"} <= set(node), path
        assert node.get("type") != "object" or node.keys() & {"properties", "additionalProperties"} or "meta" in path


@each_kind
def test_every_field_is_described_but_metadata_which_kubernetes_describes(kind: Kind) -> None:
    for path, node in nodes(schema(kind)):
        for name, inner in node.get("properties", {}).items():
            assert inner.get("description") or (path, name) == ("", "metadata"), f"{path}.{name}"


@each_kind
def test_every_list_map_and_text_has_a_bound(kind: Kind) -> None:
    for path, node in nodes(schema(kind)):
        if path in {"", ".apiVersion", ".kind", ".metadata"}:
            continue
        match node.get("type"):
            case "array":
                assert node["maxItems"] > 0, path
            case "object":
                assert "properties" in node or node["maxProperties"] > 0, path
            case "string":
                assert "enum" in node or node["maxLength"] > 0, path
            case "integer":
                assert "maximum" in node, path


@each_kind
def test_lists_are_told_apart_by_fields_that_are_always_there(kind: Kind) -> None:
    for path, node in nodes(schema(kind)):
        if node.get("type") == "array":
            keys = node.get("x-kubernetes-list-map-keys", [])
            assert node["x-kubernetes-list-type"] == ("map" if keys else "atomic"), path
            for key in keys:
                assert key in node["items"]["required"] or "default" in node["items"]["properties"][key], path


@each_kind
def test_an_object_that_may_be_left_out_is_filled_with_its_own_defaults(kind: Kind) -> None:
    for path, node in nodes(spec(kind), ".spec"):
        for name, inner in node.get("properties", {}).items():
            if inner.get("type") == "object" and name not in node.get("required", ()):
                assert inner["default"] == {}, f"{path}.{name}"
                assert "required" not in inner, f"{path}.{name}"


@each_kind
def test_defaults_are_those_of_the_json_schema(kind: Kind) -> None:
    def defaults(root: Schema) -> dict[str, Any]:
        return {path: node["default"] for path, node in nodes(root) if "default" in node}

    ours = defaults(spec(kind))
    ours.pop("", None)  # of the spec itself, where nothing in it is required
    assert ours == defaults(schema_of(kind)["properties"]["spec"])


@each_kind
def test_patterns_have_nothing_that_go_does_not_know(kind: Kind) -> None:
    for path, node in nodes(schema(kind)):
        pattern = node.get("pattern", "")
        assert not re.search(r"\(\?[=!<P]|\\[1-9ZAz]|\{\d+,?(\d{4,})\}", pattern), path


@each_kind
def test_rules_name_fields_that_are_there_and_say_what_to_do(kind: Kind) -> None:
    node = spec(kind)
    assert len(node.get("x-kubernetes-validations", ())) == len(kind.rules)
    for rule in node.get("x-kubernetes-validations", ()):
        at = node
        for part in rule["fieldPath"].removeprefix(".").split("."):
            at = at["properties"][part]
        assert set(re.findall(r"self\.(\w+)", rule["rule"] + rule.get("messageExpression", ""))) <= set(
            node["properties"]
        )
        assert "{" not in rule["message"]
        assert ": " in rule["message"]


def test_a_rule_tells_the_figures_where_it_can() -> None:
    (first, *_) = spec(NODE_PROVISIONER)["x-kubernetes-validations"]
    assert first["message"] == "minSize is above maxSize (RC201): lower minSize, or raise maxSize"
    assert first["messageExpression"] == (
        "'minSize %s is above maxSize %s (RC201): lower minSize, or raise maxSize'.format([self.minSize, self.maxSize])"
    )
    (drains,) = spec(DRAIN_POLICY)["x-kubernetes-validations"]
    assert (
        "maxDrainParallelism is above maxScaleDownParallelism, which also counts drained nodes (RC203)"
        in drains["message"]
    )
    (resources,) = spec(PRESSURE_POLICY)["x-kubernetes-validations"]
    assert "messageExpression" not in resources


def test_the_keys_of_maps_are_held_by_rules() -> None:
    pool = spec(GPU_POOL)["properties"]
    (prices,) = pool["instanceTypes"]["items"]["properties"]["pricePerHour"]["x-kubernetes-validations"]
    assert prices["rule"] == "self.all(key, key in ['reserved', 'on-demand', 'spot'])"
    (labels,) = pool["labels"]["x-kubernetes-validations"]
    assert labels["rule"].startswith("self.all(key, key.matches('^(")


def test_a_quantity_is_an_integer_or_a_text_and_never_negative() -> None:
    memory = spec(GPU_POOL)["properties"]["devices"]["properties"]["memory"]
    assert memory["x-kubernetes-int-or-string"] is True
    assert (memory["minimum"], memory["maximum"], memory["exclusiveMaximum"]) == (0, 10**18, True)
    assert re.search(memory["pattern"], "40Gi")
    assert not re.search(memory["pattern"], "-1")


def test_a_duration_takes_its_words_too() -> None:
    expire = spec(GPU_POOL)["properties"]["expireAfter"]
    assert [bool(re.search(expire["pattern"], text)) for text in ("Never", "720h", "never", "Never1h")] == [
        True,
        True,
        False,
        False,
    ]
    (longest,) = expire["x-kubernetes-validations"]
    assert longest["rule"] == "self == 'Never' || duration(self) <= duration('87840h')"


def test_a_name_is_no_longer_than_the_label_that_it_becomes() -> None:
    (bound,) = schema(GPU_POOL)["x-kubernetes-validations"]
    assert bound["rule"] == "size(self.metadata.name) <= 63"
    assert schema_of(GPU_POOL)["properties"]["metadata"]["properties"]["name"]["maxLength"] == 63
    assert "x-kubernetes-validations" not in schema(DRAIN_POLICY)


@each_kind
def test_the_status_has_what_every_status_has(kind: Kind) -> None:
    status = schema(kind)["properties"]["status"]["properties"]
    assert {"observedGeneration", "conditions", "problems"} <= set(status)
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    condition = status["conditions"]["items"]
    assert condition["required"] == ["type", "status", "lastTransitionTime", "reason", "message"]
    assert status["problems"]["items"]["type"] == "string"


@each_kind
def test_a_policy_that_no_controller_has_seen_is_not_taken_for_ready(kind: Kind) -> None:
    """kstatus takes an object without status for current; an object that no controller follows must stay so."""
    status = schema(kind)["properties"]["status"]
    assert status.get("default") == ({"observedGeneration": -1} if kind.is_policy else None)
    assert "minimum" not in status["properties"]["observedGeneration"]
    assert ("bundle" in status["properties"]) == kind.is_policy == ("bundle" in schema(kind)["properties"])


@each_kind
def test_a_policy_shows_why_it_is_not_ready(kind: Kind) -> None:
    titles = [column["name"] for column in crd_of(kind)["spec"]["versions"][0]["additionalPrinterColumns"]]
    assert ("Message" in titles) == kind.is_policy


def test_an_agent_s_report_is_part_of_the_status() -> None:
    devices = schema(GPU_NODE_STATUS)["properties"]["status"]["properties"]["devices"]
    assert devices["items"]["properties"]["health"]["default"] == "Unknown"
    assert "devices" not in spec(GPU_NODE_STATUS)["properties"]


@each_kind
def test_columns_show_fields_that_are_there(kind: Kind) -> None:
    (version,) = crd_of(kind)["spec"]["versions"]
    fields = dict(nodes(spec(kind), ".spec"))
    for column in version["additionalPrinterColumns"]:
        if column["jsonPath"].startswith(".spec"):
            shown = fields[column["jsonPath"]]["type"]
            assert column["type"] == ("string" if shown in {"array", "string"} else shown)


@each_kind
def test_nothing_of_ours_owns_anything(kind: Kind) -> None:
    """Or deleting a definition would take away what was made for it."""
    assert "ownerReferences" not in json.dumps(crd_of(kind))
