"""A manifest as it is applied: with the marks of the inventory, and without what would drift an adopted NodePool.

Labels of our own domain in the template of a NodePool that was someone else's would drift every node of it. Those that
its template lacks are left out, now and ever after, and are put on the Node objects instead. So is the startup taint
for nodes that arrive, of any NodePool that lacks it.
"""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Manifest
from reconciler.model.plan.decision import Ref
from reconciler.plan.manifests.compare import Owners, Path, owners_of, same, traits
from reconciler.plan.manifests.context import NODE_POOL


class WantedManifest(msgspec.Struct, frozen=True):
    """What shall stand in the cluster, and on the Node objects."""

    manifest: Manifest
    body: dict[str, Any]
    node_labels: dict[str, str] = {}
    adopted: bool = False  # it was someone else's

    @property
    def text(self) -> str:
        """Canonical JSON."""
        return msgspec.json.encode(self.body, order="sorted").decode()


def ref_of(manifest: Manifest, live: Unstructured | None) -> Ref:
    """The object, with the uid that it has."""
    return Ref(manifest.kind, manifest.namespace, manifest.name, live.metadata.uid if live else "")


def wish_of(manifest: Manifest, live: Unstructured | None, environment: str, adopting: bool = False) -> WantedManifest:
    """What to apply for an environment, given what is there."""
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
    """Takes the labels that would drift out of the template, and returns them."""
    taken = lacking_labels(live, body)
    if taken:
        template = body["spec"]["template"]
        left = {key: value for key, value in template_labels(body["spec"]).items() if key not in taken}
        template["metadata"] = {**template["metadata"], "labels": left}
        if not left:  # to say that there are none would take away those of others
            del template["metadata"]["labels"]
        if not template["metadata"]:
            del template["metadata"]
    return taken


# --- Whether a NodePool of ours was someone else's before: an annotation says so, and what is missing when that was
# lost.
#
# Where the annotation is gone, our labels would go into a template that stands without them, and drift every node. So a
# template that has none of the labels of our domain that are wished counts as adopted, unless someone else took them
# out: a map of labels belongs to whoever wrote it last, so while we own it, it is as we wrote it.

YES = "true"


def was_adopted(live: Unstructured, body: dict[str, Any]) -> bool:
    """Whether our labels are to be kept out of its template."""
    return live.metadata.annotations.get(names.ADOPTED) == YES or _lost_its_mark(live, body)


def lacking_labels(live: Unstructured, body: dict[str, Any]) -> dict[str, str]:
    """The labels of our domain that the manifest has in its template, and the NodePool has not."""
    wished, there = template_labels(body.get("spec")), template_labels(live.spec)
    return {key: wished[key] for key in sorted(wished) if key.startswith(names.OURS) and key not in there}


def template_labels(spec: Any) -> dict[str, str]:
    """Of the nodes that a NodePool makes."""
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
    if has_ours:  # together with us, whoever had it before: then all that stands there was there before us
        return owners.ours is not None and bool(owners.others)
    is_all_ours = len(lacking) == len(template_labels(body.get("spec")))
    return owners.ours is not None or not owners.others or is_all_ours


def _owners_of_labels(live: Unstructured) -> Owners:
    owners = owners_of(live)
    for field in ("spec", "template", "metadata", "labels"):
        owners = owners.within(f"f:{field}")
    return owners


# --- The startup taint that holds new nodes back until they can be used: of NodePools that we make, and fixed at that.
#
# To put it into a template that lacks it would drift every node, and so would taking it out. So where a live NodePool
# lacks it, adopted or made before there was such a taint, it is no part of the wish; and one that has it keeps it.

_FIELD = "startupTaints"


def keep_arriving_as_it_is(body: dict[str, Any], live: Unstructured) -> None:
    """Takes it out of what is wished of a NodePool that stands without it, and puts it in where it stands with it."""
    wished, there = _node(body.get("spec")), _node(live.spec)
    kept = [each for each in there.get(_FIELD) or () if _is_arriving(each)]
    left = [each for each in wished.get(_FIELD) or () if not _is_arriving(each)]
    if kept:
        is_wished = len(left) < len(wished.get(_FIELD) or ())
        wished[_FIELD] = wished[_FIELD] if is_wished else [*left, *kept]
    elif left:
        wished[_FIELD] = left
    elif wished.get(_FIELD):  # to say that there are none would take away those of others
        del wished[_FIELD]


def _is_arriving(taint: Any) -> bool:
    return isinstance(taint, dict) and (taint.get("key"), taint.get("effect")) == (names.ARRIVING, "NoSchedule")


def _node(spec: Any) -> dict[str, Any]:
    return ((spec or {}).get("template") or {}).get("spec") or {}


# --- What is wished, written as it stands wherever that means the same.
#
# The API server compares texts: 43200m sent where somebody else set 720h is a conflict with that somebody, and where
# nobody did it would be an edit that changes nothing.

_APART = frozenset({"apiVersion", "kind", "metadata"})


def as_it_stands(body: dict[str, Any], live: Unstructured) -> dict[str, Any]:
    """The manifest, in the spelling of the object that is there."""
    drops_empty = traits(live.kind).drops_empty
    return {
        name: wished if name in _APART else _spelled(live.rest.get(name), wished, (name,), drops_empty)
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
