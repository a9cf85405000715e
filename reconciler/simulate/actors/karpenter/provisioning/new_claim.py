"""Owner of one NodeClaim that is being filled: the pods on it, and what it can still become.

Each pod narrows it: to the instance types that have room for all, and to what their labels may be. The zone stays open
until a pod comes to which it matters.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.fleet.filters.interpod import InterPod
from reconciler.fleet.filters.ports import Ports
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.filters.spread import SpreadFilter
from reconciler.fleet.filters.volumes import VolumePlaces
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeStatus
from reconciler.model.cluster.pod import Pod
from reconciler.plan.karpenter.requirements import Demands
from reconciler.simulate.actors.karpenter.cloud import matches_demands
from reconciler.simulate.actors.karpenter.instance_types import KarpenterInstanceType
from reconciler.simulate.actors.karpenter.node_pools import NodePool
from reconciler.simulate.actors.karpenter.provisioning.existing_nodes import shut_out
from reconciler.simulate.actors.karpenter.provisioning.pod_requirements import PodRequirements, crowding, hangs_on_zone
from reconciler.simulate.actors.karpenter.requirements import WELL_KNOWN, compatible, intersects, joined, one_of
from reconciler.simulate.market import MarketOffering

_PLENTY = str(10**12)
_JUDGED: tuple[type[Predicate], ...] = (Ports, InterPod, SpreadFilter, VolumePlaces)


class Sold(msgspec.Struct, frozen=True):
    """An instance type, and where Karpenter takes it to be there."""

    machine: KarpenterInstanceType
    offerings: tuple[MarketOffering, ...]


class Fit(msgspec.Struct, frozen=True):
    """What a claim would become with one pod more."""

    demands: Demands
    sold: tuple[Sold, ...]
    zone: str


class NewNodeClaim:
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
        self._taken: list[PodRequirements] = []

    def fit(self, requirements: PodRequirements, demands: Demands, snapshot: Snapshot, tolerant: bool) -> Fit | None:
        """None where it does not fit."""
        if shut_out(self.pool.taints, requirements.pod_class.pod, tolerant):
            return None
        narrowed = self.demands
        if demands:
            if not compatible(self.demands, demands, WELL_KNOWN | self._known()):
                return None
            narrowed = joined(self.demands, demands)
        if requirements.is_plain:
            return self._with(narrowed, requirements.request, self._zone)
        for zone in self._zones(requirements, narrowed, snapshot):
            settled = joined(narrowed, {names.ZONE: one_of((zone,))}) if zone else narrowed
            if (fit := self._with(settled, requirements.request, zone)) and self._gets_on(requirements, zone, snapshot):
                return fit
        return None

    def add(self, pod: Pod, requirements: PodRequirements, fit: Fit, snapshot: Snapshot) -> None:
        """One more; it fits."""
        if self._row < 0 or fit.zone != self._zone:
            self._stand(fit.zone, snapshot)
        self.demands, self.sold, self._zone = fit.demands, fit.sold, fit.zone
        self.pods.append(pod)
        self._taken.append(requirements)
        for name, amount in requirements.request.items():
            self.used[name] = self.used.get(name, 0) + amount
        snapshot.add(requirements.pod_class, self._row)

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

    def _zones(self, requirements: PodRequirements, demands: Demands, snapshot: Snapshot) -> Iterable[str]:
        """Those to try; nothing stands for whichever comes."""
        if self._zone or not hangs_on_zone(requirements.pod_class, snapshot):
            return (self._zone,)
        crowd = crowding(requirements.pod_class, snapshot)
        return sorted({*_zones_of(self.sold, demands)}, key=lambda zone: (crowd(zone), zone))

    def _gets_on(self, requirements: PodRequirements, zone: str, snapshot: Snapshot) -> bool:
        """Whether other pods, here and elsewhere, have nothing against it."""
        if zone == self._zone and self._row >= 0:
            return self._agrees(requirements, snapshot)
        before = self._row
        with snapshot.fork():
            self._stand(zone, snapshot)
            result = self._agrees(requirements, snapshot)
        self._row = before
        return result

    def _agrees(self, requirements: PodRequirements, snapshot: Snapshot) -> bool:
        return all(snapshot.part(each).fits(requirements.pod_class, self._row, snapshot) for each in _JUDGED)

    def _stand(self, zone: str, snapshot: Snapshot) -> None:
        """An imagined node, where other pods can see who is on it."""
        if self._row >= 0:
            snapshot.take_away(self._row)
        labels = self.pool.labels | {names.HOSTNAME: self.name} | ({names.ZONE: zone} if zone else {})
        self._row = snapshot.bring(imagined(f"new/{self.name}/{zone}", labels, self.pool, snapshot))
        for each in self._taken:
            snapshot.add(each.pod_class, self._row)


def imagined(name: str, labels: dict[str, str], pool: NodePool, snapshot: Snapshot) -> Node:
    """A node of a NodePool with room for anything."""
    plenty = dict.fromkeys(snapshot.classes.columns, _PLENTY)
    return Node(Metadata(name, labels=labels), NodeSpec(taints=pool.taints), NodeStatus(allocatable=plenty))


def _zones_of(sold: Iterable[Sold], demands: Demands) -> Iterator[str]:
    for each in sold:
        for offering in each.offerings:
            if matches_demands(offering, demands):
                yield offering.zone


def _is_sold(sold: Sold, demands: Demands) -> bool:
    return intersects(sold.machine.demands, demands) and any(matches_demands(each, demands) for each in sold.offerings)


def _has_room(room: Mapping[str, int], used: Mapping[str, int], request: Mapping[str, int]) -> bool:
    return all(used.get(name, 0) + amount <= room.get(name, 0) for name, amount in request.items())
