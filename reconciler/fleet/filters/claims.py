"""Predicates for claims: ResourceClaims of dynamic resource allocation, and GpuClaims."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import ClassVar

import msgspec
import numpy as np

from reconciler.fleet.node_terms import readable, term_holds
from reconciler.fleet.obstacles import (
    ClaimState,
    DeviceClaimUnusable,
    DevicesElsewhere,
    DevicesNotAllocated,
    DevicesNotReady,
    DevicesUnread,
    GpusOfNodeLent,
    NotInPoolOfClaim,
    OwnDeviceClaimNotMade,
)
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.rows import ABSENT, Mask, NodeRows
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.term_masks import term_mask
from reconciler.model import names
from reconciler.model.cluster.pod import NodeSelector, Pod, PodClaim
from reconciler.model.cluster.volumes import ResourceClaim
from reconciler.model.plan.decision import Obstacle

# --- Dynamic resource allocation: a pod may run where its claims are allocated.
#
# Allocation of devices is not simulated: a pod with an unallocated claim fits nowhere, with an obstacle that says so.

TITLE = "resourceclaims.resource.k8s.io"


class Claimed(msgspec.Struct, frozen=True):
    """The requirements of a pod's claims."""

    nowhere: Obstacle | None = None
    unmodelled: Obstacle | None = None
    met: tuple[tuple[str, NodeSelector | None], ...] = ()  # names of allocated claims, and their nodes


_NONE = Claimed()


class ResourceClaimFilter:
    """The observed claims by name, and the requirements of each class."""

    name: ClassVar[str] = "resource claims"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._resource_claims: tuple[ResourceClaim, ...] | None = None
        self._unread = ""
        self._by_name: dict[tuple[str, str], ResourceClaim] = {}
        self._claimed: dict[PodClass, Claimed] = {}

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return bool(pod_class.pod.spec.resource_claims)

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        claimed = self.claimed(pod_class, fleet)
        if claimed is _NONE:
            return None
        mask: Mask = np.full(fleet.rows.capacity, not (claimed.nowhere or claimed.unmodelled))
        for _, selector in claimed.met:
            if selector is not None:
                one: Mask = np.zeros(fleet.rows.capacity, bool)
                for term in selector.node_selector_terms:
                    if readable(term):
                        one |= term_mask(term, fleet.rows)
                mask &= one
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        claimed = self.claimed(pod_class, fleet)
        if claimed is _NONE:
            return True
        return not (claimed.nowhere or claimed.unmodelled or self._elsewhere(claimed, row, fleet))

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        claimed = self.claimed(pod_class, fleet)
        elsewhere = self._elsewhere(claimed, row, fleet)
        return claimed.nowhere or claimed.unmodelled or DevicesElsewhere(elsewhere)

    def claimed(self, pod_class: PodClass, fleet: Snapshot) -> Claimed:
        """The requirements of the class' claims, as currently observed."""
        if not pod_class.pod.spec.resource_claims:
            return _NONE
        self._renew(fleet)
        claimed = self._claimed.get(pod_class)
        if claimed is None:
            claimed = self._claimed[pod_class] = self._read(pod_class.pod)
        return claimed

    def _renew(self, fleet: Snapshot) -> None:
        observed = fleet.observed
        unread = observed.why_unread(TITLE)
        if observed.resource_claims is not self._resource_claims or unread != self._unread:
            self._resource_claims, self._unread = observed.resource_claims, unread
            self._by_name = {(each.metadata.namespace, each.metadata.name): each for each in observed.resource_claims}
            self._claimed.clear()

    def _read(self, pod: Pod) -> Claimed:
        if self._unread:
            return Claimed(unmodelled=DevicesUnread(self._unread))
        nowhere: list[Obstacle] = []
        unmodelled: list[Obstacle] = []
        met = []
        for pod_claim in pod.spec.resource_claims:
            name = _name(pod, pod_claim)
            if name is None:
                nowhere.append(OwnDeviceClaimNotMade(pod_claim.name))
            elif name:
                claim = self._by_name.get((pod.metadata.namespace, name))
                title = f"{pod.metadata.namespace}/{name}"
                if claim is None:
                    nowhere.append(DeviceClaimUnusable(title, "absent"))
                elif state := _why_useless(claim, pod, made=not pod_claim.resource_claim_name):
                    nowhere.append(DeviceClaimUnusable(title, state))
                elif why_not := _why_unmodelled(claim, title):
                    unmodelled.append(why_not)
                elif claim.status.allocation is not None:
                    met.append((title, claim.status.allocation.node_selector))
        return Claimed(next(iter(nowhere), None), next(iter(unmodelled), None), tuple(met))

    def _elsewhere(self, claimed: Claimed, row: int, fleet: Snapshot) -> str:
        """A claim that is allocated on other nodes; empty if there is none."""
        node = fleet.rows.node(row)
        for name, selector in claimed.met:
            if selector is not None:
                terms = (term for term in selector.node_selector_terms if readable(term))
                if not any(term_holds(term, node) for term in terms):
                    return name
        return ""


