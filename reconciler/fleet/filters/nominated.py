"""Nominated pods: a pod that preempted others reserves its nominated node.

A pod must fit a node both without the nominated pods and with those of equal or higher priority. The other
predicates check the former; here, predicates that depend on pods are evaluated again with the nominated pods booked.
Limits on volumes are not, since the scheduler does not count volumes of nominated pods.
"""

from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import msgspec
import numpy as np

from reconciler.fleet.filters.node import Ports, ResourceFilter
from reconciler.fleet.filters.pod_topology import InterPod, SpreadFilter
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.filters.volumes import VolumeLimits
from reconciler.fleet.obstacles import WithNominated
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Obstacle

_PEERS: tuple[type[Predicate], ...] = (ResourceFilter, Ports, InterPod, SpreadFilter, VolumeLimits)


class _Nomination(msgspec.Struct, frozen=True):
    uid: str
    title: str
    pod_class: PodClass


class Nominated:
    """The observed nominations by node, without those used up in the snapshot."""

    name: ClassVar[str] = "nominated pods"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._interpod, self._spread = fleet.part(InterPod), fleet.part(SpreadFilter)
        self._peers: tuple[Predicate, ...] = tuple([fleet.part(each) for each in _PEERS])
        self._sighting = -1
        self._by_node: dict[str, list[_Nomination]] = {}
        self._used_up: set[str] = set()
        self._asking = ""

    @contextmanager
    def asking(self, pod: Pod) -> Iterator[None]:
        """Ignores the pod's own nomination within the `with` block."""
        before, self._asking = self._asking, pod.metadata.uid
        try:
            yield
        finally:
            self._asking = before

    def use_up(self, pod: Pod, fleet: Snapshot) -> None:
        """Records that the pod is booked: its nomination reserves nothing until the booking is undone."""
        uid = pod.metadata.uid
        if pod.status.nominated_node_name and uid not in self._used_up:
            self._used_up.add(uid)
            fleet.on_revert(lambda: self._used_up.discard(uid))

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        self._renew(fleet)
        return bool(self._by_node) and any(self._rivals(pod_class, each) for each in self._by_node)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        self._renew(fleet)
        mask: Mask | None = None
        for name in self._by_node:
            row = fleet.rows.row_of.get(name)
            if row is not None and fleet.rows.alive[row] and self._obstacle(pod_class, row, fleet):
                mask = np.ones(fleet.rows.capacity, bool) if mask is None else mask
                mask[row] = False
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        self._renew(fleet)
        return not self._by_node or not self._obstacle(pod_class, row, fleet)

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        self._renew(fleet)
        obstacle = self._obstacle(pod_class, row, fleet)
        if obstacle is None:
            raise LookupError("the pod fits")
        titles = [each.title for each in self._rivals(pod_class, fleet.rows.node(row).name)]
        return WithNominated(tuple(titles), obstacle)

    def _obstacle(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle | None:
        """The obstacle with the nominated pods booked; None if there is none."""
        rivals = self._rivals(pod_class, fleet.rows.node(row).name)
        if not rivals:
            return None
        namesakes = sum(each.pod_class.namespace == pod_class.namespace for each in rivals)
        if uneven := self._spread.uneven_beside(namesakes, pod_class, row, fleet):
            return uneven
        peers = self._peers
        if not self._interpod.concerns(pod_class, fleet):
            # The scheduler skips a filter that has nothing to check before the nominated pods are added.
            peers = tuple([each for each in peers if each is not self._interpod])
        with fleet.fork():
            for each in rivals:
                fleet.add(each.pod_class, row)
            refusing = (each for each in peers if not each.fits(pod_class, row, fleet))
            return next((each.why(pod_class, row, fleet) for each in refusing), None)

    def _rivals(self, pod_class: PodClass, node_name: str) -> list[_Nomination]:
        return [
            each
            for each in self._by_node.get(node_name, ())
            if each.pod_class.priority >= pod_class.priority
            and each.uid != self._asking
            and each.uid not in self._used_up
        ]

    def _renew(self, fleet: Snapshot) -> None:
        if fleet.sightings == self._sighting:
            return
        self._sighting = fleet.sightings
        self._used_up.clear()
        nominations = defaultdict(list)
        for pod in fleet.nominated:
            # A gated pod has not been evaluated by the scheduler.
            if not pod.spec.scheduling_gates:
                nomination = _Nomination(pod.metadata.uid, pod.title, fleet.classes.of(pod))
                nominations[pod.status.nominated_node_name].append(nomination)
        self._by_node = dict(sorted(nominations.items()))
        for each in self._by_node.values():
            each.sort(key=lambda one: (one.title, one.uid))
