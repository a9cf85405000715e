"""Whether an object surely stands as it is wished: one walk that builds nothing, for the many that do each time."""

from typing import Any

from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.manifests.ownership import Tree, owned_by_us

_APART = frozenset({"apiVersion", "kind", "metadata"})


def is_settled(live: Unstructured, desired: dict[str, Any]) -> bool:
    """Yes is certain: all that is wished stands there, and nothing else was set by us. No only means: compare."""
    ours = owned_by_us(live)
    if ours is None:
        return False
    wished, set_by_us = desired["metadata"], ours.get("f:metadata", {})
    for field, texts in (("labels", live.metadata.labels), ("annotations", live.metadata.annotations)):
        named = wished.get(field, {})
        if any(texts.get(key) != value for key, value in named.items()):
            return False
        if not all(key[2:] in named or key == "." for key in set_by_us.get(f"f:{field}", ())):
            return False
    if any(key[2:] not in desired for key in ours):
        return False
    return all(
        _stands(live.rest.get(name), value, ours.get(f"f:{name}"))
        for name, value in desired.items()
        if name not in _APART
    )


def _stands(live: Any, wished: Any, ours: Tree | None) -> bool:
    # Without parts of our own, it may be one value to the server: then it must be all the same.
    if not ours or not isinstance(wished, dict) or not isinstance(live, dict):
        return bool(live == wished)
    for key, value in wished.items():
        found = live.get(key)
        if found != value and not (isinstance(value, dict) and _stands(found, value, ours.get(f"f:{key}"))):
            return False
    return all(key[2:] in wished or key == "." for key in ours)
