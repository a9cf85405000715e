"""What is wished, written as it stands wherever that means the same.

The API server compares texts: 43200m sent where somebody else set 720h is a conflict with that somebody, and where
nobody did it would be an edit that changes nothing.
"""

from typing import Any

from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.manifests.equal_values import same
from reconciler.plan.manifests.kind_traits import Path, traits

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
