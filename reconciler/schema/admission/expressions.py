"""The limits of a right as expressions in CEL, one list an operation; all of a list must hold.

Theory of operation. What may not change is not listed: an object is compared field by field with what it was before,
and only the fields that may change are left out of that. So a field that a later Kubernetes adds may not change either.
"""

from collections.abc import Mapping

from reconciler.model.manifest_rules.shape import Fields, ManifestField
from reconciler.model.right import Changes, RightLimits
from reconciler.schema.admission.shapes import TRUE, every, literal, matches

CREATE, UPDATE, DELETE = "CREATE", "UPDATE", "DELETE"
_VERBS: Mapping[str, str] = {"create": CREATE, "update": UPDATE, "patch": UPDATE, "delete": DELETE}

# What the API server itself writes at each change.
_BOOKKEEPING = ("managedFields", "resourceVersion", "generation")
_NO_EVICTION = ("NoSchedule", "PreferNoSchedule")

# Maps and lists that are left out where they are empty.
VARIABLES: Mapping[str, str] = {
    "labels": "object != null && has(object.metadata.labels) ? dyn(object.metadata.labels) : dyn({})",
    "oldLabels": "oldObject != null && has(oldObject.metadata.labels) ? dyn(oldObject.metadata.labels) : dyn({})",
    "annotations": "object != null && has(object.metadata.annotations) ? dyn(object.metadata.annotations) : dyn({})",
    "oldAnnotations": (
        "oldObject != null && has(oldObject.metadata.annotations) ? dyn(oldObject.metadata.annotations) : dyn({})"
    ),
}
TAINTS: Mapping[str, str] = {
    "taints": "object != null && has(object.spec.taints) ? dyn(object.spec.taints) : dyn([])",
    "oldTaints": "oldObject != null && has(oldObject.spec.taints) ? dyn(oldObject.spec.taints) : dyn([])",
}
GATES: Mapping[str, str] = {
    "gates": "object != null && has(object.spec.schedulingGates) ? dyn(object.spec.schedulingGates) : dyn([])",
    "oldGates": (
        "oldObject != null && has(oldObject.spec.schedulingGates) ? dyn(oldObject.spec.schedulingGates) : dyn([])"
    ),
}


def operations(verbs: tuple[str, ...]) -> tuple[str, ...]:
    """What the API server calls them, where something is written; to patch what is not there is to create it."""
    return tuple(sorted({_VERBS[each] for each in verbs if each in _VERBS}))


def variables(limits: list[RightLimits]) -> dict[str, str]:
    """Those that the expressions of these limits name."""
    changes = [each.changes for each in limits if each.changes]
    taints = TAINTS if any(each.taints for each in changes) else {}
    gates = GATES if any(each.gates for each in changes) else {}
    return {**VARIABLES, **taints, **gates}


def allowed(limits: RightLimits, operation: str) -> list[str]:
    """What must hold for a write of an object."""
    names = [_named(limits, operation), *_labelled(limits, operation), *_with_fields(limits, operation)]
    if operation == CREATE and limits.made_as:
        names += _shaped(limits.made_as)
    if operation != DELETE and limits.keeps_as:
        names += _shaped(limits.keeps_as)
    if operation == UPDATE and limits.changes:
        names += _unchanged(limits.changes)
    return [each for each in names if each != TRUE] or [TRUE]


def _named(limits: RightLimits, operation: str) -> str:
    name = "oldObject.metadata.name" if operation == DELETE else "object.metadata.name"
    ways = [
        f"{name}.startsWith({literal(each)})" if each.endswith("-") else f"{name} == {literal(each)}"
        for each in limits.names
    ]
    return " || ".join(ways) or TRUE


def _labelled(limits: RightLimits, operation: str) -> list[str]:
    sides = {CREATE: ("labels",), DELETE: ("oldLabels",)}.get(operation, ("labels", "oldLabels"))
    if limits.adopts and operation == UPDATE:
        sides = ("labels",)
    names = [_label(side, key, value) for side in sides for key, value in limits.labels]
    if limits.any_label and operation != CREATE:
        names.append(" || ".join(f"{literal(key)} in variables.oldLabels" for key in limits.any_label))
    return names


