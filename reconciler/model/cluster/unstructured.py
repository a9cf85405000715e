"""Objects kept whole because they are compared field by field: NodePools, what we rendered, our custom resources."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import OwnerReference
from reconciler.model.parsers import Int64


class ManagedFields(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Which fields one writer set."""

    manager: str = ""
    operation: str = ""
    subresource: str = ""
    fields: dict[str, Any] = msgspec.field(name="fieldsV1", default_factory=dict)


class UnstructuredMetadata(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Metadata with all annotations, and who set what."""

    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    managed_fields: tuple[ManagedFields, ...] = ()


class Unstructured(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One object; `rest` is what stands beside apiVersion, kind and metadata: spec, status, a PriorityClass' value."""

    api_version: str
    kind: str
    metadata: UnstructuredMetadata
    rest: dict[str, Any] = {}

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def is_ours(self) -> bool:
        """Whether it is in the inventory."""
        return self.metadata.labels.get(names.MANAGED) == "true"

    @property
    def status(self) -> dict[str, Any]:
        """As it stands; of its conditions those that are some."""
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
