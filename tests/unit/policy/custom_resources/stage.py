"""Policies of tests as custom resources of a cluster: rendered together, or written by hand."""

from typing import Any

import yaml

from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Desired
from reconciler.policy.custom_resources import custom_resources
from reconciler.policy.resolve import resolve

POLICIES = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: a100}
spec:
  mode: Enforce
  devices: {model: a100, count: 8, memory: 40Gi}
  instanceTypes: [{name: p4d.24xlarge, pricePerHour: {on-demand: "21.96"}}]
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: lab}
  taints: [{key: dedicated, value: training, effect: NoSchedule}]
---
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {name: l4}
spec:
  devices: {model: l4, count: 4, memory: 24Gi}
  instanceTypes: [{name: g6.12xlarge}]
  nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: lab}
---
apiVersion: gpu.scheduling/v1
kind: NodeProvisioner
metadata: {name: a100}
spec: {poolName: a100, minSize: 1, maxSize: 9, minGPUUtilizationPercent: 70}
---
apiVersion: gpu.scheduling/v1
kind: ChangeGuard
metadata: {name: fleet}
spec:
  poolNames: ["*"]
  perPlan: {maxRemovedNodes: 24}
"""


def wish_of(text: str = POLICIES, revision: str = "4c1f9e2", environment: str = "prod") -> Desired:
    """What the text declares for an environment."""
    resolved = resolve(Bundle(revision, (Text("all.yaml", text.encode()),), environment=environment))
    assert resolved.problems == ()
    return resolved.wishes[0]


def whole(document: dict[str, Any], **more: Any) -> Unstructured:
    """As the Observer would see it."""
    told = document["metadata"]
    metadata = UnstructuredMetadata(
        name=told["name"],
        uid=f"uid-{document['kind']}-{told['name']}",
        resource_version="7",
        generation=3,
        annotations=told.get("annotations", {}),
        **more,
    )
    rest = {key: value for key, value in document.items() if key not in {"apiVersion", "kind", "metadata"}}
    return Unstructured(document["apiVersion"], document["kind"], metadata, rest)


def rendered(wish: Desired) -> list[Unstructured]:
    """What applying `render --as-resources` makes."""
    return [whole(each) for each in custom_resources(wish)]


def by_hand(text: str = POLICIES) -> list[Unstructured]:
    """The same without a word of a bundle."""
    return [whole(each) for each in yaml.safe_load_all(text)]


def seen(*objects: Unstructured) -> Observed:
    return Observed(policies=objects)


def said(wish: Desired) -> list[tuple[str, str, object]]:
    """What a wish declares, wherever it was written."""
    return sorted((each.kind, each.name, each.spec) for each in wish.declared)
