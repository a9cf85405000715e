"""Leases of GPUs: their names and annotations, and the annotation with the GPUs of a bound pod.

A Lease stands for one GPU of one node. Its holder is the uid of the pod that the GPU is lent to, its owner the Node. A
name of a Lease that would be too long contains a digest of the node's name instead.
"""

from collections.abc import Iterable
from hashlib import sha256

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Lease
from reconciler.model.fields import LONGEST_NAME
from reconciler.model.parsers import natural

UNKNOWN = -1

_DIGEST_DIGITS = 20
_MOST_IDS = 64  # of an annotation


class DeviceLease(msgspec.Struct, frozen=True, gc=False, order=True):
    """A held Lease of a GPU."""

    node: str
    id: int  # UNKNOWN if neither the annotation nor the name has one
    name: str
    holder: str  # uid of the pod
    uuid: str = ""  # empty if unknown
    pod: str = ""  # namespace/name
    claim: str = ""


def lease_name(node: str, device_id: int) -> str:
    """The name of the Lease of a GPU."""
    name = f"gpu-{node}-{device_id}"
    if len(name) <= LONGEST_NAME:
        return name
    return f"gpu-{sha256(node.encode()).hexdigest()[:_DIGEST_DIGITS]}-{device_id}"


def read_device_lease(lease: Lease) -> DeviceLease | None:
    """The lent GPU; None if the Lease has no holder, or does not name a GPU of a node."""
    metadata, annotations = lease.metadata, lease.metadata.annotations
    owner = next((each for each in metadata.owner_references if each.kind == "Node"), None)
    device_id = natural(annotations.device)
    if device_id is None:
        device_id = natural(metadata.name.rpartition("-")[2])
    if metadata.namespace != names.LEASES_NAMESPACE or not lease.spec.holder_identity:
        return None
    if owner is None:
        return None
    return DeviceLease(
        node=owner.name,
        id=UNKNOWN if device_id is None else device_id,
        name=metadata.name,
        holder=lease.spec.holder_identity,
        uuid=annotations.device_uuid,
        pod=annotations.holder,
        claim=annotations.claim,
    )


def allocation_text(node: str, device_ids: Iterable[int]) -> str:
    """The annotation `allocated` of a pod: node-a:0,1."""
    return f"{node}:{','.join(map(str, sorted(device_ids)))}"


def read_allocation(text: str, node: str) -> tuple[int, ...]:
    """The ids in an annotation `allocated`, ascending; empty if the annotation is invalid or of another node."""
    named, _, listed = text.rpartition(":")
    parts = listed.split(",", _MOST_IDS)[:_MOST_IDS] if named == node else []
    return tuple(sorted({device_id for part in parts if (device_id := natural(part)) is not None}))
