"""JSON merge patches for actions, sent with the resourceVersion that was read.

A merge patch replaces lists as a whole. That is correct here: the API server treats taints as one value anyway, and
with the resourceVersion no taint, gate or container of others can get lost.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.plan.decision import Annotate, Label, Resize, Taint, Ungate
from reconciler.model.quantity import Quantity
from reconciler.protocol.preconditions import Object

Editing = Taint | Label | Annotate | Ungate | Resize


class MergePatch(msgspec.Struct, frozen=True):
    patch: Object
    subresource: str = ""


def edit_of(act: Editing, found: Object) -> MergePatch | None:
    """The patch of an action; None if the object is already in the desired state."""
    match act:
        case Taint():
            return _tainted(act, found)
        case Label(labels=texts):
            return _texts("labels", texts, found)
        case Annotate(annotations=texts):
            return _texts("annotations", texts, found)
        case Ungate(gate=gate):
            return _ungated(gate, found)
        case Resize():
            return _resized(act, found)


def merged(value: Any, patch: Any) -> Any:
    """Result of a merge patch (RFC 7396); the arguments do not change."""
    if not isinstance(patch, dict):
        return patch
    before = value if isinstance(value, dict) else {}
    kept = {key: each for key, each in before.items() if key not in patch}
    return kept | {key: merged(before.get(key), each) for key, each in patch.items() if each is not None}


def _tainted(act: Taint, found: Object) -> MergePatch | None:
    """Sets or removes taints, identified by key and effect; other taints keep their order."""
    before: list[Object] = found.get("spec", {}).get("taints") or []
    effects = {act.effect, act.instead_of}
    own = [each for each in before if each["key"] == act.key and each["effect"] in effects]
    wished = [] if act.value is None else [_taint(act.key, act.value, act.effect)]
    patch: Object = {}
    if [_taint(each["key"], each.get("value", ""), each["effect"]) for each in own] != wished:
        others = [each for each in before if each not in own]
        patch["spec"] = {"taints": [*others, *wished]}
    labels = _texts("labels", act.labels, found)
    return MergePatch(patch | (labels.patch if labels is not None else {})) if patch or labels is not None else None


def _taint(key: str, value: str, effect: str) -> Object:
    return {"key": key, "effect": effect} | ({"value": value} if value else {})


def _texts(field: str, texts: Sequence[tuple[str, str | None]], found: Object) -> MergePatch | None:
    before = found["metadata"].get(field) or {}
    changed = {key: value for key, value in texts if before.get(key) != value}
    return MergePatch({"metadata": {field: changed}}) if changed else None


def _ungated(gate: str, found: Object) -> MergePatch | None:
    before: list[Object] = found.get("spec", {}).get("schedulingGates") or []
    left = [each for each in before if each["name"] != gate]
    if len(left) == len(before):
        return None
    patch: Object = {"spec": {"schedulingGates": left}}
    if names.WAITS_FOR in (found["metadata"].get("annotations") or {}):  # the pod no longer waits
        patch["metadata"] = {"annotations": {names.WAITS_FOR: None}}
    return MergePatch(patch)


def _resized(act: Resize, found: Object) -> MergePatch | None:
    """Changes the requests of the first container. A limit equal to the request changes too, because the QoS class of a
    pod is immutable."""
    first, *others = found["spec"]["containers"]
    resources = first.get("resources") or {}
    requests, limits = resources.get("requests") or {}, resources.get("limits") or {}
    wished: Object = {"requests": dict(requests), "limits": dict(limits)}
    for name, milli in act.resources:
        before = requests.get(name)
        if before is not None and Quantity.parse(before).milli == milli:
            continue
        wished["requests"][name] = str(Quantity(milli, binary=name == "memory"))
        if name in limits and limits[name] == before:
            wished["limits"][name] = wished["requests"][name]
    if wished == {"requests": requests, "limits": limits}:
        return None
    return MergePatch({"spec": {"containers": [{**first, "resources": {**resources, **wished}}, *others]}}, "resize")


# --- Text of a conflict over fields: which manager set which field, so that a person knows whom to contact.


def conflict(fields: Iterable[tuple[str, str]]) -> str:
    """Text for field managers, and the fields that each set."""
    pairs = sorted(set(fields))
    owners = sorted({owner for owner, _ in pairs})
    each = (f"{owner} set {', '.join(field for by, field in pairs if by == owner)}" for owner in owners)
    return f"the field manager {'; '.join(each)} to other values, and reconciler does not force changes"
