"""Object metadata, and kinds with little more than metadata: Namespaces and Leases."""

import msgspec

from reconciler.model import names
from reconciler.model.parsers import Int32, Int64


class OwnerReference(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    kind: str
    name: str
    uid: str = ""
    controller: bool = False
    api_version: str = ""


class Annotations(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The annotations that reconciler reads. All others are dropped when decoding: they may hold anything."""

    frozen_until: str = msgspec.field(name=names.FROZEN_UNTIL, default="")
    frozen_reason: str = msgspec.field(name=names.FROZEN_REASON, default="")
    seen_at: str = msgspec.field(name=names.SEEN_AT, default="")
    adopted: str = msgspec.field(name=names.ADOPTED, default="")
    do_not_disrupt: str = msgspec.field(name=names.DO_NOT_DISRUPT, default="")
    safe_to_evict: str = msgspec.field(name=names.SAFE_TO_EVICT, default="")
    safe_to_evict_local_volumes: str = msgspec.field(name=names.SAFE_TO_EVICT_LOCAL_VOLUMES, default="")
    scale_down_disabled: str = msgspec.field(name=names.SCALE_DOWN_DISABLED, default="")
    daemonset_pod: str = msgspec.field(name=names.DAEMONSET_POD, default="")
    enable_ds_eviction: str = msgspec.field(name=names.ENABLE_DS_EVICTION, default="")
    mirror_pod: str = msgspec.field(name=names.MIRROR_POD, default="")
    selected_node: str = msgspec.field(name=names.SELECTED_NODE, default="")
    bind_completed: str = msgspec.field(name=names.BIND_COMPLETED, default="")
    storage_class: str = msgspec.field(name=names.STORAGE_CLASS, default="")
    claim: str = msgspec.field(name=names.CLAIM, default="")
    allocated: str = msgspec.field(name=names.ALLOCATED, default="")
    devices: str = msgspec.field(name=names.DEVICES, default="")
    device: str = msgspec.field(name=names.DEVICE, default="")
    device_uuid: str = msgspec.field(name=names.DEVICE_UUID, default="")
    pods_woken_at: str = msgspec.field(name=names.PODS_WOKEN_AT, default="")
    releasing: str = msgspec.field(name=names.RELEASING, default="")
    holder: str = msgspec.field(name=names.HOLDER, default="")
    elastic: str = msgspec.field(name=names.ELASTIC, default="")
    waits_for: str = msgspec.field(name=names.WAITS_FOR, default="")
    checkpoint: str = msgspec.field(name=names.CHECKPOINT, default="")
    evict_at: str = msgspec.field(name=names.EVICT_AT, default="")
    checkpointed_at: str = msgspec.field(name=names.CHECKPOINTED_AT, default="")
    original_request: str = msgspec.field(name=names.ORIGINAL_REQUEST, default="")
    phase: str = msgspec.field(name=names.PHASE, default="")
    retries: str = msgspec.field(name=names.RETRIES, default="")
    node_claim: str = msgspec.field(name=names.NODE_CLAIM, default="")
    since: str = msgspec.field(name=names.SINCE, default="")
    pool_hash: str = msgspec.field(name=names.POOL_HASH, default="")
    pool_hash_version: str = msgspec.field(name=names.POOL_HASH_VERSION, default="")


class Metadata(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: Annotations = Annotations()
    owner_references: tuple[OwnerReference, ...] = ()

    @property
    def leaving(self) -> bool:
        return bool(self.deletion_timestamp)

    @property
    def controller(self) -> OwnerReference | None:
        for owner in self.owner_references:  # a loop, not a generator, for speed: this is a hot path
            if owner.controller:
                return owner
        return None


class Condition(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    type: str
    status: str
    reason: str = ""
    last_transition_time: str = ""


class LabelExpression(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A label requirement with the operator In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


class LabelSelector(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelExpression, ...] = ()

    def matches(self, labels: dict[str, str]) -> bool:
        """Whether all requirements hold; an empty selector matches everything."""
        return all(labels.get(key) == value for key, value in self.match_labels.items()) and all(
            _holds(each, labels) for each in self.match_expressions
        )


def _holds(expression: LabelExpression, labels: dict[str, str]) -> bool:
    found = labels.get(expression.key)
    match expression.operator:
        case "In":
            return found in expression.values
        case "NotIn":
            return found is None or found not in expression.values
        case "Exists":
            return found is not None
        case "DoesNotExist":
            return found is None
    return False


# --- Namespaces: affinity terms of pods may select namespaces by label.


class Namespace(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    metadata: Metadata

    @property
    def name(self) -> str:
        return self.metadata.name


# --- Leases in reconciler's namespaces: GPUs lent to claims, and leadership.


class LeaseSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    holder_identity: str = ""
    lease_duration_seconds: Int32 = 0
    acquire_time: str = ""
    renew_time: str = ""
    lease_transitions: Int32 = 0


class Lease(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    metadata: Metadata
    spec: LeaseSpec = LeaseSpec()
