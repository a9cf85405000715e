"""Owner of one scheduling simulation: pods go to existing nodes, then to open claims, then to new claims.

Large pods come first. Among open claims, the emptiest is tried first; a new claim is of the first NodePool by weight
with a suitable machine. A pod without a place is retried after the others while there is progress.
"""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY
from reconciler.fleet.filters.node import Ports
from reconciler.fleet.filters.pod_topology import InterPod, SpreadFilter
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.filters.volumes import VolumePlaces
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeStatus
from reconciler.model.cluster.pod import Pod
from reconciler.plan.karpenter.drift import Demands
from reconciler.simulate.actors.karpenter.cloud import (
    WELL_KNOWN,
    KarpenterInstanceType,
    MarketOffering,
    compatible,
    intersects,
    joined,
    matches_demands,
    one_of,
)
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge, NodePool
from reconciler.simulate.actors.karpenter.existing_nodes import (
    ExistingCapacity,
    PodRequirements,
    crowding,
    hangs_on_zone,
    overhead_of,
    shut_out,
    wanting,
)
from reconciler.simulate.actors.karpenter.machines import NODES

# --- Owner of one open NodeClaim: its pods, and its remaining options.
#
# Each pod narrows the instance types to those with room for all pods, and the possible labels. The zone stays open
# until a pod depends on it.

_PLENTY = str(10**12)
_JUDGED: tuple[type[Predicate], ...] = (Ports, InterPod, SpreadFilter, VolumePlaces)


class Sold(msgspec.Struct, frozen=True):
    """An instance type, and its offerings that Karpenter believes available."""

    machine: KarpenterInstanceType
    offerings: tuple[MarketOffering, ...]


class Fit(msgspec.Struct, frozen=True):
    """The state of a claim with one more pod."""

    demands: Demands
    sold: tuple[Sold, ...]
    zone: str


class NewNodeClaim:
    """`overhead`: DaemonSet overhead of the node."""

    def __init__(self, name: str, pool: NodePool, sold: tuple[Sold, ...], overhead: Mapping[str, int]) -> None:
        self.name = name
        self.pool = pool
        self.sold = sold
        # A hostname of its own, for affinity and anti-affinity terms.
        self.demands: Demands = {**pool.demands, names.HOSTNAME: one_of((name,))}
        self.pods: list[Pod] = []
        self.used = dict(overhead)
        self._zone = ""
        self._row = -1
        self._taken: list[PodRequirements] = []

    def fit(self, requirements: PodRequirements, demands: Demands, snapshot: Snapshot, tolerant: bool) -> Fit | None:
        """None if the pod does not fit."""
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
        """The zones to try; an empty zone means any."""
        if self._zone or not hangs_on_zone(requirements.pod_class, snapshot):
            return (self._zone,)
        crowd = crowding(requirements.pod_class, snapshot)
        return sorted({*_zones_of(self.sold, demands)}, key=lambda zone: (crowd(zone), zone))

    def _gets_on(self, requirements: PodRequirements, zone: str, snapshot: Snapshot) -> bool:
        """Whether inter-pod terms allow the pod."""
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
        """Adds a virtual node, so that other pods see these pods."""
        if self._row >= 0:
            snapshot.take_away(self._row)
        labels = self.pool.labels | {names.HOSTNAME: self.name} | ({names.ZONE: zone} if zone else {})
        self._row = snapshot.bring(imagined(f"new/{self.name}/{zone}", labels, self.pool, snapshot))
        for each in self._taken:
            snapshot.add(each.pod_class, self._row)


def imagined(name: str, labels: dict[str, str], pool: NodePool, snapshot: Snapshot) -> Node:
    """A node of a NodePool with unlimited capacity."""
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


class SchedulingResult(msgspec.Struct, frozen=True):
    opened: tuple[NewNodeClaim, ...]
    claims: tuple[str, ...]  # of the nodes, existing or launching, that get pods


class SchedulingExemptions(msgspec.Struct, frozen=True):
    """Pods, by uid, that may stay without a node, and pods that may go to a node that is not ready yet."""

    may_stay: Collection[str]
    may_wait: Collection[str]


def look(known: Knowledge, pods: Sequence[Pod]) -> SchedulingResult:
    """Where pods would be placed; without side effects."""
    snapshot = known.snapshot()
    with snapshot.fork():
        look = _Look(known, snapshot, pods, ())
        look.run()
        return look.result()


def look_without(
    known: Knowledge, pods: Sequence[Pod], leaving: Collection[str], terms: SchedulingExemptions
) -> SchedulingResult | None:
    """The same without the nodes of the claims `leaving`; None as soon as a required pod has no place."""
    snapshot = known.snapshot()
    with snapshot.fork():
        look = _Look(known, snapshot, pods, leaving)
        return look.result() if look.run(terms) else None


