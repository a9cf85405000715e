"""Where a volume can be used: the nodes that reach it, by their labels, and the zones that its own labels name.

The scheduler shows a volume's affinity a node without a name, so that what a term says of names of nodes is passed
over. Labels of volumes are from before there were affinities; a node without any label of a zone or region has nothing
against them.
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from reconciler.fleet.node_terms import readable, term_holds, term_mask
from reconciler.fleet.rows import ABSENT, Mask, NodeRows
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import NodeTerm
from reconciler.model.cluster.volumes import PersistentVolume, StorageClass

_NOW = {names.ZONE_BEFORE: names.ZONE, names.REGION_BEFORE: names.REGION}
_PLACES = (names.ZONE_BEFORE, names.REGION_BEFORE, names.ZONE, names.REGION)
_BETWEEN = "__"  # several zones of one volume


def reaches(node: Node, volume: PersistentVolume) -> bool:
    """Whether a node can have a volume, as far as the volume's affinity goes."""
    terms = _terms(volume)
    return terms is None or any(term_holds(each, node) for each in terms)


def reached(volume: PersistentVolume, rows: NodeRows) -> Mask | None:
    """The same for all rows; None: everywhere."""
    terms = _terms(volume)
    if terms is None:
        return None
    mask: Mask = np.zeros(rows.capacity, bool)
    for each in terms:
        mask |= term_mask(each, rows)
    return mask


def plain_term(volume: PersistentVolume) -> tuple[str, tuple[str, ...]] | None:
    """The one label that a volume asks for, and the values that will do; None where it asks for more or less."""
    terms = _terms(volume)
    if terms is None or len(terms) != 1 or len(terms[0].match_expressions) != 1:
        return None
    (node_expression,) = terms[0].match_expressions
    return (node_expression.key, node_expression.values) if node_expression.operator == "In" else None


def agrees(node: Node, volume: PersistentVolume) -> bool:
    """Whether a node is in the zones and regions that a volume's labels name."""
    labels = node.metadata.labels
    if not any(key in labels for key in _PLACES):
        return True
    return all(labels.get(key, labels.get(_NOW.get(key, key))) in zones for key, zones in _zones(volume))


def agreed(volume: PersistentVolume, rows: NodeRows) -> Mask | None:
    """The same for all rows; None: everywhere."""
    asked = list(_zones(volume))
    if not asked:
        return None
    mask: Mask = np.ones(rows.capacity, bool)
    for key, zones in asked:
        own, now = rows.column(key), _NOW.get(key, key)
        matches = np.isin(own, [rows.value_id(key, zone) for zone in sorted(zones)])
        instead = np.isin(rows.column(now), [rows.value_id(now, zone) for zone in sorted(zones)])
        mask &= np.where(own != ABSENT, matches, instead)
    has_none: Mask = np.ones(rows.capacity, bool)
    for key in _PLACES:
        has_none &= rows.column(key) == ABSENT
    return mask | has_none


def allows(storage_class: StorageClass, node: Node) -> bool:
    """Whether a volume of a class may be made for a node."""
    labels = node.metadata.labels
    terms = storage_class.allowed_topologies
    requested = [term.match_label_expressions for term in terms if term.match_label_expressions]
    return not terms or any(all(labels.get(each.key) in each.values for each in one) for one in requested)


def allowed(storage_class: StorageClass, rows: NodeRows) -> Mask | None:
    """The same for all rows; None: everywhere."""
    if not storage_class.allowed_topologies:
        return None
    mask: Mask = np.zeros(rows.capacity, bool)
    for term in storage_class.allowed_topologies:
        if term.match_label_expressions:
            one: Mask = np.ones(rows.capacity, bool)
            for each in term.match_label_expressions:
                one &= np.isin(rows.column(each.key), [rows.value_id(each.key, value) for value in each.values])
            mask |= one
    return mask


def _terms(volume: PersistentVolume) -> list[NodeTerm] | None:
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return None
    terms = [each for each in affinity.required.node_selector_terms if readable(each)]
    return [msgspec.structs.replace(each, match_fields=()) if each.match_fields else each for each in terms]


def _zones(volume: PersistentVolume) -> Iterator[tuple[str, frozenset[str]]]:
    """What its labels ask of the labels of a node; one that can't be read asks nothing."""
    labels = volume.metadata.labels
    for key in _PLACES:
        if key in labels:
            zones = [each.strip() for each in labels[key].split(_BETWEEN)]
            if all(zones):
                yield key, frozenset(zones)
