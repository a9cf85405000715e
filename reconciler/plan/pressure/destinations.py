"""Destinations of pods that leave because of pressure, reserved in a what-if fleet and in what-if ledgers.

A destination is a node of a pool with a PressurePolicy in force that all predicates of the scheduler allow, whose
ledger has room for what the pod has, and that is and stays without pressure. A node that would be above its watermark
with the pod is no destination: its pods would leave next, and might come back. Among destinations, the node with the
largest share left below its watermark is chosen; names decide only between equal nodes.
"""

from collections.abc import Mapping
from functools import cached_property

import numpy as np

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.fleet.rows import Mask
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.pressure import Amounts, ElasticPod
from reconciler.plan.draft import Draft
from reconciler.plan.pressure.reasons import PlacesRuledOut

_ALL = 10_000


class Destinations:
    """Run within a fork of the snapshot. Mutable. `ledgers`: copies, which this object changes."""

    def __init__(self, draft: Draft, ledgers: Mapping[str, NodeLedger]) -> None:
        self._draft, self._ledgers = draft, ledgers
        self._snapshot = draft.fleet.snapshot
        self._row_of = self._snapshot.rows.row_of
        self.homeless: set[str] = set()  # uids of migrations in progress whose destination has no room any more
        self._booked: dict[str, tuple[PodClass, int | None, int]] = {}  # uid -> class, source row, destination row

    def reserve(self, pod: Pod, amounts: Amounts) -> str | PlacesRuledOut:
        """Reserve the best destination of a pod, or tell what rules out all other nodes."""
        source = self._take_off(pod)
        anew = self._snapshot.classes.of(pod).anew
        allowed = self._snapshot.part(FilterChain).mask(anew) & self._open
        if pod.node in self._row_of:
            allowed[self._row_of[pod.node]] = False
        places = [
            (-share, name)
            for row in np.flatnonzero(allowed).tolist()
            if (share := self._share(name := self._snapshot.rows.node(row).name, amounts)) is not None
        ]
        if not places:
            ruled_out = self._ruled_out(anew, allowed, pod.node)
            if source is not None:
                self._snapshot.add(self._snapshot.classes.of(pod), source)
            return ruled_out
        destination = min(places)[1]
        self._book(pod, amounts, (source, destination))
        return destination

    def keep(self, pod: Pod | None, uid: str, destination: str, amounts: Amounts) -> None:
        """Reserve the known destination of a migration in progress, whether or not the destination has room."""
        ledger = self._ledgers.get(destination)
        if ledger is None or destination not in self._row_of:
            self.homeless.add(uid)
            return
        if self._share(destination, amounts) is None:
            self.homeless.add(uid)
        if pod is None:
            self._put(ledger, uid, amounts)
        else:
            self._book(pod, amounts, (self._take_off(pod), destination))

    def give_back(self, pod: Pod) -> None:
        """Undo a reservation."""
        booked = self._booked.pop(pod.metadata.uid, None)
        if booked is None:
            return
        anew, source, row = booked
        self._snapshot.remove(anew, row)
        if source is not None:
            self._snapshot.add(self._snapshot.classes.of(pod), source)
        self._ledgers[self._snapshot.rows.node(row).name].drop(pod.metadata.uid)

    def _book(self, pod: Pod, amounts: Amounts, way: tuple[int | None, str]) -> None:
        source, destination = way
        anew, row = self._snapshot.classes.of(pod).anew, self._row_of[destination]
        self._snapshot.add(anew, row)
        self._put(self._ledgers[destination], pod.metadata.uid, amounts)
        self._booked[pod.metadata.uid] = anew, source, row

    def _put(self, ledger: NodeLedger, uid: str, amounts: Amounts) -> None:
        ledger.put(ElasticPod(uid, "", amounts, amounts, amounts, permitted=amounts))

    def _take_off(self, pod: Pod) -> int | None:
        """Take the pod off its node. Returns the row, if the pod is booked there."""
        row, pod_class = self._row_of.get(pod.node), self._snapshot.classes.of(pod)
        if row is None or not self._snapshot.booked_on(row).get(pod_class):
            return None
        self._snapshot.remove(pod_class, row)
        return row

    def _share(self, name: str, amounts: Amounts) -> int | None:
        """Share of the node that stays free below the watermark with the pod; None if the node is no destination."""
        ledger = self._ledgers.get(name)
        if ledger is None or not ledger.fits(amounts, is_elastic=True):
            return None
        share = _ALL
        for resource, bounds in ledger.bounds.items():
            figures, amount = ledger.pressure(resource), amounts.get(resource, 0)
            after = figures.reserved - figures.buffer + amount
            if figures.logical or figures.capacity or after > bounds.watermark:
                return None
            share = min(share, (bounds.watermark - after) * _ALL // max(1, bounds.reservable))
        return share

    @cached_property
    def _open(self) -> Mask:
        """Nodes that stay and are ready."""
        fleet, rows = self._draft.fleet, self._snapshot.rows
        mask: Mask = rows.alive.copy()
        closed = {each.name for each in (*fleet.nodes_unsettled, *fleet.nodes_unfit)} | set(self._draft.taken_away)
        mask[[self._row_of[name] for name in closed if name in self._row_of]] = False
        return mask

    def _ruled_out(self, anew: PodClass, allowed: Mask, node: str) -> PlacesRuledOut:
        others = self._open.copy()
        if node in self._row_of:
            others[self._row_of[node]] = False
        counted = self._snapshot.part(FilterChain).counted(anew, others)
        fits = [self._snapshot.rows.node(row).name for row in np.flatnonzero(allowed).tolist()]
        without = sum(name not in self._ledgers for name in fits)
        return PlacesRuledOut(type(counted)(counted.by), len(fits) - without, without)
