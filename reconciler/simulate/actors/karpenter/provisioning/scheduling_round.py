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
from reconciler.simulate.actors.karpenter.cloud import sold_as_asked
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.instance_types import InstanceType
from reconciler.simulate.actors.karpenter.machines import NODES
from reconciler.simulate.actors.karpenter.node_pools import NodePool
from reconciler.simulate.actors.karpenter.provisioning.existing_nodes import Standing
from reconciler.simulate.actors.karpenter.provisioning.new_claim import Opened, Sold, imagined
from reconciler.simulate.actors.karpenter.provisioning.overhead import overhead_of
from reconciler.simulate.actors.karpenter.provisioning.pod_requirements import Wanting, wanting


class Found(msgspec.Struct, frozen=True):
    """What came of it."""

    opened: tuple[Opened, ...]
    claims: dict[str, tuple[Pod, ...]]  # claim -> pods that go to its node, which is there or on its way


class Terms(msgspec.Struct, frozen=True):
    """Which pods, by uid, need not find a place, and which may find one on a node that is not ready yet."""

    may_stay: Collection[str]
    may_wait: Collection[str]


def look(known: Knowledge, pods: Sequence[Pod]) -> Found:
    """Where pods would go; nothing is changed by it."""
    what_if = known.what_if()
    with what_if.fork():
        look = _Look(known, what_if, pods, ())
        look.run()
        return look.found()


def look_without(known: Knowledge, pods: Sequence[Pod], going: Collection[str], terms: Terms) -> Found | None:
    """The same if the nodes of the claims `going` were gone; None as soon as it is clear that a term is not kept."""
    what_if = known.what_if()
    with what_if.fork():
        look = _Look(known, what_if, pods, going)
        return look.found() if look.run(terms) else None


class _Look:
    def __init__(self, known: Knowledge, what_if: Snapshot, pods: Sequence[Pod], going: Collection[str]) -> None:
        self._known = known
        self._what_if = what_if
        self._wanting: dict[PodClass, Wanting] = {}
        self._queue = deque(sorted(pods, key=self._rank))
        self._pools = tuple(each for each in known.pools.in_order() if each.replicas is None)
        self._tolerances = (False, True) if any(each.prefers for each in self._pools) else (False,)
        self._sold = {each.name: on_offer(each, known) for each in self._pools}
        self._left = {each.name: _minus(each.limits, known, each.name) for each in self._pools if each.limits}
        self._standing = Standing(known, what_if, going)
        self._opened: list[Opened] = []
        self._hopeless: set[PodClass] = set()
        self._placed: dict[str, list[Pod]] = {}
        self._on_coming: list[Pod] = []
        if any(each.spec.topology_spread_constraints for each in pods):
            self._imagine_domains()

    def run(self, terms: Terms | None = None) -> bool:
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

    def _breaks(self, pod: Pod, terms: Terms) -> bool:
        """Whether a pod that was just looked at has found no place, and never will, or one that is not ready."""
        uid, on_coming = pod.metadata.uid, self._on_coming
        if self._asked(pod).pod_class in self._hopeless and uid not in terms.may_stay:
            return True
        return bool(on_coming) and on_coming[-1] is pod and uid not in terms.may_wait

    def found(self) -> Found:
        """What came of it so far."""
        placed = {claim: tuple(pods) for claim, pods in self._placed.items()}
        in_order = sorted(self._opened, key=lambda each: each.name)
        return Found(tuple(in_order), placed)

    def _rank(self, pod: Pod) -> tuple[int, int, str, str]:
        request = self._asked(pod).request
        return -request.get(CPU, 0), -request.get(MEMORY, 0), pod.metadata.creation_timestamp, pod.title

    def _asked(self, pod: Pod) -> Wanting:
        pod_class = self._what_if.classes.of(pod).anew
        found = self._wanting.get(pod_class)
        if found is None:
            found = self._wanting[pod_class] = wanting(pod, self._what_if)
        return found

    def _place(self, pod: Pod) -> bool:
        asked = self._asked(pod)
        if asked.pod_class in self._hopeless:
            return False
        for tolerant in self._tolerances:
            if self._onto_standing(pod, asked, tolerant):
                return True
            for demands in asked.alternatives:
                if self._into_opened(pod, asked, demands, tolerant) or self._into_new(pod, asked, demands, tolerant):
                    return True
        if asked.is_plain:  # room only shrinks
            self._hopeless.add(asked.pod_class)
        return False

    def _onto_standing(self, pod: Pod, asked: Wanting, tolerant: bool) -> bool:
        row = self._standing.put(asked.pod_class, tolerant)
        if row is None:
            return False
        if claim := self._standing.claim_at(row):
            self._placed.setdefault(claim, []).append(pod)
        if self._standing.is_coming(row):
            self._on_coming.append(pod)
        return True

    def _into_opened(self, pod: Pod, asked: Wanting, demands: Demands, tolerant: bool) -> bool:
        self._opened.sort(key=lambda each: len(each.pods))
        for each in self._opened:
            if fit := each.fit(asked, demands, self._what_if, tolerant):
                each.add(pod, asked, fit, self._what_if)
                return True
        return False

    def _into_new(self, pod: Pod, asked: Wanting, demands: Demands, tolerant: bool) -> bool:
        for pool in self._pools:
            sold = self._within_limits(pool)
            if not sold:
                continue
            overhead = overhead_of(self._known.daemons(), pool, self._what_if)
            opened = Opened(f"{len(self._opened):05d}", pool, sold, overhead)
            if fit := opened.fit(asked, demands, self._what_if, tolerant):
                opened.add(pod, asked, fit, self._what_if)
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
                self._what_if.bring(imagined(f"zone/{pool.name}/{zone}", labels, pool, self._what_if))


def on_offer(pool: NodePool, known: Knowledge) -> tuple[Sold, ...]:
    """What Karpenter takes to be there of what a NodePool could buy."""
    found = []
    for machine in pool.types:
        offerings = known.cloud.known(machine, known.now)
        there = tuple(each for each in offerings if sold_as_asked(each, pool.demands))
        if there:
            found.append(Sold(machine, there))
    return tuple(found)


def _minus(limits: Mapping[str, int], known: Knowledge, pool: str) -> dict[str, int]:
    used = known.machines.used(pool, limits)
    return {name: most - used[name] for name, most in limits.items()}


def _size(machine: InstanceType, resource: str) -> int:
    return 0 if resource == NODES else machine.size.get(resource, 0)
