"""The policies of one environment as custom resources, each saying which bundle it is part of and how large that is."""

from hashlib import sha256
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.desired import Declared, Desired
from reconciler.policy.defaults import plainly, with_item_defaults
from reconciler.policy.kind import API_VERSION, Kind
from reconciler.policy.rules.kinds import kind_named

Document = dict[str, Any]


class CustomResource(msgspec.Struct, frozen=True):
    """The object, and what it was declared as."""

    document: Document
    declared: Declared[Any]


def custom_resources(wish: Desired) -> tuple[CustomResource, ...]:
    """By kind and name. Labels and annotations of the policies come along.

    The field `bundle` repeats the digest, because a change of an annotation is no new generation of an object: a status
    of the bundle before would pass for a status of this bundle, at Flux for example.
    """
    digest = digest_of(wish)
    notes = {
        names.BUNDLE_DIGEST: digest,
        names.BUNDLE_COUNT: str(len(wish.declared)),
        names.BUNDLE_REVISION: wish.revision,
        names.ENVIRONMENT: wish.environment,
    }
    following = (*wish.declared[1:], *wish.declared[:1])
    found = []
    for each, after in zip(wish.declared, following, strict=True):
        annotations = {**dict(each.annotations), **notes, names.BUNDLE_NEXT: f"{after.kind}/{after.name}"}
        labels = {"labels": dict(each.labels)} if each.labels else {}
        metadata = {"name": each.name, **labels, "annotations": annotations}
        document = {
            "apiVersion": API_VERSION,
            "kind": each.kind,
            "metadata": metadata,
            "bundle": digest,
            "spec": with_item_defaults(_kind(each).shape, each.spec),
        }
        found.append(CustomResource(document, each))
    return tuple(found)


def digest_of(wish: Desired) -> str:
    """The revision is part of it: whatever is applied belongs to one commit or another."""
    content = (wish.revision, wish.environment, [_document(each) for each in wish.declared])
    return f"sha256:{sha256(msgspec.json.encode(content, order='sorted')).hexdigest()}"


def _document(declared: Declared[Any]) -> Document:
    """Only values that differ from the defaults, so that a new default of a later version keeps the digest."""
    spec = plainly(_kind(declared).shape, declared.spec)
    return {"apiVersion": API_VERSION, "kind": declared.kind, "metadata": {"name": declared.name}, "spec": spec}


def _kind(declared: Declared[Any]) -> Kind:
    kind = kind_named(declared.kind)
    if kind is None:
        raise AssertionError(f"{declared.kind} was declared, and there is no such kind")
    return kind
