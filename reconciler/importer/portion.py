"""Splits a NodePool's spec into two parts: fields of a GpuPool, and settings that only a template can express.

Theory of operation. The default template renders a NodePool from a GpuPool's fields. Each part of the live spec is
matched to the field that would render it; settings that the field cannot hold, or would render differently, are kept
unchanged for a separate template. Both parts together are the whole spec: nothing is lost, and nothing is in both.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.policy.gpu import GpuPool
from reconciler.policy.read import read_spec
from reconciler.policy.rules.hardware import resource_problems
from reconciler.policy.shape import describe
from reconciler.policy.tree import MapEntry, Mark, Node, Scalar
from reconciler.policy.tree import Mapping as TreeMapping
from reconciler.policy.tree import Sequence as TreeSequence

Plain = dict[str, Any]

_SAFE_BUDGETS = [{"nodes": "0", "reasons": ["Empty", "Underutilized"]}, {"nodes": "10%", "reasons": ["Drifted"]}]
_USUAL_BUDGETS = [{"nodes": "10%"}]

# Parts of a NodePool with fields, by path; other keys at the same path have none.
SPEC, TEMPLATE, METADATA, NODE, CLASS = "", "template", "template.metadata", "template.spec", "nodeClassRef"
DISRUPTION = "disruption"
# Paths that a GpuPool field covers as a whole.
_PLACES = {"startupTaints": NODE, "annotations": METADATA, "weight": SPEC}
_FIELDS = {
    SPEC: {"template", "limits", "disruption", "weight"},
    TEMPLATE: {"metadata", "spec"},
    METADATA: {"labels", "annotations"},
    NODE: {"nodeClassRef", "requirements", "taints", "startupTaints", "expireAfter", "terminationGracePeriod"},
    CLASS: {"group", "kind", "name"},
    DISRUPTION: {"consolidationPolicy", "consolidateAfter", "budgets"},
}


class UnmappedFields(msgspec.Struct, frozen=True):
    """Settings without a field, as in the live spec."""

    fields: dict[str, Plain] = {}  # by path: the constants above
    instead: dict[str, Any] = {}  # fields of a GpuPool whose values it cannot hold
    labels: dict[str, str] = {}
    given: dict[str, str] = {}  # of the two labels that each template sets, those with another value
    taints: tuple[Plain, ...] = ()
    requirements: tuple[Plain, ...] = ()
    limits: Plain = {}
    budgets: tuple[Plain, ...] = ()
    no_budgets: bool = False  # an empty list of budgets: no limit

    @property
    def anything(self) -> bool:
        """Whether the default template is not sufficient."""
        return self != UnmappedFields()


class Portion(msgspec.Struct, frozen=True):
    """The two parts."""

    said: Plain  # fields of a GpuPool
    kept: UnmappedFields
    follows_instance_types: bool = True  # the NodePool requires exactly the types in the field
    follows_capacity_types: bool = True


def portion(spec: Plain, can_be: Sequence[str], model: str) -> Portion:
    """Splits a live spec; `can_be` are the instance types listed by its GpuPool, `model` is the model of its GPUs."""
    template, disruption = spec["template"], spec["disruption"]
    node = template["spec"]
    said: Plain = {"nodeClassRef": {name: node["nodeClassRef"].get(name) for name in ("group", "kind", "name")}}
    kept: Plain = {"fields": _others(spec), "instead": {}}
    followed = _split_requirements(node["requirements"], can_be, said, kept)
    given = {names.GPU_TYPE: model, names.MANAGED: "true"}
    labels = template["metadata"]["labels"]
    kept["given"] = {key: labels[key] for key in given if labels.get(key, given[key]) != given[key]}
    said["labels"], kept["labels"] = _parted_map("labels", {key: labels[key] for key in labels if key not in given})
    said["taints"], kept["taints"] = parted(plain_taints(node["taints"]), lambda each: can_say("taints", each))
    _wholly("startupTaints", plain_taints(node["startupTaints"]), said, kept)
    _wholly("annotations", template["metadata"]["annotations"], said, kept)
    _wholly("weight", spec.get("weight"), said, kept)
    said["limits"], kept["limits"] = _parted_map("limits", spec["limits"])
    _measures(node, said, kept)
    _disruption(disruption, said, kept)
    for name in ("taints", "requirements", "budgets"):
        kept[name] = tuple(kept.get(name, ()))
    said = {name: value for name, value in said.items() if value not in ([], {}, None)}
    return Portion(said, UnmappedFields(**kept), *followed)


def instance_type_requirement(spec: Plain) -> Plain | None:
    """The requirement by which a NodePool names its instance types, if any."""
    return _naming(spec["template"]["spec"]["requirements"], names.INSTANCE_TYPE)


def _others(spec: Plain) -> dict[str, Plain]:
    template = spec["template"]
    places: dict[str, Plain] = {
        SPEC: spec,
        TEMPLATE: template,
        METADATA: template["metadata"],
        NODE: template["spec"],
        CLASS: template["spec"]["nodeClassRef"],
        DISRUPTION: spec["disruption"],
    }
    found = {
        place: {name: value for name, value in fields.items() if name not in _FIELDS[place] and value not in ([], {})}
        for place, fields in places.items()
    }
    return {place: fields for place, fields in found.items() if fields}


def _wholly(field: str, value: Any, said: Plain, kept: Plain) -> None:
    """A field of both, which a GpuPool sets completely or not at all."""
    if value in ([], {}, None):
        return
    if can_say(field, value):
        said[field] = value
    else:
        kept["fields"].setdefault(_PLACES[field], {})[field] = value


def plain_taints(taints: Sequence[Plain]) -> list[Plain]:
    """Taints with empty values removed, which are equivalent to absent ones."""
    return [{name: value for name, value in each.items() if (name, value) != ("value", "")} for each in taints]


def _split_requirements(
    requirements: Sequence[Plain], can_be: Sequence[str], said: Plain, kept: Plain
) -> tuple[bool, bool]:
    """Requirements, and which of the fields instanceTypes and capacityTypes the NodePool follows.

    A label that it does not follow is left open by `Exists`, in addition to the NodePool's own requirements.
    """
    left = list(requirements)
    types, capacity = _only(left, names.INSTANCE_TYPE), _only(left, names.CAPACITY_TYPE)
    follows_types = types is not None and types["values"] == list(can_be)
    follows_capacity = capacity is not None and can_say("capacityTypes", capacity["values"])
    if capacity is not None and follows_capacity:
        said["capacityTypes"] = list(capacity["values"])
    followed = [each for each, follows in ((types, follows_types), (capacity, follows_capacity)) if follows]
    left = [each for each in left if not any(each is one for one in followed)]
    keys = ((names.INSTANCE_TYPE, follows_types), (names.CAPACITY_TYPE, follows_capacity))
    opened = [{"key": key, "operator": "Exists"} for key, follows in keys if not follows]
    # In a GpuPool it would leave the label open, and would not be rendered.
    lost = [each for each in left if _leaves_open(each)]
    sayable = [each for each in left if not _leaves_open(each)]
    said["requirements"], kept["requirements"] = parted([*opened, *sayable], _can_say_requirements)
    kept["requirements"] += lost
    return follows_types, follows_capacity


def _leaves_open(requirement: Plain) -> bool:
    is_plain = requirement.get("operator") == "Exists" and "minValues" not in requirement
    return is_plain and requirement.get("key") in {names.INSTANCE_TYPE, names.CAPACITY_TYPE}


def _only(requirements: Sequence[Plain], key: str) -> Plain | None:
    """The only requirement of the key, if it only lists values."""
    found = [each for each in requirements if each.get("key") == key]
    named = _naming(requirements, key)
    return named if len(found) == 1 and named is not None and set(named) == {"key", "operator", "values"} else None


def _naming(requirements: Sequence[Plain], key: str) -> Plain | None:
    """The first requirement that lists values of the key, each once."""
    for each in requirements:
        values = each.get("values")
        if each.get("key") == key and each.get("operator") == "In" and isinstance(values, list):
            return each if values and len(set(map(str, values))) == len(values) else None
    return None


def _parted_map(field: str, values: Mapping[str, Any]) -> tuple[Plain, Plain]:
    inside, outside = parted(sorted(values.items()), lambda each: can_say(field, dict(each)))
    return dict(inside), dict(outside)


def _measures(node: Plain, said: Plain, kept: Plain) -> None:
    for name in ("expireAfter", "terminationGracePeriod"):
        if name in node and not can_say(name, node[name]):
            kept["instead"][name] = node[name]
        elif name in node and (name, node[name]) != ("expireAfter", "Never"):
            said[name] = node[name]


def _disruption(disruption: Plain, said: Plain, kept: Plain) -> None:
    """As in the default template: without budgets, safe ones if consolidation is off, otherwise the usual one."""
    mine: Plain = {}
    for name in ("consolidationPolicy", "consolidateAfter"):
        (mine if can_say("disruption", {name: disruption[name]}) else kept["instead"])[name] = disruption[name]
    budgets = disruption["budgets"]
    # Absent means Never in the template, even if the NodePool has another value.
    quiet = mine.get("consolidateAfter", "Never") == "Never"
    if budgets != (_SAFE_BUDGETS if quiet else _USUAL_BUDGETS):
        # In order: if one cannot be expressed, none of the following is.
        count = next((n for n in range(len(budgets)) if not _can_say_budgets(budgets[: n + 1])), len(budgets))
        mine["budgets"], kept["budgets"] = budgets[:count], budgets[count:]
        kept["no_budgets"] = not budgets
    defaults = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": []}
    said["disruption"] = {name: value for name, value in mine.items() if value != defaults[name]}


def _can_say_requirements(requirements: Sequence[Plain]) -> bool:
    # The default template writes an empty list of values only if the operator requires values.
    usual = all(
        each.get("values") != [] if each.get("operator") in {"Exists", "DoesNotExist"} else "values" in each
        for each in requirements
    )
    return usual and can_say("requirements", requirements)


def _can_say_budgets(budgets: Sequence[Plain]) -> bool:
    # An empty list of reasons means never; a GpuPool treats it as all reasons.
    usual = all(each.get("reasons") != [] and ("schedule" in each) == ("duration" in each) for each in budgets)
    return usual and can_say("disruption", {"budgets": list(budgets)})


# --- What a GpuPool can express, checked with the reader of policies.

T = TypeVar("T")

_NOWHERE = Mark("", 0, 0)
_SMALLEST = {
    "devices": {"model": "a", "count": 1, "memory": "1Gi"},
    "instanceTypes": [{"name": "a"}],
    "nodeClassRef": {"group": "a", "kind": "A", "name": "a"},
}


def can_say(field: str, value: Any) -> bool:
    """Whether the field of a GpuPool's spec may have this value."""
    spec, problems = read_spec(describe(GpuPool), _node({**_SMALLEST, field: value}), _NOWHERE)
    return spec is not None and not problems and all(each.severity != "error" for each in resource_problems(spec))


