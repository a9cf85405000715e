"""Allowed content of manifests: a closed set of kinds, and the fields and values that objects of each kind may have.
Checked for rendered manifests, for plans, and before each write.

No manifest grants rights, runs with rights, or removes objects of others. Templates render NodePools and
PriorityClasses. Pods are rendered only by the template of smart pods, and created by the planner of smart pods. The
only ConfigMap holds the statuses of policies.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model import names

# --- Allow lists: a shape defines the fields that an object may have, and their values.
#
# A field that no shape names is refused. A field of a later Kubernetes version is therefore refused until it is added.
# The shapes are checked here and compiled to CEL in schema/admission.py.

Path = tuple[str | int, ...]
Scalar = str | int | bool


class ManifestFault(msgspec.Struct, frozen=True):
    """A value that is not allowed."""

    path: Path
    sentence: str
    remedy: str


class Map(msgspec.Struct, frozen=True):
    """A map with any content."""


class AnyList(msgspec.Struct, frozen=True):
    """A list with any content."""


class RestrictedText(msgspec.Struct, frozen=True):
    """A string without any of the forbidden prefixes."""

    refused: tuple[str, ...] = ()


class Number(msgspec.Struct, frozen=True):
    least: int | None = None
    most: int | None = None


class Flag(msgspec.Struct, frozen=True):
    """true or false."""


class OneOf(msgspec.Struct, frozen=True):
    values: tuple[Scalar, ...]


class TextMap(msgspec.Struct, frozen=True):
    """A map of strings; keys must not have the forbidden prefixes."""

    refused: tuple[str, ...] = ()


class ListOf(msgspec.Struct, frozen=True):
    """A list of at least one item, each of this shape."""

    item: "Shape"


class Including(msgspec.Struct, frozen=True):
    """A list that contains this string."""

    value: str


class ManifestField(msgspec.Struct, frozen=True):
    name: str
    shape: "Shape"
    required: bool = False
    by_server: bool = False  # only the API server and its plugins write the field


class Fields(msgspec.Struct, frozen=True):
    """An object with these fields and no others."""

    entries: tuple[ManifestField, ...]


Shape = Map | AnyList | RestrictedText | Number | Flag | OneOf | TextMap | ListOf | Including | Fields

_TYPES: dict[type, tuple[type, str]] = {
    Map: (dict, "a map"),
    TextMap: (dict, "a map"),
    Fields: (dict, "a map"),
    AnyList: (list, "a list"),
    ListOf: (list, "a list"),
    Including: (list, "a list"),
    RestrictedText: (str, "a string"),
    Number: (int, "an integer"),
    Flag: (bool, "true or false"),
}


def faults(shape: Shape, value: Any, path: Path = ()) -> Iterator[ManifestFault]:
    """The violations of the shape, outermost first."""
    if not isinstance(shape, OneOf) and not _is_of_type(shape, value):
        words = _TYPES[type(shape)][1]
        yield ManifestFault(path, f"must be {words}", f"write {words}")
        return
    match shape:
        case Fields():
            yield from _of_fields(shape, value, path)
        case ListOf(item=item):
            if not value:
                yield ManifestFault(path, "is empty", "write at least one item")
            for number, each in enumerate(value):
                yield from faults(item, each, (*path, number))
        case TextMap(refused=beginnings):
            for key in value:
                if str(key).startswith(beginnings):
                    yield ManifestFault((*path, key), "may not be set", "remove it")
        case _:
            yield from _of_value(shape, value, path)


def _is_of_type(shape: Shape, value: Any) -> bool:
    wanted, _ = _TYPES[type(shape)]
    # In Python, bool is a subclass of int.
    return isinstance(value, wanted) and (wanted is bool or not isinstance(value, bool))


def _of_value(shape: Shape, value: Any, path: Path) -> Iterator[ManifestFault]:
    match shape:
        case OneOf(values=values):
            if not any(type(value) is type(each) and value == each for each in values):
                words = " or ".join(_written(each) for each in values)
                yield ManifestFault(path, f"is {_written(value)}, must be {words}", f"write {words}")
        case RestrictedText(refused=beginnings):
            if beginnings and value.startswith(beginnings):
                yield ManifestFault(path, f"is {_written(value)}, which is not allowed", "use another one")
        case Number(least=least, most=most):
            if (least is not None and value < least) or (most is not None and value > most):
                words = f"at least {least}" if most is None else f"at most {most}"
                yield ManifestFault(path, f"is {value}, must be {words}", f"write a number that is {words}")
        case Including(value=wanted):
            if wanted not in value:
                yield ManifestFault(path, f"does not contain {wanted}", f"write [{wanted}]")


def _of_fields(shape: Fields, value: dict[str, Any], path: Path) -> Iterator[ManifestFault]:
    known = {each.name: each for each in shape.entries if not each.by_server}
    for name, inner in value.items():
        if name not in known:
            yield ManifestFault((*path, name), "is not an allowed field", "remove it")
        else:
            yield from faults(known[name].shape, inner, (*path, name))
    for name, entry in known.items():
        if entry.required and name not in value:
            yield ManifestFault((*path, name), "is missing", f"write {_example(entry)}")


def _example(entry: ManifestField) -> str:
    """The field in its required form."""
    match entry.shape:
        case OneOf(values=values):
            return f"{entry.name}: {_written(values[0])}"
        case Including(value=value):
            return f"{entry.name}: [{value}]"
        case Fields(entries=entries):
            inner = ", ".join(_example(each) for each in entries if each.required and not each.by_server)
            return f"{entry.name}: {{{inner}}}"
        case _:
            return entry.name


def _written(value: Any) -> str:
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode()


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
