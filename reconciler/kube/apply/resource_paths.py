"""Where the API server keeps each kind that is written: all of them are served as v1.

What is written comes from plans, and plans from files too: each part of a path is checked here, whoever checked it
before.
"""

from collections.abc import Iterable

from reconciler.kube.paths import BadPath, below, folder, folder_in
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.action import Ref

# What is written, and never looked at as a kind.
_UNSEEN = (ResourceKind("ConfigMap", "", "configmaps", "", Unstructured),)


def _by_kind(kinds: Iterable[ResourceKind]) -> dict[str, ResourceKind]:
    resource_kinds: dict[str, ResourceKind] = {}
    for each in kinds:
        resource_kinds.setdefault(
            each.kind, ResourceKind(each.kind, each.group, each.plural, "", Unstructured, each.namespaced)
        )
    return resource_kinds


# Each as it is compared: whole.
WRITTEN = _by_kind((*RESOURCE_KINDS, *_UNSEEN))


class UnknownKind(BadPath):
    """Nobody taught us to write it."""


def kind_of(ref: Ref) -> ResourceKind:
    """Raises UnknownKind."""
    if ref.kind not in WRITTEN:
        raise UnknownKind(f"{ref.title} is of a kind that is not written: give it a line in SEEN")
    return WRITTEN[ref.kind]


def api_version(resource_kind: ResourceKind) -> str:
    """policy/v1, or v1 for Kubernetes' core."""
    return f"{resource_kind.group}/v1" if resource_kind.group else "v1"


def path_of(ref: Ref, subresource: str = "") -> str:
    """Raises BadPath, of which UnknownKind is one."""
    return below(folder_of(kind_of(ref), ref.namespace), ref.name, subresource)


def folder_of(resource_kind: ResourceKind, namespace: str = "") -> str:
    """Where objects of the kind are made. Raises BadPath."""
    return (
        folder_in(namespace, resource_kind.group, resource_kind.plural)
        if resource_kind.namespaced
        else folder(resource_kind.group, resource_kind.plural)
    )
