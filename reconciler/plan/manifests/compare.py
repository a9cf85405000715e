"""Three ways, what stands, what is wished and what we set before; so what a server-side apply would change.

Where the wish says something, it wins. What we set and no longer wish goes, unless someone else set it too; then the
server's default comes back, if there is one. All else stays: fields of others, and defaults. A list is one value,
unless managedFields takes it apart by keys; a map is taken apart, unless its kind has it as one value. Where another
manager set a field to something else, the API server would refuse: such a field is foreign.

`kubectl get` leaves managedFields out. Then all of an object that is ours counts as set by us, and all of another as
set by someone else.
"""

from typing import Any

from reconciler.model.cluster.redaction import DOMAINS, without_secrets
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.manifests.comparison import Comparison
from reconciler.plan.manifests.kind_traits import Traits, traits
from reconciler.plan.manifests.ownership import ALL, Owners, Tree, owners_of
from reconciler.plan.manifests.walk import FieldWalk

# Who set the fields of an object that does not tell.
SOMEONE = "someone else"

_APART = frozenset({"apiVersion", "kind", "metadata"})


def compare(live: Unstructured, desired: dict[str, Any]) -> Comparison:
    """What applying a manifest would change."""
    desired = _as_read(live, desired)
    kind = traits(live.kind)
    owners = _owners(live, kind)
    walk = FieldWalk(kind)
    metadata: dict[str, Any] = {"name": live.name}
    if live.metadata.namespace:
        metadata["namespace"] = live.metadata.namespace
    for field, texts in (("labels", live.metadata.labels), ("annotations", live.metadata.annotations)):
        owned = owners.within("f:metadata").within(f"f:{field}")
        metadata[field] = walk.merged(("metadata", field), texts, desired["metadata"].get(field, {}), owned)
    merged: dict[str, Any] = {"apiVersion": live.api_version, "kind": live.kind, "metadata": metadata}
    for name in sorted({*live.rest, *desired} - _APART):
        found = walk.merged((name,), live.rest.get(name), desired.get(name), owners.within(f"f:{name}"))
        if found is not None:
            merged[name] = found
    changes = sorted(walk.changes, key=lambda each: each.path)
    return Comparison(tuple(changes), merged, tuple(sorted(walk.foreign)))


def _as_read(live: Unstructured, desired: dict[str, Any]) -> dict[str, Any]:
    """The manifest without what is not read of an object either: it could only seem to differ."""
    metadata = desired["metadata"]
    if not live.metadata.managed_fields and "annotations" in metadata:
        seen = {key: value for key, value in metadata["annotations"].items() if key.partition("/")[0] in DOMAINS}
        metadata = {**metadata, "annotations": seen}
    return without_secrets(live.kind, {**desired, "metadata": metadata})


def _owners(live: Unstructured, kind: Traits) -> Owners:
    if live.metadata.managed_fields:
        return owners_of(live)
    rest: Tree = {f"f:{name}": ALL for name in live.rest if name != "status"}
    if not live.is_ours:
        return Owners(None, ((SOMEONE, rest | {"f:metadata": ALL}),))
    return Owners() if kind.filled_in else Owners(rest)