def _name(pod: Pod, pod_claim: PodClaim) -> str | None:
    """The claim's name; None if it does not exist yet, empty if none will be created."""
    if pod_claim.resource_claim_name:
        return pod_claim.resource_claim_name
    statuses = (each for each in pod.status.resource_claim_statuses if each.name == pod_claim.name)
    return next((each.resource_claim_name for each in statuses), None)


def _why_useless(claim: ResourceClaim, pod: Pod, made: bool) -> ClaimState | None:
    if claim.metadata.leaving:
        return "leaving"
    owner = claim.metadata.controller
    if made and (owner is None or owner.uid != pod.metadata.uid):
        return "of another pod"
    return None


def _why_unmodelled(claim: ResourceClaim, title: str) -> Obstacle | None:
    allocation = claim.status.allocation
    if allocation is None:
        return DevicesNotAllocated(title)
    if any(each.binding_conditions for each in allocation.devices.results):
        return DevicesNotReady(title)
    return None


# --- GpuClaims: a pod with a claim needs a pool with the requested GPUs.
#
# The suitable pools follow from policies, not from the cluster, so the caller passes them (`judged`). kube-scheduler
# knows nothing of GpuClaims, so without this information nothing is refused, nor is a claim that the caller does not
# name.

Pools = Mapping[tuple[str, str], frozenset[str]]


class GpuClaims:
    """The suitable pools by claim, while set."""

    name: ClassVar[str] = "GpuClaim"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._pools: Pools = {}
        self._lent: AbstractSet[str] = frozenset()
        self._masks: dict[tuple[int, frozenset[str]], Mask] = {}

    @contextmanager
    def judged(self, pools: Pools, lent: AbstractSet[str]) -> Iterator[None]:
        """Evaluates GpuClaims within the `with` block.

        `pools`: suitable pools, by namespace and name of the claim. `lent`: nodes with lent GPUs, whose free GPUs
        are unknown.
        """
        self._pools, self._lent = pools, lent
        try:
            yield
        finally:
            self._pools, self._lent, self._masks = {}, frozenset(), {}

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return pod_class.gpu_claim in self._pools

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        pools = self._pools.get(pod_class.gpu_claim)
        if pools is None:
            return None
        key = fleet.rows.version, pools
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = self._in_one_of(pools, fleet.rows)
        return mask

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        pools = self._pools.get(pod_class.gpu_claim)
        node = fleet.rows.node(row)
        return pools is None or (node.pool in pools and node.name not in self._lent)

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        node, claim = fleet.rows.node(row), "/".join(pod_class.gpu_claim)
        if node.name in self._lent:
            return GpusOfNodeLent(claim)
        return NotInPoolOfClaim(claim, node.pool or "none")

    def _in_one_of(self, pools: frozenset[str], rows: NodeRows) -> Mask:
        """As in Node.pool: Karpenter's label, or else reconciler's."""
        first, second = rows.column(names.KARPENTER_POOL), rows.column(names.POOL)
        silent = (first == ABSENT) | (first == rows.value_id(names.KARPENTER_POOL, ""))
        mask: Mask = np.isin(first, [rows.value_id(names.KARPENTER_POOL, each) for each in sorted(pools)])
        mask |= silent & np.isin(second, [rows.value_id(names.POOL, each) for each in sorted(pools)])
        for name in self._lent:
            row = rows.row_of.get(name)
            if row is not None:
                mask[row] = False
        return mask
