"""Where a rendered NodePool would say something else than the live one: a first net, before a plan counts the nodes.

Two NodePools are the same here when they mean the same to Karpenter: requirements, taints and values in any order, 90m
and 1h30m, 1000m and 1. Labels of our own that the live one lacks don't count: where a NodePool is adopted, they are put
on the Node objects instead. Nor does our startup taint: an adopted NodePool is not given it.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from reconciler.importer.live_spec import live_spec
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.names import ARRIVING, OURS
from reconciler.model.quantity import Duration, Quantity

Plain = dict[str, Any]

_NODE = "spec.template.spec"
_METADATA = "spec.template.metadata"
# Each of their entries is a difference by itself.
_TAKEN_APART = frozenset(
    {"spec", "spec.limits", "spec.disruption", "spec.template", _NODE, f"{_NODE}.nodeClassRef", _METADATA}
    | {f"{_METADATA}.labels", f"{_METADATA}.annotations"}
)


def differences(rendered: Mapping[str, Any], live: Unstructured) -> tuple[str, ...]:
    """The fields of the spec that differ, sorted: spec.limits.cpu, spec.template.spec.taints."""
    wished = live_spec(Unstructured("", "", UnstructuredMetadata(""), {"spec": rendered.get("spec")}))
    there = live_spec(live)
    labels, known = wished["template"]["metadata"]["labels"], there["template"]["metadata"]["labels"]
    for key in [key for key in labels if key.startswith(OURS) and key not in known]:
        del labels[key]
    holding = wished["template"]["spec"]["startupTaints"]
    if ARRIVING not in {each.get("key") for each in there["template"]["spec"]["startupTaints"]}:
        holding[:] = [each for each in holding if each.get("key") != ARRIVING]
    return tuple(sorted(_apart(_meaning(wished), _meaning(there), "spec")))


def _apart(one: Any, other: Any, path: str) -> Iterator[str]:
    if one == other:
        return
    if path in _TAKEN_APART and isinstance(one, dict) and isinstance(other, dict):
        for key in sorted({*one, *other}):
            yield from _apart(one.get(key), other.get(key), f"{path}.{key}")
    else:
        yield path


def _meaning(spec: Plain) -> Plain:
    """The same for all that means the same to Karpenter."""
    template, disruption = spec["template"], spec["disruption"]
    node = template["spec"]
    of_nodes = {
        "requirements": _unordered([_requirement(each) for each in node["requirements"]]),
        "taints": _unordered([_taint(each) for each in node["taints"]]),
        "startupTaints": _unordered([_taint(each) for each in node["startupTaints"]]),
        "expireAfter": _length(node["expireAfter"]),
        "terminationGracePeriod": _length(node.get("terminationGracePeriod")),
    }
    of_disruption = {
        "consolidateAfter": _length(disruption["consolidateAfter"]),
        "budgets": [_budget(each) for each in disruption["budgets"]],
    }
    inner = _said(template) | {"spec": _said(node) | of_nodes}
    limits = {name: _amount(most) for name, most in spec["limits"].items()}
    return _said(spec) | {"limits": limits, "template": inner, "disruption": _said(disruption) | of_disruption}


def _said(fields: Plain) -> Plain:
    """Without what is empty, which is as good as absent."""
    return {name: value for name, value in fields.items() if value not in ({}, [])}


def _requirement(requirement: Plain) -> Plain:
    return _said(requirement | {"values": _unordered(requirement.get("values", []))})


def _taint(taint: Plain) -> Plain:
    return {name: value for name, value in taint.items() if (name, value) != ("value", "")}


def _budget(budget: Plain) -> Plain:
    """Its reasons stay where they are an empty list: that is never, and no word about them is always."""
    result = dict(budget)
    if "reasons" in budget:
        result["reasons"] = _unordered(budget["reasons"])
    if "duration" in budget:
        result["duration"] = _length(budget["duration"])
    return result


def _unordered(values: Any) -> list[Any]:
    items = values if isinstance(values, list) else [values]
    return sorted(items, key=lambda each: msgspec.json.encode(each, order="sorted"))


def _length(text: Any) -> Any:
    try:
        return Duration.parse(text).milliseconds if isinstance(text, str) else text
    except ValueError:  # Never, or longer than any policy could say: only equal texts are the same
        return text


def _amount(value: Any) -> Any:
    try:
        return Quantity.parse(str(value)).milli
    except ValueError:  # finer than is kept, or negative
        return str(value)
