"""Which volumes a pod's unbound claims would get on a node: the smallest that will do, or ones made there.

As the scheduler does it: a volume that is kept for a claim comes first; then, from the smallest claim to the largest,
the smallest volume that the node reaches; what is still without one is made, where its class makes any.
"""

from collections.abc import Mapping

import msgspec

from reconciler.fleet.storage.places import agrees, allows, reaches
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.fleet.storage.wanted import Key, StorageRequirements, key_of
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.volumes import STORAGE, PersistentVolume, PersistentVolumeClaim
from reconciler.model.resource_quantity import requested_amount

TO_BE_MADE = ""  # in place of a volume's name


class VolumeReservation(msgspec.Struct, frozen=True, gc=False):
    """What a claim got that is not bound yet, and where."""

    node: str
    volume: str
    pods: int  # that use it


class Stock(msgspec.Struct, frozen=True):
    """All that there is to choose from: what was seen, less what is promised."""

    stored: StorageIndex
    promises: Mapping[Key, VolumeReservation]
    taken: Mapping[str, Key]  # volumes that are promised


def chosen(want: StorageRequirements, node: Node, stock: Stock) -> dict[Key, str] | None:
    """A volume's name for each claim that nothing was promised yet; None where the node will not do."""
    to_be_made, to_be_found = [], []
    for claim in want.unbound:
        promise = stock.promises.get(key_of(claim))
        selected = claim.metadata.annotations.selected_node
        if promise is not None:
            if not _is_kept(promise, node, stock):
                return None
        elif not selected:
            to_be_found.append(claim)
        elif selected == node.name:
            to_be_made.append(claim)
        else:
            return None
    found: dict[Key, str] = {}
    for claim in sorted(to_be_found, key=_size):
        volume = _smallest(claim, node, stock, found)
        if volume is None:
            to_be_made.append(claim)
        else:
            found[key_of(claim)] = volume.metadata.name
    if not all(_can_be_made(claim, node, stock.stored) for claim in to_be_made):
        return None
    return found | {key_of(claim): TO_BE_MADE for claim in to_be_made}


def only_node(want: StorageRequirements, stock: Stock) -> str:
    """The one node that might do, where a claim is being made or was to be made; nothing where any might."""
    for claim in want.unbound:
        promise = stock.promises.get(key_of(claim))
        if promise is not None and promise.volume == TO_BE_MADE:
            return promise.node
        if promise is None and claim.metadata.annotations.selected_node:
            return claim.metadata.annotations.selected_node
    return ""


def _can_be_made(claim: PersistentVolumeClaim, node: Node, stored: StorageIndex) -> bool:
    storage_class = stored.storage_class(claim.storage_class)
    return storage_class is not None and storage_class.provisions and allows(storage_class, node)


def _smallest(
    claim: PersistentVolumeClaim, node: Node, stock: Stock, found: Mapping[Key, str]
) -> PersistentVolume | None:
    own = stock.stored.kept_for(claim)
    if own is not None:
        return own if reaches(node, own) else None
    taken = {*stock.taken, *found.values()} if found else stock.taken
    return stock.stored.offer(claim).smallest(node, taken)


def _is_kept(promise: VolumeReservation, node: Node, stock: Stock) -> bool:
    """Whether another pod can use on the node what was promised. One that is being made is where it is made."""
    if promise.volume == TO_BE_MADE:
        return promise.node == node.name
    volume = stock.stored.volume(promise.volume)
    return volume is not None and reaches(node, volume) and agrees(node, volume)


def _size(claim: PersistentVolumeClaim) -> int:
    result: int = requested_amount(claim.spec.resources.requests.get(STORAGE, "0"))
    return result
