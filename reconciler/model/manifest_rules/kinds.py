"""The kinds of manifest that are applied, and what each may hold: a closed set.

Nothing of it grants rights, runs with them, or removes others' objects. Templates yield NodePools and PriorityClasses;
a Pod is only yielded by the template of smart pods, and made by the planner of smart pods. The statuses of policies
are the one ConfigMap.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.manifest_rules import smart_pod
from reconciler.model.manifest_rules.shape import Entry, Fault, Fields, Map, Number, OneOf, Shape, Text, faults

_OBJECT = ("apiVersion", "kind", "metadata", "spec")

# The class of a pod that names none has 0: no workload may be displaced on the word of a template.
MOST_PRIORITY = 0

PRIORITY_CLASS = Fields(
    (
        Entry("apiVersion", OneOf(("scheduling.k8s.io/v1",)), required=True),
        Entry("kind", OneOf(("PriorityClass",)), required=True),
        Entry("metadata", Map(), required=True),
        Entry("value", Number(most=MOST_PRIORITY), required=True),
        Entry("globalDefault", OneOf((False,))),
        Entry("description", Text()),
        Entry("preemptionPolicy", OneOf(("Never", "PreemptLowerPriority"))),
    )
)

STATUSES = Fields(
    (
        Entry("apiVersion", OneOf(("v1",)), required=True),
        Entry("kind", OneOf(("ConfigMap",)), required=True),
        Entry(
            "metadata",
            Fields(
                (
                    Entry("name", OneOf((names.STATUS_CONFIG_MAP,)), required=True),
                    Entry("namespace", Text(), required=True),
                )
            ),
            required=True,
        ),
        Entry("data", Map()),
    )
)

SMART_POD = Fields(
    (
        Entry("apiVersion", OneOf(("v1",)), required=True),
        Entry("kind", OneOf(("Pod",)), required=True),
        Entry("metadata", smart_pod.METADATA, required=True),
        Entry("spec", smart_pod.SPEC, required=True),
        Entry("status", Map(), by_server=True),
    )
)


class ManifestKind(msgspec.Struct, frozen=True):
    """A kind of manifest."""

    api_version: str
    fields: tuple[str, ...] = _OBJECT
    namespaced: bool = True
    shape: Shape = Map()  # beside what the schema of the kind says


# Yielded by the template of a NodePool.
YIELDED: dict[str, ManifestKind] = {
    "NodePool": ManifestKind("karpenter.sh/v1", namespaced=False),
    "PriorityClass": ManifestKind(
        "scheduling.k8s.io/v1",
        fields=("apiVersion", "kind", "metadata", "value", "globalDefault", "description", "preemptionPolicy"),
        namespaced=False,
        shape=PRIORITY_CLASS,
    ),
}
# Yielded by the template of smart pods.
SMART_PODS: dict[str, ManifestKind] = {"Pod": ManifestKind("v1", shape=SMART_POD)}
# Yielded by none.
_OWN: dict[str, ManifestKind] = {
    "ConfigMap": ManifestKind("v1", ("apiVersion", "kind", "metadata", "data"), shape=STATUSES)
}

APPLIED: dict[str, ManifestKind] = YIELDED | SMART_PODS | _OWN


def manifest_faults(manifest: Any) -> list[Fault]:
    """Why a manifest may not be applied, whoever yields it; nothing where it may."""
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    known = APPLIED.get(kind) if isinstance(kind, str) else None
    if known is None:
        told = f'is "{kind}", which is not applied' if kind else "is missing"
        return [Fault(("kind",), told, f"write {' or '.join(APPLIED)}")]
    found = []
    if manifest.get("apiVersion") != known.api_version:
        told = f"of a {kind} is {known.api_version}"
        found.append(Fault(("apiVersion",), told, f"write {known.api_version}"))
    extra = [name for name in manifest if name not in known.fields]
    found += [Fault((name,), f"is no field of a {kind}", "take it out") for name in extra]
    return found or [*faults(known.shape, manifest), *(_unlabelled(manifest) if kind in SMART_PODS else ())]


def _unlabelled(pod: dict[str, Any]) -> Iterator[Fault]:
    metadata = pod.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    for key, value in smart_pod.LABELS:
        if not isinstance(labels, dict) or labels.get(key) != value:
            yield Fault(("metadata", "labels", key), f"must be {value}", f'write {key}: "{value}"')
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    if namespace in smart_pod.RESERVED_NAMESPACES:
        told = f"is {namespace}, which is not for smart pods"
        yield Fault(("metadata", "namespace"), told, "leave spec.smartPods.namespace of the GpuPool out")


def why_not_applied(text: str) -> str:
    """A sentence; nothing where the manifest may be applied."""
    try:
        manifest = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as fault:
        return f"the manifest can't be read: {fault}"
    found = manifest_faults(manifest)
    if not found and not isinstance(manifest.get("metadata"), dict):
        found = [Fault(("metadata",), "must be a map", "name the object")]
    return ", ".join(f"{'.'.join(str(step) for step in each.path)} {each.sentence}" for each in found[:3])
