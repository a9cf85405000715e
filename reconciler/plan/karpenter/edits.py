"""Which fields of a NodePool are edited such that nodes may drift, and what an edit of each field does.

A difference in words is no edit: order within a list, 60m for 1h, an expireAfter that says what holds anyway. One
that looks like none is: an empty list or mapping is hashed otherwise than one that was never written.
"""

from collections.abc import Mapping
from typing import Any, Literal

from reconciler.plan.karpenter.requirements import demands
from reconciler.plan.karpenter.template import read_template
from reconciler.plan.karpenter.template_hash import HASHED_PATHS, field_hashes

REQUIREMENTS = "template.spec.requirements"

Effect = Literal["in place", "drifts all", "drifts what no longer matches"]

# By the path below spec; the first that is its beginning.
EFFECTS: tuple[tuple[str, Effect], ...] = (
    (REQUIREMENTS, "drifts what no longer matches"),
    ("template", "drifts all"),
    ("", "in place"),
)


def effect_of(path: str) -> Effect:
    """What an edit of this field does, provided that it is one: see `which_fields`."""
    return next(effect for beginning, effect in EFFECTS if _is_within(path, beginning))


def which_fields(before_spec: Mapping[str, Any], after_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths below spec of the fields whose edit drifts nodes, all or some, sorted."""
    before, after = _template(before_spec), _template(after_spec)
    try:
        hashes = field_hashes(before), field_hashes(after)
        required = _demands(before), _demands(after)
    except ValueError:
        # Not what Karpenter 1.14 reads: then every difference counts.
        hashes = _written(before), _written(after)
        required = _at(before, "spec.requirements"), _at(after, "spec.requirements")
    names = [f"template.{path}" for path in HASHED_PATHS if hashes[0].get(path) != hashes[1].get(path)]
    if required[0] != required[1]:
        names.append(REQUIREMENTS)
    return tuple(sorted(names))


def _is_within(path: str, beginning: str) -> bool:
    return not beginning or path == beginning or path.startswith((f"{beginning}.", f"{beginning}["))


def _template(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    found = spec.get("template")
    return found if isinstance(found, Mapping) else {}


def _demands(template: Mapping[str, Any]) -> Any:
    return demands(read_template(template).spec.requirements or ())


def _written(template: Mapping[str, Any]) -> dict[str, Any]:
    return {path: _at(template, path) for path in HASHED_PATHS}


def _at(template: Mapping[str, Any], path: str) -> Any:
    part, key = path.split(".")
    found = template.get(part)
    return found.get(key) if isinstance(found, Mapping) else None
