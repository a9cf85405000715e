"""The number that Karpenter writes into the annotation karpenter.sh/nodepool-hash, version v3.

A claim bears the number of the template it was made from; where its NodePool bears another, it is drifted. All of a
template is hashed but its requirements. The parts and their names are those of Karpenter's own types.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from reconciler.plan.karpenter import structure_hash as hashed
from reconciler.plan.karpenter.durations import nanoseconds, nanoseconds_unless_never
from reconciler.plan.karpenter.template import (
    EXPIRES_AFTER,
    NodeClaimTemplate,
    TemplateClass,
    TemplateTaint,
    read_template,
)

HASH_VERSION = "v3"

# Paths below `template`, in the order of the fields of Karpenter's types, which counts.
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
    """Of `spec.template`. Raises ValueError with a sentence where the API server would refuse it."""
    read = read_template(template)
    parts = _part_hashes(read)
    metadata = _of_parts("ObjectMeta", _METADATA, parts)
    # Requirements are not hashed; but a spec with nothing but requirements is not left out as one with nothing is.
    spec = _of_parts("NodeClaimTemplateSpec", _SPEC, parts, kept=read.spec.requirements is not None)
    return str(hashed.structure("NodeClaimTemplate", (("ObjectMeta", metadata), ("Spec", spec))))


def field_hashes(template: Mapping[str, Any]) -> dict[str, int]:
    """What each field adds, by its path below `template`; those that are left out are missing."""
    return _part_hashes(read_template(template))


def _of_parts(
    type_name: str, names: Sequence[tuple[str, str]], parts: Mapping[str, int], kept: bool = False
) -> int | None:
    if not kept and not any(path in parts for path, _ in names):
        return None
    return hashed.structure(type_name, ((name, parts.get(path)) for path, name in names))


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
    return None if written is None else hashed.mapping(written)


def _taints(written: Sequence[TemplateTaint] | None) -> int | None:
    return None if written is None else hashed.unordered(_taint(each) for each in written)


def _taint(taint: TemplateTaint) -> int:
    fields = (
        ("Key", _text(taint.key)),
        ("Value", _text(taint.value)),
        ("Effect", _text(taint.effect)),
        ("TimeAdded", _moment(taint.time_added)),
    )
    return hashed.structure("Taint", fields)


def _class(written: TemplateClass | None) -> int | None:
    if written is None:
        return None
    fields = (("Kind", _text(written.kind)), ("Name", _text(written.name)), ("Group", _text(written.group)))
    return hashed.structure("NodeClassReference", fields)


def _grace(written: str | None) -> int | None:
    if written is None:
        return None
    length = nanoseconds(written)
    return hashed.structure("Duration", (("Duration", hashed.number(length) if length else None),))


def _expiry(written: str | None) -> int | None:
    """Never is left out; no time at all, unlike with the grace period, is not."""
    length = nanoseconds_unless_never(written or EXPIRES_AFTER)
    return None if length is None else hashed.structure("NillableDuration", (("Duration", hashed.number(length)),))


def _text(written: str | None) -> int | None:
    return hashed.text(written) if written else None


def _moment(written: str | None) -> int | None:
    """A time as Go keeps it in binary, in the zone of Karpenter's process: that is UTC in its image."""
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
    return hashed.structure("Time", (("Time", hashed.octets(binary)),))
