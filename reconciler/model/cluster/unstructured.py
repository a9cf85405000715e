"""Objects that are kept whole for comparison field by field: NodePools, rendered manifests, custom resources."""

from functools import cache
from typing import Any, get_args, get_origin

import msgspec

from reconciler.model import names
from reconciler.model.cluster.pod import PodSpec, PodStatus
from reconciler.model.parsers import Int64


class ManagedFields(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """The fields that one field manager owns."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class UnstructuredMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Metadata with all annotations and the field managers."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    managed_fields: tuple[ManagedFields, ...] = ()


class Unstructured(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """An object; `rest` has all except apiVersion, kind and metadata: spec, status, a PriorityClass' value."""

    api_version: str
    kind: str
    metadata: UnstructuredMetadata
    rest: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_ours(self) -> bool:
        """Whether the object is in reconciler's inventory."""
        return self.metadata.labels.get(names.MANAGED) == "true"

    @property
    def status(self) -> dict[str, Any]:
        """The status as it is, but only with well-formed conditions."""
        found = self.rest.get("status")
        if not isinstance(found, dict):
            return {}
        written = found.get("conditions")
        conditions = [each for each in written if _is_condition(each)] if isinstance(written, list) else []
        return {**found, "conditions": conditions} if "conditions" in found else found

    @property
    def spec(self) -> dict[str, Any]:
        found = self.rest.get("spec")
        return found if isinstance(found, dict) else {}


def _is_condition(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(value.get(key, ""), str) for key in ("type", "status", "reason"))


# --- Fields that are never read, even of an object that is kept whole, because they may contain secrets.
#
# Data that is never read cannot leak into a dump, a log or a report. In return, the same fields must be removed from a
# manifest before the manifest is compared with an observed object.

# Annotations that reconciler uses. Of all others, only those that reconciler set are kept: the policies contain them.
DOMAINS = frozenset({"gpu.scheduling", "karpenter.sh", "karpenter.k8s.aws"})

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
# The kept fields of a node class' spec. All others, such as tags, context and selectors of a cloud, may hold anything.
_OF_A_CLASS = frozenset({"amiFamily", "detailedMonitoring", "instanceStorePolicy", "kubelet", "role"})


def without_secrets(kind: str, rest: dict[str, Any]) -> dict[str, Any]:
    """All except apiVersion, kind and metadata; of a Pod, only the fields that are read of every pod."""
    if kind != "Pod":
        return rest
    return {key: _known(value, _PARTS[key]) if key in _PARTS else value for key, value in rest.items() if key in _HEAD}


def class_without_secrets(spec: dict[str, Any]) -> dict[str, Any]:
    """The fields that describe the machines, without user data and other cloud settings."""
    return {key: value for key, value in spec.items() if key in _OF_A_CLASS}


def metadata_without_secrets(metadata: UnstructuredMetadata) -> UnstructuredMetadata:
    """Metadata with only the annotations that reconciler uses or set."""
    annotations = metadata.annotations
    requested = {key for key in annotations if key.partition("/")[0] in DOMAINS}
    if len(requested) < len(annotations):
        requested |= _ours(metadata) & annotations.keys() - {_LAST_APPLIED}
    if len(requested) == len(annotations):
        return metadata
    return msgspec.structs.replace(
        metadata, annotations={key: annotations[key] for key in annotations if key in requested}
    )


def _ours(metadata: UnstructuredMetadata) -> set[str]:
    """Annotations that reconciler owns according to the API server."""
    result: set[str] = set()
    for writer in metadata.managed_fields:
        fields = writer.fields.get("f:metadata")
        named = fields.get("f:annotations") if isinstance(fields, dict) else None
        if writer.manager == names.FIELD_MANAGER and writer.operation == "Apply" and isinstance(named, dict):
            result |= {key.removeprefix("f:") for key in named}
    return result


_PARTS: dict[str, Any] = {"spec": PodSpec, "status": PodStatus}
_HEAD = frozenset({"apiVersion", "kind", "metadata", *_PARTS})


def _known(value: Any, kind: Any) -> Any:
    """The value without fields unknown to the type. A value of another structure is dropped."""
    fields = _fields(kind)
    if fields is not None:
        found = value if isinstance(value, dict) else {}
        return {key: _known(each, fields[key]) for key, each in found.items() if key in fields}
    items = _items(kind)
    if items is not None:
        return [_known(each, items) for each in value] if isinstance(value, list) else []
    return value


@cache
def _fields(kind: Any) -> dict[str, Any] | None:
    """The fields of a struct by their Kubernetes names; None if the type is not a struct."""
    for each in (kind, *get_args(kind)):
        if isinstance(each, type) and issubclass(each, msgspec.Struct):
            return {field.encode_name: field.type for field in msgspec.structs.fields(each)}
        if get_origin(kind) is tuple:
            return None
    return None


@cache
def _items(kind: Any) -> Any:
    """The item type of a tuple; None if the type is not a tuple."""
    return get_args(kind)[0] if get_origin(kind) is tuple else None
