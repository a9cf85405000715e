"""The manifest to apply: with labels of the inventory, and without fields that would drift an adopted NodePool.

Labels of our domain in the template of an adopted NodePool would drift all its nodes. Labels that its template lacks
are omitted permanently, and are set on the Node objects instead. The same applies to the startup taint for arriving
nodes, for any NodePool that lacks it.
"""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Manifest
from reconciler.model.plan.decision import Ref
from reconciler.plan.manifests.compare import HEAD, Owners, Path, owners_of, same, traits
from reconciler.plan.manifests.context import NODE_POOL


class WantedManifest(msgspec.Struct, frozen=True):
    """Desired state in the cluster, and on the Node objects."""

    manifest: Manifest
    body: dict[str, Any]
    node_labels: dict[str, str] = {}
    adopted: bool = False  # it belonged to someone else

    @property
    def text(self) -> str:
        """Canonical JSON."""
        return msgspec.json.encode(self.body, order="sorted").decode()


def ref_of(manifest: Manifest, live: Unstructured | None) -> Ref:
    """Reference to the object, with its uid if it exists."""
    return Ref(manifest.kind, manifest.namespace, manifest.name, live.metadata.uid if live else "")


def wish_of(manifest: Manifest, live: Unstructured | None, environment: str, adopting: bool = False) -> WantedManifest:
    """What to apply for an environment, given the live object."""
    body = msgspec.json.decode(manifest.body)
    metadata = body["metadata"]
    metadata["labels"] = {**metadata.get("labels", {}), names.MANAGED: YES}
    if manifest.pool:
        metadata["labels"][names.POOL] = manifest.pool
    metadata["annotations"] = {**metadata.get("annotations", {}), names.ENVIRONMENT: environment}
    if live is None:
        return WantedManifest(manifest, body)
    if manifest.kind == NODE_POOL:
        keep_arriving_as_it_is(body, live)
    if manifest.kind != NODE_POOL or not (adopting or was_adopted(live, body)):
        return WantedManifest(manifest, as_it_stands(body, live))
    metadata["annotations"][names.ADOPTED] = YES
    taken_out = _taken_out(body, live)
    return WantedManifest(manifest, as_it_stands(body, live), taken_out, adopted=True)


def _taken_out(body: dict[str, Any], live: Unstructured) -> dict[str, str]:
    """Removes the labels that would drift nodes from the template, and returns them."""
    taken = lacking_labels(live, body)
    if taken:
        template = body["spec"]["template"]
        left = {key: value for key, value in template_labels(body["spec"]).items() if key not in taken}
        template["metadata"] = {**template["metadata"], "labels": left}
        if not left:  # an empty map would remove labels of others
            del template["metadata"]["labels"]
        if not template["metadata"]:
            del template["metadata"]
    return taken


# --- Whether a NodePool of ours was adopted: by an annotation, or by missing labels if the annotation was lost.
#
# Without the annotation, our labels would be added to a template that lacks them, and drift all its nodes. Therefore a
# template without any of our desired labels counts as adopted, unless someone else removed them: the last writer owns a
# map of labels, so while we own the map, it is as we wrote it.

YES = "true"


def was_adopted(live: Unstructured, body: dict[str, Any]) -> bool:
    """Whether our labels must stay out of its template."""
    return live.metadata.annotations.get(names.ADOPTED) == YES or _lost_its_mark(live, body)


def lacking_labels(live: Unstructured, body: dict[str, Any]) -> dict[str, str]:
    """Labels of our domain that the manifest has in its template and the NodePool lacks."""
    wished, there = template_labels(body.get("spec")), template_labels(live.spec)
    return {key: wished[key] for key in sorted(wished) if key.startswith(names.OURS) and key not in there}


def template_labels(spec: Any) -> dict[str, str]:
    """Labels of new nodes of a NodePool."""
    template = (spec or {}).get("template") or {}
    return (template.get("metadata") or {}).get("labels") or {}


def _lost_its_mark(live: Unstructured, body: dict[str, Any]) -> bool:
    lacking = lacking_labels(live, body)
    if not live.is_ours or not lacking:
        return False
    has_ours = any(key.startswith(names.OURS) for key in template_labels(live.spec))
    if not live.metadata.managed_fields:
        return not has_ours
    owners = _owners_of_labels(live)
    if has_ours:  # shared with the former owner: everything in it existed before us
        return owners.ours is not None and bool(owners.others)
    is_all_ours = len(lacking) == len(template_labels(body.get("spec")))
    return owners.ours is not None or not owners.others or is_all_ours


def _owners_of_labels(live: Unstructured) -> Owners:
    owners = owners_of(live)
    for field in ("spec", "template", "metadata", "labels"):
        owners = owners.within(f"f:{field}")
    return owners


# --- Startup taint that protects new nodes until they are usable: set when reconciler creates a NodePool, and never
# changed.
#
# Adding the taint to a template, or removing it, would drift all its nodes. So a live NodePool without it, adopted or
# created before the taint existed, never gets it; one with the taint keeps it.

_FIELD = "startupTaints"


def keep_arriving_as_it_is(body: dict[str, Any], live: Unstructured) -> None:
    """Removes the taint from the manifest if the live NodePool lacks it, and adds it if the live NodePool has it."""
    wished, there = _node(body.get("spec")), _node(live.spec)
    kept = [each for each in there.get(_FIELD) or () if _is_arriving(each)]
    left = [each for each in wished.get(_FIELD) or () if not _is_arriving(each)]
    if kept:
        is_wished = len(left) < len(wished.get(_FIELD) or ())
        wished[_FIELD] = wished[_FIELD] if is_wished else [*left, *kept]
    elif left:
        wished[_FIELD] = left
    elif wished.get(_FIELD):  # an empty list would remove taints of others
        del wished[_FIELD]


def _is_arriving(taint: Any) -> bool:
    return isinstance(taint, dict) and (taint.get("key"), taint.get("effect")) == (names.ARRIVING, "NoSchedule")


def _node(spec: Any) -> dict[str, Any]:
    return ((spec or {}).get("template") or {}).get("spec") or {}


# --- Manifest in the spelling of the live object, for equal values.
#
# The API server compares texts: sending 43200m when another manager set 720h is a conflict, and otherwise it would be
# an edit without effect.


def as_it_stands(body: dict[str, Any], live: Unstructured) -> dict[str, Any]:
    """The manifest in the spelling of the live object."""
    drops_empty = traits(live.kind).drops_empty
    return {
        name: wished if name in HEAD else _spelled(live.rest.get(name), wished, (name,), drops_empty)
        for name, wished in body.items()
    }


def _spelled(live: Any, wished: Any, path: Path, drops_empty: bool) -> Any:
    if live is None or live == wished:
        return wished
    if same(live, wished, path, drops_empty):
        return live
    if not isinstance(live, dict) or not isinstance(wished, dict):
        return wished
    return {key: _spelled(live.get(key), each, (*path, key), drops_empty) for key, each in wished.items()}
