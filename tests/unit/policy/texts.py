"""Policies for tests, read from what a person would write."""

from typing import Any

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.policy.scaling import DrainPolicy
from reconciler.model.problem import Origin
from reconciler.policy.read import read_spec
from reconciler.policy.shape import describe
from reconciler.policy.tree import Mark
from reconciler.policy.yaml import read

Json = dict[str, Any]


def convert(body: Json, kind: Any) -> Any:
    """A spec as people write it."""
    (node,), unreadable = read("policy.yaml", msgspec.json.encode(body))
    spec, problems = read_spec(describe(kind), node, Mark("policy.yaml", 1, 1))
    assert not unreadable + problems, unreadable + problems
    return spec


def drain_policies(said: dict[str, Json], origin: Origin) -> tuple[Declared[DrainPolicy], ...]:
    """Of all pools, unless they say otherwise; by name."""
    specs = ((name, convert({"poolNames": ["*"], **each}, DrainPolicy)) for name, each in sorted(said.items()))
    return tuple(Declared("DrainPolicy", name, spec, (("", origin),)) for name, spec in specs)
