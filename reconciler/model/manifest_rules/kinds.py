"""The kinds of manifest that may be applied, and their allowed fields: a closed set.

No manifest grants rights, runs with rights, or removes objects of others. Templates render NodePools and
PriorityClasses. Pods are rendered only by the template of smart pods, and created by the planner of smart pods. The
only ConfigMap holds the statuses of policies.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.manifest_rules.shape import (
    AnyList,
    Fields,
    Flag,
    Including,
    ListOf,
    ManifestFault,
    ManifestField,
    Map,
    Number,
    OneOf,
    RestrictedText,
    Shape,
    TextMap,
    faults,
)

# --- Allowed fields of a smart pod: the restricted Pod Security Standard, field by field, without a service account
# token.
#
# A smart pod makes Karpenter launch a node and runs nothing. Besides the fields of the default template, only fields
# for scheduling, for the image registry and for display are allowed.

_NO, _YES = OneOf((False,)), OneOf((True,))
_SOMEBODY = Number(least=1)  # 0 is root

# Annotations that configure the container runtime where the equivalent field is not allowed.
_RUNTIME_ANNOTATIONS = (
    "container.apparmor.security.beta.kubernetes.io/",
    "seccomp.security.alpha.kubernetes.io/",
    "container.seccomp.security.alpha.kubernetes.io/",
    "io.kubernetes.cri",
    "k8s.v1.cni.cncf.io/",
)

_SECCOMP = Fields((ManifestField("type", OneOf(("RuntimeDefault",)), required=True),))

_USER = (
    ManifestField("runAsUser", _SOMEBODY),
    ManifestField("runAsGroup", _SOMEBODY),
)

_POD_SECURITY = Fields(
    (
        ManifestField("runAsNonRoot", _YES, required=True),
        ManifestField("seccompProfile", _SECCOMP, required=True),
        *_USER,
        ManifestField("fsGroup", _SOMEBODY),
        ManifestField("fsGroupChangePolicy", RestrictedText()),
        ManifestField("supplementalGroups", ListOf(_SOMEBODY)),
    )
)

_CONTAINER_SECURITY = Fields(
    (
        ManifestField("allowPrivilegeEscalation", _NO, required=True),
        ManifestField("capabilities", Fields((ManifestField("drop", Including("ALL"), required=True),)), required=True),
        ManifestField("privileged", _NO),
        ManifestField("readOnlyRootFilesystem", Flag()),
        ManifestField("runAsNonRoot", _YES),
        ManifestField("seccompProfile", _SECCOMP),
        *_USER,
    )
)

_CONTAINER = Fields(
    (
        ManifestField("name", RestrictedText(), required=True),
        ManifestField("image", RestrictedText(), required=True),
        ManifestField("imagePullPolicy", OneOf(("Always", "IfNotPresent", "Never"))),
        ManifestField("resources", Fields((ManifestField("requests", Map()), ManifestField("limits", Map())))),
        ManifestField("securityContext", _CONTAINER_SECURITY, required=True),
        ManifestField("terminationMessagePath", OneOf(("/dev/termination-log",))),
        ManifestField("terminationMessagePolicy", OneOf(("File",))),
    )
)

SPEC = Fields(
    (
        ManifestField("automountServiceAccountToken", _NO, required=True),
        ManifestField("containers", ListOf(_CONTAINER), required=True),
        ManifestField("securityContext", _POD_SECURITY, required=True),
        ManifestField("activeDeadlineSeconds", Number(least=1)),
        ManifestField("affinity", Map()),
        ManifestField("enableServiceLinks", _NO),
        ManifestField("imagePullSecrets", AnyList()),
        ManifestField("nodeSelector", Map()),
        ManifestField("priorityClassName", RestrictedText(refused=("system-",))),
        ManifestField("restartPolicy", OneOf(("Never", "OnFailure", "Always"))),
        ManifestField("schedulerName", RestrictedText()),
        # The namespace's default service account, which has no rights.
        ManifestField("serviceAccountName", OneOf(("default",))),
        ManifestField("terminationGracePeriodSeconds", Number(least=0)),
        ManifestField("tolerations", AnyList()),
        ManifestField("topologySpreadConstraints", AnyList()),
        ManifestField("dnsPolicy", OneOf(("ClusterFirst", "Default", "None"))),
        ManifestField("serviceAccount", OneOf(("default",)), by_server=True),
        ManifestField("preemptionPolicy", RestrictedText(), by_server=True),
        ManifestField("priority", Number(most=1_000_000_000), by_server=True),
    )
)

METADATA = Fields(
    (
        ManifestField("name", RestrictedText(), required=True),
        ManifestField("namespace", RestrictedText(), required=True),
        ManifestField("labels", Map(), required=True),
        ManifestField("annotations", TextMap(refused=_RUNTIME_ANNOTATIONS)),
        *(
            ManifestField(name, shape, by_server=True)
            for name, shape in (
                ("uid", RestrictedText()),
                ("creationTimestamp", RestrictedText()),
                ("managedFields", AnyList()),
                ("generation", Number()),
                ("resourceVersion", RestrictedText()),
            )
        ),
    )
)

# The labels that identify smart pods.
LABELS = ((names.COMPONENT, names.SMART_SCHEDULER), (names.MANAGED, "true"))

# Namespaces where smart pods are not allowed: each has its own pods, rights or Pod Security level.
RESERVED_NAMESPACES = (
    names.OWN_NAMESPACE,
    names.AGENTS_NAMESPACE,
    names.LEASES_NAMESPACE,
    "default",
    "kube-node-lease",
    "kube-public",
    "kube-system",
)

_OBJECT = ("apiVersion", "kind", "metadata", "spec")

# A pod without a PriorityClass has priority 0: a template must not be able to preempt workloads.
MOST_PRIORITY = 0

PRIORITY_CLASS = Fields(
    (
        ManifestField("apiVersion", OneOf(("scheduling.k8s.io/v1",)), required=True),
        ManifestField("kind", OneOf(("PriorityClass",)), required=True),
        ManifestField("metadata", Map(), required=True),
        ManifestField("value", Number(most=MOST_PRIORITY), required=True),
        ManifestField("globalDefault", OneOf((False,))),
        ManifestField("description", RestrictedText()),
        ManifestField("preemptionPolicy", OneOf(("Never", "PreemptLowerPriority"))),
    )
)

STATUSES = Fields(
    (
        ManifestField("apiVersion", OneOf(("v1",)), required=True),
        ManifestField("kind", OneOf(("ConfigMap",)), required=True),
        ManifestField(
            "metadata",
            Fields(
                (
                    ManifestField("name", OneOf((names.STATUS_CONFIG_MAP,)), required=True),
                    ManifestField("namespace", RestrictedText(), required=True),
                )
            ),
            required=True,
        ),
        ManifestField("data", Map()),
    )
)

SMART_POD = Fields(
    (
        ManifestField("apiVersion", OneOf(("v1",)), required=True),
        ManifestField("kind", OneOf(("Pod",)), required=True),
        ManifestField("metadata", METADATA, required=True),
        ManifestField("spec", SPEC, required=True),
        ManifestField("status", Map(), by_server=True),
    )
)


class ManifestKind(msgspec.Struct, frozen=True):
    api_version: str
    fields: tuple[str, ...] = _OBJECT
    namespaced: bool = True
    shape: Shape = Map()  # in addition to the schema of the kind


# Rendered by the template of a NodePool.
YIELDED: dict[str, ManifestKind] = {
    "NodePool": ManifestKind("karpenter.sh/v1", namespaced=False),
    "PriorityClass": ManifestKind(
        "scheduling.k8s.io/v1",
        fields=("apiVersion", "kind", "metadata", "value", "globalDefault", "description", "preemptionPolicy"),
        namespaced=False,
        shape=PRIORITY_CLASS,
    ),
}
# Rendered by the template of smart pods.
SMART_PODS: dict[str, ManifestKind] = {"Pod": ManifestKind("v1", shape=SMART_POD)}
# Rendered by no template.
_OWN: dict[str, ManifestKind] = {
    "ConfigMap": ManifestKind("v1", ("apiVersion", "kind", "metadata", "data"), shape=STATUSES)
}

APPLIED: dict[str, ManifestKind] = YIELDED | SMART_PODS | _OWN


def manifest_faults(manifest: Any) -> list[ManifestFault]:
    """Why a manifest may not be applied, whatever its source; empty if it may."""
    kind = manifest.get("kind") if isinstance(manifest, dict) else None
    known = APPLIED.get(kind) if isinstance(kind, str) else None
    if known is None:
        text = f'is "{kind}", which may not be applied' if kind else "is missing"
        return [ManifestFault(("kind",), text, f"write {' or '.join(APPLIED)}")]
    found = []
    if manifest.get("apiVersion") != known.api_version:
        text = f"of a {kind} is {known.api_version}"
        found.append(ManifestFault(("apiVersion",), text, f"write {known.api_version}"))
    extra = [name for name in manifest if name not in known.fields]
    found += [ManifestFault((name,), f"is not a field of {kind}", "remove it") for name in extra]
    return found or [*faults(known.shape, manifest), *(_unlabelled(manifest) if kind in SMART_PODS else ())]


def _unlabelled(pod: dict[str, Any]) -> Iterator[ManifestFault]:
    metadata = pod.get("metadata")
    labels = metadata.get("labels") if isinstance(metadata, dict) else None
    for key, value in LABELS:
        if not isinstance(labels, dict) or labels.get(key) != value:
            yield ManifestFault(("metadata", "labels", key), f"must be {value}", f'write {key}: "{value}"')
    namespace = metadata.get("namespace") if isinstance(metadata, dict) else None
    if namespace in RESERVED_NAMESPACES:
        text = f"is {namespace}, which is reserved"
        yield ManifestFault(("metadata", "namespace"), text, "remove spec.smartPods.namespace from the GpuPool")


def why_not_applied(text: str) -> str:
    """A sentence; empty if the manifest may be applied."""
    try:
        manifest = msgspec.json.decode(text)
    except (msgspec.MsgspecError, RecursionError) as fault:
        return f"the manifest cannot be read: {fault}"
    found = manifest_faults(manifest)
    if not found and not isinstance(manifest.get("metadata"), dict):
        found = [ManifestFault(("metadata",), "must be a map", "set metadata.name")]
    return ", ".join(f"{'.'.join(str(step) for step in each.path)} {each.sentence}" for each in found[:3])