def _label(side: str, key: str, value: str) -> str:
    of = f"variables.{side}"
    return f"{literal(key)} in {of} && {of}[{literal(key)}] == {literal(value)}"


def _with_fields(limits: RightLimits, operation: str) -> list[str]:
    sides = {CREATE: ("object",), DELETE: ("oldObject",)}.get(operation, ("object", "oldObject"))
    return [
        f"{'.'.join((side, *(str(step) for step in path)))} == {literal(value)}"
        for side in sides
        for path, value in limits.fields
    ]


def _shaped(shape: Fields) -> list[str]:
    """One expression a field of the outermost two levels: a cost of its own, and a line of its own in the policy."""
    lines = []
    for entry in shape.entries:
        value = f"dyn(object)[{literal(entry.name)}]"
        if isinstance(entry.shape, Fields):
            names = [each.name for each in entry.shape.entries]
            lines.append(f"{value}.all(k, k in {literal(names)})")
            lines += [_field(value, each) for each in entry.shape.entries]
        else:
            lines.append(_field("dyn(object)", entry))
    return lines


def _field(owner: str, entry: ManifestField) -> str:
    there, matching = f"{literal(entry.name)} in {owner}", matches(entry.shape, f"{owner}[{literal(entry.name)}]", 1)
    if entry.required:
        return every([there, matching])
    return TRUE if matching == TRUE else f"!({there}) || ({matching})"


def _unchanged(changes: Changes) -> list[str]:
    spec = {"taints": changes.taints, "schedulingGates": changes.gates}
    metadata = [*_BOOKKEEPING, "labels", "annotations"]
    names = [
        _same("object", "oldObject", ["apiVersion", "kind", "metadata", "spec"]),
        _same("object.metadata", "oldObject.metadata", metadata),
        _same("object.spec", "oldObject.spec", [name for name, may_change in spec.items() if may_change]),
        *_same_texts("labels", "oldLabels", changes.labels, changes.kept_labels),
        *_same_texts("annotations", "oldAnnotations", changes.annotations, ()),
    ]
    if prefix := literal(changes.taints) if changes.taints else "":
        others = f"filter(t, !t.key.startsWith({prefix}))"
        names += [
            f"variables.taints.{others} == variables.oldTaints.{others}",
            f"variables.taints.all(t, t in variables.oldTaints || t.effect in {literal(list(_NO_EVICTION))})",
        ]
    if prefix := literal(changes.gates) if changes.gates else "":
        names += [
            "variables.gates.all(g, g in variables.oldGates)",
            f"variables.oldGates.all(g, g in variables.gates || g.name.startsWith({prefix}))",
        ]
    return names


def _same(new: str, old: str, left_out: list[str]) -> str:
    """All fields but these are as they were, those of later versions of Kubernetes too."""
    skipped = f"k in {literal(left_out)} || " if left_out else ""
    return (
        f"dyn({new}).all(k, {skipped}(k in dyn({old}) && dyn({new})[k] == dyn({old})[k])) "
        f"&& dyn({old}).all(k, {skipped}k in dyn({new}))"
    )


def _same_texts(new: str, old: str, keys: tuple[str, ...], kept: tuple[str, ...]) -> list[str]:
    """All keys but these are as they were."""
    ways = [f"k.startsWith({literal(key)})" if key.endswith("/") else f"k == {literal(key)}" for key in keys]
    may_change = f"({' || '.join(ways)})" if ways else "false"
    if kept:
        may_change = f"({may_change} && !(k in {literal(list(kept))}))"
    now, before = f"variables.{new}", f"variables.{old}"
    return [
        f"{now}.all(k, {may_change} || (k in {before} && {now}[k] == {before}[k]))",
        f"{before}.all(k, {may_change} || k in {now})",
    ]
