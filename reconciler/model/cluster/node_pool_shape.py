"""The shape of what is read of a NodePool's spec, which is kept whole: one of another shape is set aside."""

from typing import Any

import msgspec

from reconciler.model.parsers import Int64


class _NodePoolMetadata(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Taint(msgspec.Struct, rename="camel"):
    key: str = ""
    value: str | None = None
    effect: str = ""
    time_added: str | None = None


class _NodeClassRef(msgspec.Struct):
    group: str | None = None
    kind: str | None = None
    name: str | None = None


class _Requirement(msgspec.Struct, rename="camel"):
    key: str = ""
    operator: str = ""
    values: tuple[str, ...] | None = None
    min_values: Int64 | None = None


class _Nodes(msgspec.Struct, rename="camel"):
    taints: tuple[_Taint, ...] | None = None
    startup_taints: tuple[_Taint, ...] | None = None
    requirements: tuple[_Requirement, ...] | None = None
    node_class_ref: _NodeClassRef | None = None
    termination_grace_period: str | None = None
    expire_after: str | None = None


class _Template(msgspec.Struct):
    metadata: _NodePoolMetadata | None = None
    spec: _Nodes | None = None


class _Budget(msgspec.Struct):
    nodes: str | Int64 | None = None
    schedule: str | None = None
    duration: str | None = None
    reasons: tuple[str, ...] | None = None


class _Disruption(msgspec.Struct, rename="camel"):
    budgets: tuple[_Budget, ...] | None = None
    consolidate_after: str | None = None
    consolidation_policy: str | None = None


class NodePoolShape(msgspec.Struct):
    """Null is what is not written."""

    template: _Template | None = None
    disruption: _Disruption | None = None
    limits: dict[str, str | int | float | None] | None = None
    weight: Int64 | None = None
    replicas: Int64 | None = None


def why_misshapen(spec: Any) -> str:
    """Where the spec of a NodePool has another shape, in the words of msgspec; nothing where it has this one."""
    try:
        msgspec.convert(spec, NodePoolShape | None)
    except msgspec.ValidationError as fault:
        return str(fault)
    return ""
