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
from reconciler.model.plan.action import Ref
from reconciler.plan.manifests.adopted import YES, lacking_labels, template_labels, was_adopted
from reconciler.plan.manifests.arriving import keep_arriving_as_it_is
from reconciler.plan.manifests.context import NODE_POOL
from reconciler.plan.manifests.spelling import as_it_stands


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
