"""Owner of one NodeClaim that is being filled: the pods on it, and what it can still become.

Each pod narrows it: to the instance types that have room for all, and to what their labels may be. The zone stays open
until a pod comes to which it matters.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.fleet.filters.interpod import InterPod
from reconciler.fleet.filters.ports import Ports
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.filters.spread import Spread
from reconciler.fleet.filters.volumes import VolumePlaces
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeStatus
from reconciler.model.cluster.pod import Pod
from reconciler.plan.karpenter.requirements import Demands
from reconciler.simulate.actors.karpenter.cloud import sold_as_asked
from reconciler.simulate.actors.karpenter.instance_types import InstanceType
from reconciler.simulate.actors.karpenter.node_pools import NodePool
from reconciler.simulate.actors.karpenter.provisioning.existing_nodes import shut_out
from reconciler.simulate.actors.karpenter.provisioning.pod_requirements import Wanting, crowding, hangs_on_zone
from reconciler.simulate.actors.karpenter.requirements import WELL_KNOWN, compatible, intersects, joined, one_of
from reconciler.simulate.market import Offering

_PLENTY = str(10**12)
_JUDGED: tuple[type[Predicate], ...] = (Ports, InterPod, Spread, VolumePlaces)


class Sold(msgspec.Struct, frozen=True):
    """An instance type, and where Karpenter takes it to be there."""

    machine: InstanceType
    offerings: tuple[Offering, ...]


class Fit(msgspec.Struct, frozen=True):
    """What a claim would become with one pod more."""

    demands: Demands
    sold: tuple[Sold, ...]
    zone: str


class Opened:
    """`overhead` is what DaemonSets will take of the node."""

    def __init__(self, name: str, pool: NodePool, sold: tuple[Sold, ...], overhead: Mapping[str, int]) -> None:
        self.name = name
        self.pool = pool
        self.sold = sold
        # It will be a node of its own: whoever wants to be on another, or on none of the others, can tell.
        self.demands: Demands = {**pool.demands, names.HOSTNAME: one_of((name,))}
        self.pods: list[Pod] = []
        self.used = dict(overhead)
        self._zone = ""
        self._row = -1
        self._taken: list[Wanting] = []

    def fit(self, asked: Wanting, demands: Demands, what_if: Snapshot, tolerant: bool) -> Fit | None:
        """None where it does not fit."""
        if shut_out(self.pool.taints, asked.pod_class.pod, tolerant):
            return None
        narrowed = self.demands
        if demands:
            if not compatible(self.demands, demands, WELL_KNOWN | self._known()):
                return None
            narrowed = joined(self.demands, demands)
        if asked.is_plain:
            return self._with(narrowed, asked.request, self._zone)
        for zone in self._zones(asked, narrowed, what_if):
            settled = joined(narrowed, {names.ZONE: one_of((zone,))}) if zone else narrowed
            if (fit := self._with(settled, asked.request, zone)) and self._gets_on(asked, zone, what_if):
                return fit
        return None

    def add(self, pod: Pod, asked: Wanting, fit: Fit, what_if: Snapshot) -> None:
        """One more; it fits."""
        if self._row < 0 or fit.zone != self._zone:
            self._stand(fit.zone, what_if)
        self.demands, self.sold, self._zone = fit.demands, fit.sold, fit.zone
        self.pods.append(pod)
        self._taken.append(asked)
        for name, amount in asked.request.items():
            self.used[name] = self.used.get(name, 0) + amount
        what_if.add(asked.pod_class, self._row)

    def _known(self) -> frozenset[str]:
        return frozenset(self.sold[0].machine.labels) if self.sold else frozenset()

    def _with(self, demands: Demands, request: Mapping[str, int], zone: str) -> Fit | None:
        is_same = demands is self.demands
        sold = tuple(
            each
            for each in self.sold
            if _has_room(each.machine.room, self.used, request) and (is_same or _is_sold(each, demands))
        )
        return Fit(demands, sold, zone) if sold and self.pool.is_varied(each.machine for each in sold) else None

    def _zones(self, asked: Wanting, demands: Demands, what_if: Snapshot) -> Iterable[str]:
        """Those to try; nothing stands for whichever comes."""
        if self._zone or not hangs_on_zone(asked.pod_class, what_if):
            return (self._zone,)
        crowd = crowding(asked.pod_class, what_if)
        return sorted({*_zones_of(self.sold, demands)}, key=lambda zone: (crowd(zone), zone))

    def _gets_on(self, asked: Wanting, zone: str, what_if: Snapshot) -> bool:
        """Whether other pods, here and elsewhere, have nothing against it."""
        if zone == self._zone and self._row >= 0:
            return self._agrees(asked, what_if)
        before = self._row
        with what_if.fork():
            self._stand(zone, what_if)
            found = self._agrees(asked, what_if)
        self._row = before
        return found

    def _agrees(self, asked: Wanting, what_if: Snapshot) -> bool:
        return all(what_if.part(each).fits(asked.pod_class, self._row, what_if) for each in _JUDGED)

    def _stand(self, zone: str, what_if: Snapshot) -> None:
        """An imagined node, where other pods can see who is on it."""
        if self._row >= 0:
            what_if.take_away(self._row)
        labels = self.pool.labels | {names.HOSTNAME: self.name} | ({names.ZONE: zone} if zone else {})
        self._row = what_if.bring(imagined(f"new/{self.name}/{zone}", labels, self.pool, what_if))
        for each in self._taken:
            what_if.add(each.pod_class, self._row)


def imagined(name: str, labels: dict[str, str], pool: NodePool, what_if: Snapshot) -> Node:
    """A node of a NodePool with room for anything."""
    plenty = dict.fromkeys(what_if.classes.columns, _PLENTY)
    return Node(Metadata(name, labels=labels), NodeSpec(taints=pool.taints), NodeStatus(allocatable=plenty))


def _zones_of(sold: Iterable[Sold], demands: Demands) -> Iterator[str]:
    for each in sold:
        for offering in each.offerings:
            if sold_as_asked(offering, demands):
                yield offering.zone


def _is_sold(sold: Sold, demands: Demands) -> bool:
    return intersects(sold.machine.demands, demands) and any(sold_as_asked(each, demands) for each in sold.offerings)


def _has_room(room: Mapping[str, int], used: Mapping[str, int], request: Mapping[str, int]) -> bool:
    return all(used.get(name, 0) + amount <= room.get(name, 0) for name, amount in request.items())
