"""The policies of one environment as custom resources, each saying which bundle it is part of and how large that is."""

from hashlib import sha256
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.desired import Declared, Desired
from reconciler.policy.kind import API_VERSION
from reconciler.policy.kinds import kind_named
from reconciler.policy.published.defaults import plainly

Document = dict[str, Any]


class CustomResource(msgspec.Struct, frozen=True):
    """The object, and what it was declared as."""

    document: Document
    declared: Declared[Any]


def custom_resources(wish: Desired) -> tuple[CustomResource, ...]:
    """By kind and name."""
    objects = [(each, _document(each)) for each in wish.declared]
    annotations = {
        names.BUNDLE_DIGEST: digest_of(wish),
        names.BUNDLE_COUNT: str(len(objects)),
        names.BUNDLE_REVISION: wish.revision,
        names.ENVIRONMENT: wish.environment,
    }
    return tuple(
        CustomResource({**document, "metadata": {"name": each.name, "annotations": annotations}}, each)
        for each, document in objects
    )


def digest_of(wish: Desired) -> str:
    """The revision is part of it: whatever is applied belongs to one commit or another."""
    told = (wish.revision, wish.environment, [_document(each) for each in wish.declared])
    return f"sha256:{sha256(msgspec.json.encode(told, order='sorted')).hexdigest()}"


def _document(declared: Declared[Any]) -> Document:
    """Only what the defaults don't say: the definitions fill those in."""
    kind = kind_named(declared.kind)
    if kind is None:
        raise AssertionError(f"{declared.kind} was declared, and there is no such kind")
    spec = plainly(kind.shape, declared.spec)
    return {"apiVersion": API_VERSION, "kind": declared.kind, "metadata": {"name": declared.name}, "spec": spec}
