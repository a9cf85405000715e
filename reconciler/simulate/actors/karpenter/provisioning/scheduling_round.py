"""Owner of one look for places: pods go to nodes that stand, then to claims that are being filled, then to new ones.

Large pods come first. Of the claims that are being filled the emptiest is tried first; a new one is of the first
NodePool, by weight, that could buy a machine for the pod. Where a pod finds no place it is tried again after the
others, as long as any of them makes progress.
"""

from collections import deque
from collections.abc import Collection, Mapping, Sequence

import msgspec

from reconciler.fleet.amounts import CPU, MEMORY
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.plan.karpenter.requirements import Demands
from reconciler.simulate.actors.karpenter.cloud import matches_demands
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.instance_types import KarpenterInstanceType
from reconciler.simulate.actors.karpenter.machines import NODES
from reconciler.simulate.actors.karpenter.node_pools import NodePool
from reconciler.simulate.actors.karpenter.provisioning.existing_nodes import ExistingCapacity
from reconciler.simulate.actors.karpenter.provisioning.new_claim import NewNodeClaim, Sold, imagined
from reconciler.simulate.actors.karpenter.provisioning.overhead import overhead_of
from reconciler.simulate.actors.karpenter.provisioning.pod_requirements import PodRequirements, wanting


class SchedulingResult(msgspec.Struct, frozen=True):
    """What came of it."""

    opened: tuple[NewNodeClaim, ...]
    claims: dict[str, tuple[Pod, ...]]  # claim -> pods that go to its node, which is there or on its way


class SchedulingExemptions(msgspec.Struct, frozen=True):
    """Which pods, by uid, need not find a place, and which may find one on a node that is not ready yet."""

    may_stay: Collection[str]
    may_wait: Collection[str]


def look(known: Knowledge, pods: Sequence[Pod]) -> SchedulingResult:
    """Where pods would go; nothing is changed by it."""
    snapshot = known.snapshot()
    with snapshot.fork():
        look = _Look(known, snapshot, pods, ())
        look.run()
        return look.result()


def look_without(
    known: Knowledge, pods: Sequence[Pod], leaving: Collection[str], terms: SchedulingExemptions
) -> SchedulingResult | None:
    """The same if the nodes of the claims `leaving` were gone; None as soon as it is clear that a term is not kept."""
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
        self._left = {each.name: _minus(each.limits, known, each.name) for each in self._pools if each.limits}
        self._existing_capacity = ExistingCapacity(known, snapshot, leaving)
        self._opened: list[NewNodeClaim] = []
        self._hopeless: set[PodClass] = set()
        self._placed: dict[str, list[Pod]] = {}
        self._on_coming: list[Pod] = []
        if any(each.spec.topology_spread_constraints for each in pods):
            self._imagine_domains()

    def run(self, terms: SchedulingExemptions | None = None) -> bool:
        """All pods, until none of those that are left makes progress; whether the terms were kept."""
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
        """Whether a pod that was just looked at has found no place, and never will, or one that is not ready."""
        uid, on_coming = pod.metadata.uid, self._on_coming
        if self._requirements_of(pod).pod_class in self._hopeless and uid not in terms.may_stay:
            return True
        return bool(on_coming) and on_coming[-1] is pod and uid not in terms.may_wait

    def result(self) -> SchedulingResult:
        """What came of it so far."""
        placed = {claim: tuple(pods) for claim, pods in self._placed.items()}
        in_order = sorted(self._opened, key=lambda each: each.name)
        return SchedulingResult(tuple(in_order), placed)

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
        if requirements.is_plain:  # room only shrinks
            self._hopeless.add(requirements.pod_class)
        return False

    def _onto_existing(self, pod: Pod, requirements: PodRequirements, tolerant: bool) -> bool:
        row = self._existing_capacity.put(requirements.pod_class, tolerant)
        if row is None:
            return False
        if claim := self._existing_capacity.claim_at(row):
            self._placed.setdefault(claim, []).append(pod)
        if self._existing_capacity.is_coming(row):
            self._on_coming.append(pod)
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
        """The largest that could come is counted; how many nodes there are is only counted once they are launched."""
        left = self._left.get(pool.name, {})
        for name in left:
            left[name] -= max(_size(each.machine, name) for each in sold)

    def _imagine_domains(self) -> None:
        """A zone in which a node could be bought counts as one to spread over, though there is no node yet."""
        for pool in self._pools:
            for zone in sorted({each.zone for sold in self._sold[pool.name] for each in sold.offerings}):
                labels = pool.labels | {names.ZONE: zone}
                self._snapshot.bring(imagined(f"zone/{pool.name}/{zone}", labels, pool, self._snapshot))


def on_offer(pool: NodePool, known: Knowledge) -> tuple[Sold, ...]:
    """What Karpenter takes to be there of what a NodePool could buy."""
    solds = []
    for machine in pool.types:
        offerings = known.cloud.known(machine, known.now)
        there = tuple(each for each in offerings if matches_demands(each, pool.demands))
        if there:
            solds.append(Sold(machine, there))
    return tuple(solds)


def _minus(limits: Mapping[str, int], known: Knowledge, pool: str) -> dict[str, int]:
    used = known.machines.used(pool, limits)
    return {name: most - used[name] for name, most in limits.items()}


def _size(machine: KarpenterInstanceType, resource: str) -> int:
    return 0 if resource == NODES else machine.size.get(resource, 0)
