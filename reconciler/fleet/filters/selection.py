"""Which nodes a pod selects: its nodeSelector, and one of the terms of its required node affinity."""

from typing import ClassVar

import numpy as np

from reconciler.fleet.node_terms import readable, term_holds, term_mask
from reconciler.fleet.obstacles import AffinityUnmatched, LabelDiffers, SelectedLabelAbsent
from reconciler.fleet.pod_class import Needs, PodClass
from reconciler.fleet.rows import Mask, NodeRows
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.node import Node
from reconciler.model.obstacle import Obstacle


class Selection:
    """Labels and names of the nodes."""

    name: ClassVar[str] = "selection"
    static: ClassVar[bool] = True

    def __init__(self, fleet: Snapshot) -> None:
        pass

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(pod_class.needs.selector) or pod_class.needs.terms is not None

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        return selected(pod_class.needs, fleet.rows) if self.concerns(pod_class, fleet) else None

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        return selects(pod_class.needs, fleet.rows.node(row))

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        labels = fleet.rows.node(row).metadata.labels
        for key, value in sorted(pod_class.needs.selector.items()):
            if labels.get(key) != value:
                there = labels.get(key)
                return SelectedLabelAbsent(key, value) if there is None else LabelDiffers(key, value, there)
        return AffinityUnmatched()


def selected(needs: Needs, rows: NodeRows) -> Mask:
    """Where nodeSelector and required node affinity let a pod be."""
    mask: Mask = np.ones(rows.capacity, bool)
    for key, value in needs.selector.items():
        if not rows.has_label(key):
            mask[:] = False
            return mask
        mask &= rows.column(key) == rows.value_id(key, value)
    if needs.terms is not None:
        one: Mask = np.zeros(rows.capacity, bool)
        for term in needs.terms.node_selector_terms:
            if readable(term):
                one |= term_mask(term, rows)
        mask &= one
    return mask


def selects(needs: Needs, node: Node) -> bool:
    """The same for one node."""
    labels = node.metadata.labels
    if any(labels.get(key) != value for key, value in needs.selector.items()):
        return False
    if needs.terms is None:
        return True
    return any(readable(term) and term_holds(term, node) for term in needs.terms.node_selector_terms)