class _Look:
    def __init__(self, known: Knowledge, snapshot: Snapshot, pods: Sequence[Pod], leaving: Collection[str]) -> None:
        self._known = known
        self._snapshot = snapshot
        self._wanting: dict[PodClass, PodRequirements] = {}
        self._queue = deque(sorted(pods, key=self._rank))
        self._pools = tuple(each for each in known.pools.in_order() if each.replicas is None)
        self._tolerances = (False, True) if any(each.prefers for each in self._pools) else (False,)
        self._sold = {each.name: on_offer(each, known) for each in self._pools}
        self._left = {
            each.name: {name: most - known.machines.total(each.name, name) for name, most in each.limits.items()}
            for each in self._pools
            if each.limits
        }
        self._existing_capacity = ExistingCapacity(known, snapshot, leaving)
        self._opened: list[NewNodeClaim] = []
        self._hopeless: set[PodClass] = set()
        self._placed: dict[str, None] = {}  # claims of existing or launching nodes
        self._on_coming: Pod | None = None  # the last pod on a node that is not ready yet
        if any(each.spec.topology_spread_constraints for each in pods):
            self._imagine_domains()

    def run(self, terms: SchedulingExemptions | None = None) -> bool:
        """Schedules all pods until there is no more progress; returns whether the terms hold."""
        queue, tried = self._queue, dict[str, int]()
        while queue and tried.get(queue[0].metadata.uid) != len(queue):
            pod = queue.popleft()
            if not self._place(pod):
                queue.append(pod)
                tried[pod.metadata.uid] = len(queue)
            if terms is not None and self._breaks(pod, terms):
                return False
        return terms is None or all(pod.metadata.uid in terms.may_stay for pod in queue)

    def _breaks(self, pod: Pod, terms: SchedulingExemptions) -> bool:
        """Whether the pod has permanently no place, or only one that is not ready."""
        uid = pod.metadata.uid
        if self._requirements_of(pod).pod_class in self._hopeless and uid not in terms.may_stay:
            return True
        return self._on_coming is pod and uid not in terms.may_wait

    def result(self) -> SchedulingResult:
        in_order = sorted(self._opened, key=lambda each: each.name)
        return SchedulingResult(tuple(in_order), tuple(self._placed))

    def _rank(self, pod: Pod) -> tuple[int, int, str, str]:
        request = self._requirements_of(pod).request
        return -request.get(CPU, 0), -request.get(MEMORY, 0), pod.metadata.creation_timestamp, pod.title

    def _requirements_of(self, pod: Pod) -> PodRequirements:
        pod_class = self._snapshot.classes.of(pod).anew
        requirements = self._wanting.get(pod_class)
        if requirements is None:
            requirements = self._wanting[pod_class] = wanting(pod, self._snapshot)
        return requirements

    def _place(self, pod: Pod) -> bool:
        requirements = self._requirements_of(pod)
        if requirements.pod_class in self._hopeless:
            return False
        for tolerant in self._tolerances:
            if self._onto_existing(pod, requirements, tolerant):
                return True
            for demands in requirements.alternatives:
                if self._into_opened(pod, requirements, demands, tolerant) or self._into_new(
                    pod, requirements, demands, tolerant
                ):
                    return True
        if requirements.is_plain:  # free capacity only decreases
            self._hopeless.add(requirements.pod_class)
        return False

    def _onto_existing(self, pod: Pod, requirements: PodRequirements, tolerant: bool) -> bool:
        row = self._existing_capacity.put(requirements.pod_class, tolerant)
        if row is None:
            return False
        if claim := self._existing_capacity.claim_at(row):
            self._placed[claim] = None
        if self._existing_capacity.is_coming(row):
            self._on_coming = pod
        return True

    def _into_opened(self, pod: Pod, requirements: PodRequirements, demands: Demands, tolerant: bool) -> bool:
        self._opened.sort(key=lambda each: len(each.pods))
        for each in self._opened:
            if fit := each.fit(requirements, demands, self._snapshot, tolerant):
                each.add(pod, requirements, fit, self._snapshot)
                return True
        return False

    def _into_new(self, pod: Pod, requirements: PodRequirements, demands: Demands, tolerant: bool) -> bool:
        for pool in self._pools:
            sold = self._within_limits(pool)
            if not sold:
                continue
            overhead = overhead_of(self._known.daemons(), pool, self._snapshot)
            opened = NewNodeClaim(f"{len(self._opened):05d}", pool, sold, overhead)
            if fit := opened.fit(requirements, demands, self._snapshot, tolerant):
                opened.add(pod, requirements, fit, self._snapshot)
                self._opened.append(opened)
                self._spend(pool, opened.sold)
                return True
        return False

    def _within_limits(self, pool: NodePool) -> tuple[Sold, ...]:
        left = self._left.get(pool.name)
        if left is None:
            return self._sold[pool.name]
        if any(amount < 0 for amount in left.values()) or left.get(NODES) == 0:
            return ()
        return tuple(
            each
            for each in self._sold[pool.name]
            if all(_size(each.machine, name) <= amount for name, amount in left.items())
        )

    def _spend(self, pool: NodePool, sold: Sequence[Sold]) -> None:
        """Counts the largest possible machine; the number of nodes is only counted at launch."""
        left = self._left.get(pool.name, {})
        for name in left:
            left[name] -= max(_size(each.machine, name) for each in sold)

    def _imagine_domains(self) -> None:
        """Adds zones without nodes as spread domains if nodes could be launched there."""
        for pool in self._pools:
            for zone in sorted({each.zone for sold in self._sold[pool.name] for each in sold.offerings}):
                labels = pool.labels | {names.ZONE: zone}
                self._snapshot.bring(imagined(f"zone/{pool.name}/{zone}", labels, pool, self._snapshot))


def on_offer(pool: NodePool, known: Knowledge) -> tuple[Sold, ...]:
    """The NodePool's offerings that Karpenter believes available."""
    offered = ((machine, known.cloud.known(machine, known.now)) for machine in pool.types)
    solds = (
        Sold(machine, tuple(each for each in offers if matches_demands(each, pool.demands)))
        for machine, offers in offered
    )
    return tuple(each for each in solds if each.offerings)


def _size(machine: KarpenterInstanceType, resource: str) -> int:
    return 0 if resource == NODES else machine.size.get(resource, 0)
