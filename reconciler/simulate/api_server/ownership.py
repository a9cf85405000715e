"""Who set which field, kept as the API server keeps it: managedFields, an entry for each manager and way of writing.

A field belongs to whoever set it last; by server-side apply several may set the same to the same. Lists count as one
value each: Kubernetes takes some of them apart by keys, and for what is rendered here that makes no difference.
"""

from typing import Any

from reconciler.plan.manifests.kind_traits import traits
from reconciler.protocol.preconditions import Object

Tree = dict[str, Any]
Entries = list[Object]

# Of metadata, only these have owners.
_OWNED_METADATA = ("labels", "annotations")


def fields_of(body: Object) -> Tree:
    """All fields that a manifest sets."""
    return _tree(_owned(body), (), traits(body["kind"]).atomic_maps)


def changed_fields(before: Object, after: Object) -> Tree:
    """Those that differ."""
    return _differing(_owned(before), _owned(after), (), traits(after["kind"]).atomic_maps)


def applied(entries: Entries, mine: Object, changed: Tree) -> Entries:
    """After a server-side apply: the entry `mine` takes the place of what that manager applied before."""
    others = [each for each in entries if not _same_writer(each, mine)]
    return [*_without(others, changed), mine]


def updated(entries: Entries, manager: str, changed: Tree) -> Entries:
    """After a write of another kind: what it changed is that manager's, and no longer anybody else's."""
    if not changed:
        return entries
    mine = entry(manager, "Update", changed)
    before: Tree = next((each["fieldsV1"] for each in entries if _same_writer(each, mine)), {})
    others = [each for each in entries if not _same_writer(each, mine)]
    return [*_without(others, changed), entry(manager, "Update", _union(before, changed))]


def entry(manager: str, operation: str, fields: Tree, subresource: str = "") -> Object:
    """One line of managedFields."""
    managed: Object = {"manager": manager, "operation": operation, "fieldsV1": fields}
    return managed | ({"subresource": subresource} if subresource else {})


def _same_writer(one: Object, other: Object) -> bool:
    return all(one.get(key, "") == other.get(key, "") for key in ("manager", "operation", "subresource"))


def _owned(body: Object) -> Object:
    metadata = {key: body["metadata"][key] for key in _OWNED_METADATA if body["metadata"].get(key)}
    rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata", "status"}}
    return rest | ({"metadata": metadata} if metadata else {})


def _tree(value: Any, path: tuple[str, ...], atomic: frozenset[tuple[str, ...]]) -> Tree:
    if not isinstance(value, dict) or path in atomic:
        return {}
    return {f"f:{key}": _tree(each, (*path, key), atomic) for key, each in value.items()}


def _differing(before: Any, after: Any, path: tuple[str, ...], atomic: frozenset[tuple[str, ...]]) -> Tree:
    if not (isinstance(before, dict) and isinstance(after, dict)) or path in atomic:
        return {}
    keys = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    return {
        f"f:{key}": _differing(before[key], after[key], (*path, key), atomic)
        if key in before and key in after
        else _tree(after.get(key, before.get(key)), (*path, key), atomic)
        for key in keys
    }


def _without(entries: Entries, changed: Tree) -> Entries:
    left = [{**each, "fieldsV1": _minus(each["fieldsV1"], changed)} for each in entries]
    return [each for each in left if each["fieldsV1"]]


def _minus(fields: Tree, gone: Tree) -> Tree:
    left = {}
    for key, within in fields.items():
        if key not in gone:
            left[key] = within
        elif gone[key] and within and (kept := _minus(within, gone[key])):
            left[key] = kept
    return left


def _union(one: Tree, other: Tree) -> Tree:
    return {key: _union(one.get(key, {}), other.get(key, {})) for key in sorted({*one, *other})}
