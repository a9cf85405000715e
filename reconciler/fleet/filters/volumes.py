"""Where a pod's volumes can be had: those that there are, those that are still to be chosen, and those to be made."""

from collections import defaultdict
from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import NoVolumeToChoose, VolumeInOtherZone, VolumeUnreachable
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import Mask, NodeRows
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.choosing import Stock, chosen, only_node
from reconciler.fleet.storage.places import agreed, agrees, allowed, reached, reaches
from reconciler.fleet.storage.promises import Promises
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.fleet.storage.wanted import NOTHING, StorageRequirements, key_of
from reconciler.model.cluster.volumes import PersistentVolumeClaim
from reconciler.model.obstacle import Obstacle


class VolumePlaces:
    """What is stored, and what of it is promised; it is asked anew each time, which is quick."""

    name: ClassVar[str] = "volumes"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._stored = fleet.part(StorageIndex)

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return self._stored.wanted(pod_class, fleet) is not NOTHING

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        want = self._stored.wanted(pod_class, fleet)
        if want is NOTHING:
            return None
        if want.nowhere or want.unmodelled:
            return np.zeros(fleet.rows.capacity, bool)
        mask = _bound(want, fleet)
        if want.unbound:
            others = _chosen(want, fleet)
            mask = others if mask is None else mask & others
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        want = self._stored.wanted(pod_class, fleet)
        if want is NOTHING:
            return True
        if want.nowhere or want.unmodelled:
            return False
        node = fleet.rows.node(row)
        return (
            all(reaches(node, each) for each in want.bound)
            and all(agrees(node, each) for each in want.labelled)
            and (not want.unbound or chosen(want, node, fleet.part(Promises).stock(fleet)) is not None)
        )

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        want = self._stored.wanted(pod_class, fleet)
        if nowhere := want.nowhere or want.unmodelled:
            return nowhere
        node = fleet.rows.node(row)
        for volume in want.bound:
            if not reaches(node, volume):
                return VolumeUnreachable(volume.metadata.name)
        for volume in want.labelled:
            if not agrees(node, volume):
                return VolumeInOtherZone(volume.metadata.name)
        return NoVolumeToChoose(tuple([each.title for each in want.unbound]))


def _bound(want: StorageRequirements, fleet: Snapshot) -> Mask | None:
    masks = [reached(each, fleet.rows) for each in want.bound] + [agreed(each, fleet.rows) for each in want.labelled]
    found = [each for each in masks if each is not None]
    return np.logical_and.reduce(found) if found else None


def _chosen(want: StorageRequirements, fleet: Snapshot) -> Mask:
    """Where all unbound claims get something. Row by row only where one might be in another's way."""
    stock, rows = fleet.part(Promises).stock(fleet), fleet.rows
    groups = _alike(want, stock)
    if groups is not None:
        mask: Mask = np.ones(rows.capacity, bool)
        for claims in groups:
            mask &= _where_all(claims, rows, stock)
        return mask
    mask = np.zeros(rows.capacity, bool)
    only = only_node(want, stock)
    for name, row in rows.row_of.items():
        if not only or name == only:
            mask[row] = chosen(want, rows.node(row), stock) is not None
    return mask


def _alike(want: StorageRequirements, stock: Stock) -> list[list[PersistentVolumeClaim]] | None:
    """The claims in groups that choose among the same volumes; None where groups overlap or something is promised."""
    groups: dict[int, list[PersistentVolumeClaim]] = defaultdict(list)
    classes: dict[str, int] = {}
    for claim in want.unbound:
        is_promised = key_of(claim) in stock.promises or claim.metadata.annotations.selected_node
        own, offer = stock.stored.kept_for(claim), id(stock.stored.offer(claim))
        if is_promised or classes.setdefault(claim.storage_class, offer) != offer or (own and len(want.unbound) > 1):
            return None
        groups[offer].append(claim)
    return list(groups.values())


def _where_all(claims: list[PersistentVolumeClaim], rows: NodeRows, stock: Stock) -> Mask:
    """Where each of some claims that are alike gets a volume of its own, that there is or that is made."""
    claim = claims[0]
    own = stock.stored.kept_for(claim)
    there: Mask = stock.stored.offer(claim).counts(rows, stock.taken.keys()) >= len(claims)
    if own is not None:
        only = reached(own, rows)
        there = np.ones_like(there) if only is None else only
    storage_class = stock.stored.storage_class(claim.storage_class)
    if storage_class is None or not storage_class.provisions:
        return there
    made = allowed(storage_class, rows)
    return np.ones_like(there) if made is None else there | made
