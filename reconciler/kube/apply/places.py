"""Where the API server keeps each kind that is written: all of them are served as v1."""

from collections.abc import Iterable

from reconciler.model.cluster.kinds import SEEN, Seen
from reconciler.model.cluster.whole import Whole
from reconciler.model.planned.action import Ref

# What is written, and never looked at as a kind.
_UNSEEN = (Seen("ConfigMap", "", "configmaps", "", Whole),)


def _by_kind(kinds: Iterable[Seen]) -> dict[str, Seen]:
    found: dict[str, Seen] = {}
    for each in kinds:
        found.setdefault(each.kind, Seen(each.kind, each.group, each.plural, "", Whole, each.namespaced))
    return found


# Each as it is compared: whole.
WRITTEN = _by_kind((*SEEN, *_UNSEEN))


class UnknownKind(ValueError):
    """Nobody taught us to write it."""


def kind_of(ref: Ref) -> Seen:
    """Raises UnknownKind."""
    if ref.kind not in WRITTEN:
        raise UnknownKind(f"{ref.title} is of a kind that is not written: give it a line in SEEN")
    return WRITTEN[ref.kind]


def api_version(seen: Seen) -> str:
    """policy/v1, or v1 for Kubernetes' core."""
    return f"{seen.group}/v1" if seen.group else "v1"


def path_of(ref: Ref, subresource: str = "") -> str:
    """Raises UnknownKind."""
    below = f"/{ref.name}/{subresource}" if subresource else f"/{ref.name}"
    return folder_of(kind_of(ref), ref.namespace) + below


def folder_of(seen: Seen, namespace: str = "") -> str:
    """Where objects of the kind are made."""
    root = f"/apis/{seen.group}/v1" if seen.group else "/api/v1"
    return f"{root}/namespaces/{namespace}/{seen.plural}" if seen.namespaced else f"{root}/{seen.plural}"
