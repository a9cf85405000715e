"""Computes the annotation karpenter.sh/nodepool-hash, version v3.

A claim has the hash of the template it was created from; if its NodePool has another hash, the claim is drifted. The
hash covers the template except its requirements. Parts and names are those of Karpenter's own types.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

import msgspec

from reconciler.model.cluster.node import EXPIRES_AFTER, NodeClaimTemplate, TemplateClass, TemplateTaint
from reconciler.plan.karpenter.budgets import nanoseconds, nanoseconds_unless_never

# --- Karpenter's hash of structures, rebuilt from simple rules.
#
# Everything ends in FNV-1, 64 bits. A text is hashed by its bytes, a number by its eight bytes, lowest first; two
# hashes in order are hashed as two numbers. Unordered values are XORed: entries of a map (key and value in order),
# items of a list. A structure starts with the hash of its type's name; each field XORs the hash of its name and value
# in order. XOR alone would let equal parts in different places cancel out, so maps are hashed once more at their end,
# and structures after every field: therefore the order of a structure's fields matters. A list gets no such end: a list
# with the same item twice hashes like an empty one. Fields with Go's zero value are left out; an empty map or list is
# not zero, only an absent one.

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = 0xFFFFFFFFFFFFFFFF


def octets(content: bytes) -> int:
    """FNV-1 of bytes."""
    result = _OFFSET
    for octet in content:
        result = (result * _PRIME & _MASK) ^ octet
    return result


@lru_cache(maxsize=4096)
def text(written: str) -> int:
    return octets(written.encode())


def number(value: int) -> int:
    """Hash of a signed 64-bit number."""
    return octets((value & _MASK).to_bytes(8, "little"))


def mapping(entries: Mapping[str, str]) -> int:
    found = 0
    for key, value in entries.items():
        found ^= _in_order(text(key), text(value))
    return number(found)


def unordered(items: Iterable[int]) -> int:
    """Hash of a list, from the hashes of its items."""
    result = 0
    for item in items:
        result ^= item
    return result


def structure(type_name: str, fields: Iterable[tuple[str, int | None]]) -> int:
    """Hash of a structure, from the hashes of its fields in declaration order; None is left out."""
    result = text(type_name)
    for name, value in fields:
        if value is not None:
            result = number(result ^ _in_order(text(name), value))
    return result


def _in_order(first: int, second: int) -> int:
    return octets(first.to_bytes(8, "little") + second.to_bytes(8, "little"))


def read_template(written: Mapping[str, Any]) -> NodeClaimTemplate:
    """Parses `spec.template`. Raises ValueError with a sentence if the API server would refuse it."""
    try:
        return msgspec.convert(written, NodeClaimTemplate)
    except msgspec.ValidationError as refused:
        raise ValueError(f"spec.template is not valid for Karpenter: {refused}") from None


HASH_VERSION = "v3"

# Paths below `template`, in the field order of Karpenter's types, which matters.
_METADATA = (("metadata.labels", "Labels"), ("metadata.annotations", "Annotations"))
_SPEC = (
    ("spec.taints", "Taints"),
    ("spec.startupTaints", "StartupTaints"),
    ("spec.nodeClassRef", "NodeClassRef"),
    ("spec.terminationGracePeriod", "TerminationGracePeriod"),
    ("spec.expireAfter", "ExpireAfter"),
)
HASHED_PATHS = tuple(path for path, _ in (*_METADATA, *_SPEC))

_MOMENT = re.compile(r"(.{19})(?:[.,]([0-9]+))?(.*)")
_FIRST_MOMENT = datetime(1, 1, 1, tzinfo=UTC)


def template_hash(template: Mapping[str, Any]) -> str:
    """Hash of `spec.template`. Raises ValueError with a sentence if the API server would refuse it."""
    read = read_template(template)
    parts = _part_hashes(read)
    metadata = _of_parts("ObjectMeta", _METADATA, parts)
    # Requirements are not hashed; but a spec with only requirements is not zero.
    spec = _of_parts("NodeClaimTemplateSpec", _SPEC, parts, kept=read.spec.requirements is not None)
    return str(structure("NodeClaimTemplate", (("ObjectMeta", metadata), ("Spec", spec))))


def field_hashes(template: Mapping[str, Any]) -> dict[str, int]:
    """Contribution of each field, by path below `template`; zero fields are missing."""
    return _part_hashes(read_template(template))


def _of_parts(
    type_name: str, names: Sequence[tuple[str, str]], parts: Mapping[str, int], kept: bool = False
) -> int | None:
    if not kept and not any(path in parts for path, _ in names):
        return None
    return structure(type_name, ((name, parts.get(path)) for path, name in names))


def _part_hashes(template: NodeClaimTemplate) -> dict[str, int]:
    metadata, spec = template.metadata, template.spec
    found = {
        "metadata.labels": _entries(metadata.labels),
        "metadata.annotations": _entries(metadata.annotations),
        "spec.taints": _taints(spec.taints),
        "spec.startupTaints": _taints(spec.startup_taints),
        "spec.nodeClassRef": _class(spec.node_class_ref),
        "spec.terminationGracePeriod": _grace(spec.termination_grace_period),
        "spec.expireAfter": _expiry(spec.expire_after),
    }
    return {path: value for path, value in found.items() if value is not None}


def _entries(written: Mapping[str, str] | None) -> int | None:
    return None if written is None else mapping(written)


def _taints(written: Sequence[TemplateTaint] | None) -> int | None:
    return None if written is None else unordered(_taint(each) for each in written)


def _taint(taint: TemplateTaint) -> int:
    fields = (
        ("Key", _text(taint.key)),
        ("Value", _text(taint.value)),
        ("Effect", _text(taint.effect)),
        ("TimeAdded", _moment(taint.time_added)),
    )
    return structure("Taint", fields)


def _class(written: TemplateClass | None) -> int | None:
    if written is None:
        return None
    fields = (("Kind", _text(written.kind)), ("Name", _text(written.name)), ("Group", _text(written.group)))
    return structure("NodeClassReference", fields)


def _grace(written: str | None) -> int | None:
    if written is None:
        return None
    length = nanoseconds(written)
    return structure("Duration", (("Duration", number(length) if length else None),))


def _expiry(written: str | None) -> int | None:
    """Never is left out; an absent value is not, unlike for the grace period."""
    length = nanoseconds_unless_never(written or EXPIRES_AFTER)
    return None if length is None else structure("NillableDuration", (("Duration", number(length)),))


def _text(written: str | None) -> int | None:
    return text(written) if written else None


def _moment(written: str | None) -> int | None:
    """A time in Go's binary form, in the time zone of Karpenter's process: UTC in its image."""
    if written is None:
        return None
    parts = _MOMENT.fullmatch(written)
    try:
        whole = datetime.fromisoformat(f"{parts[1]}{parts[3]}") if parts else None
    except ValueError:
        whole = None
    if parts is None or whole is None or whole.tzinfo is None:
        raise ValueError(f'timeAdded: expected a time such as 2026-11-02T08:00:00Z, got "{written}"')
    seconds = (whole - _FIRST_MOMENT) // timedelta(seconds=1)
    nanos = int((parts[2] or "0")[:9].ljust(9, "0"))
    version, offset_minutes = 1, 0
    binary = b"".join(
        (
            version.to_bytes(1, "big"),
            seconds.to_bytes(8, "big", signed=True),
            nanos.to_bytes(4, "big"),
            offset_minutes.to_bytes(2, "big"),
        )
    )
    return structure("Time", (("Time", octets(binary)),))
