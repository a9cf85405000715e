"""Node classes that NodePools name and the cluster does not have: of such a NodePool Karpenter launches nothing."""

import json
from collections.abc import Iterator

from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import Observed
from reconciler.model.plan.inputs import Inputs

_CLASSES = {(each.group, each.kind): each for each in RESOURCE_KINDS if each.field == "node_classes"}


def unknown_node_classes(inputs: Inputs) -> Iterator[str]:
    """A sentence for each NodePool that policies yield with such a class; of kinds that were not read, none."""
    there = {(each.kind, each.metadata.name) for each in inputs.observed.node_classes}
    for manifest in inputs.desired.manifests:
        if manifest.kind != "NodePool":
            continue
        named = json.loads(manifest.body)["spec"]["template"]["spec"]["nodeClassRef"]
        resource_kind = _CLASSES.get((named["group"], named["kind"]))
        if resource_kind and _was_read(inputs.observed, resource_kind) and (named["kind"], named["name"]) not in there:
            what = f"{named['kind']}/{named['name']}"
            yield f"NodePool/{manifest.name} names {what}, which the cluster does not have: Karpenter launches nothing"


def _was_read(observed: Observed, resource_kind: ResourceKind) -> bool:
    return not observed.why_unread(resource_kind.title)