def parted(items: Iterable[T], fits: Callable[[list[T]], bool]) -> tuple[list[T], list[T]]:
    """Items that fit together, in order, and the others."""
    inside, outside = list(items), list[T]()
    if fits(inside):
        return inside, outside
    everything, inside = inside, []
    for item in everything:
        (inside if fits([*inside, item]) else outside).append(item)
    return inside, outside


def _node(value: Any) -> Node:
    match value:
        case dict():
            return TreeMapping(
                {str(name): MapEntry(_scalar(name), _node(each)) for name, each in value.items()}, _NOWHERE
            )
        case list() | tuple():
            return TreeSequence(tuple(map(_node, value)), _NOWHERE)
    return _scalar(value)


def _scalar(value: Any) -> Scalar:
    return Scalar(value, str(value), _NOWHERE)


# --- A NodePool's spec as Karpenter reads it: with defaults, and with optional lists and maps.

# From Karpenter's definition of a NodePool; an API server fills in defaults, a file may lack them.
_EXPIRES = "720h"
_CONSOLIDATES: Plain = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
_BUDGETS = ({"nodes": "10%"},)


def live_spec(pool: Unstructured) -> Plain:
    """A copy with defaults and without nulls; required lists and maps are always present."""
    spec: Plain = _without_nulls(pool.spec)
    template = _map(spec.pop("template", {}))
    inner = _map(template.pop("spec", {}))
    metadata = _map(template.pop("metadata", {}))
    disruption = {**_CONSOLIDATES, **_map(spec.pop("disruption", {}))}
    disruption.setdefault("budgets", [dict(each) for each in _BUDGETS])
    return {
        **spec,
        "limits": _map(spec.get("limits", {})),
        "template": {
            **template,
            "metadata": {
                **metadata,
                "labels": _map(metadata.get("labels", {})),
                "annotations": _map(metadata.get("annotations", {})),
            },
            "spec": {
                **inner,
                "nodeClassRef": _map(inner.get("nodeClassRef", {})),
                "requirements": _list(inner.get("requirements", ())),
                "taints": _list(inner.get("taints", ())),
                "startupTaints": _list(inner.get("startupTaints", ())),
                "expireAfter": inner.get("expireAfter", _EXPIRES),
            },
        },
        "disruption": disruption | {"budgets": _list(disruption["budgets"])},
    }


def _without_nulls(value: Any) -> Any:
    match value:
        case dict():
            return {str(name): _without_nulls(each) for name, each in value.items() if each is not None}
        case list() | tuple():
            return [_without_nulls(each) for each in value if each is not None]
    return value


def _map(value: Any) -> Plain:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    """Lists of a NodePool contain only maps; values that an API server would refuse are dropped."""
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list | tuple) else []
