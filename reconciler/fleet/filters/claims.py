"""Predicates for claims: ResourceClaims of dynamic resource allocation, and GpuClaims."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

import msgspec
import numpy as np

from reconciler.fleet.devices.free_devices import ClaimRequests, FreeDevices
from reconciler.fleet.node_terms import readable, term_holds
from reconciler.fleet.obstacles import (
    ClaimState,
    DeviceClaimUnusable,
    DevicesElsewhere,
    DevicesNotAllocated,
    DevicesNotReady,
    DevicesUnread,
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


# --- GpuClaims: a pod with a claim needs a pool with the requested GPUs, and a node with enough of them free.
#
# The requests and the suitable pools follow from policies, not from the cluster, so the caller passes them (`judged`).
# kube-scheduler knows nothing of GpuClaims, so without this information nothing is refused, nor is a claim that the
# caller does not name.


class GpuClaims:
    """The requests of claims, while set."""

    name: ClassVar[str] = "GpuClaim"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._claims = ClaimRequests()
        self._devices: FreeDevices | None = None  # while set, after the first question
        self._masks: dict[tuple[int, frozenset[str]], Mask] = {}

    @contextmanager
    def judged(self, claims: ClaimRequests) -> Iterator[None]:
        """Evaluates GpuClaims within the `with` block, as the extender does: by pool, and by free GPUs of nodes."""
        self._claims = claims
        try:
            yield
        finally:
            self._claims, self._devices, self._masks = ClaimRequests(), None, {}

    def concerns(self, pod_class: PodClass, fleet: Snapshot) -> bool:
        return pod_class.gpu_claim in self._claims.by_claim

    def mask(self, pod_class: PodClass, fleet: Snapshot) -> Mask | None:
        request = self._claims.by_claim.get(pod_class.gpu_claim)
        if request is None:
            return None
        key = fleet.rows.version, request.pools
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = _in_one_of(request.pools, fleet.rows)
        return mask & self._free_devices(fleet).mask(request.devices)

    def fits(self, pod_class: PodClass, row: int, fleet: Snapshot) -> bool:
        request = self._claims.by_claim.get(pod_class.gpu_claim)
        if request is None:
            return True
        return fleet.rows.node(row).pool in request.pools and self._free_devices(fleet).serves(row, request.devices)

    def why(self, pod_class: PodClass, row: int, fleet: Snapshot) -> Obstacle:
        request, node = self._claims.by_claim[pod_class.gpu_claim], fleet.rows.node(row)
        if node.pool not in request.pools:
            return NotInPoolOfClaim("/".join(pod_class.gpu_claim), node.pool or "none")
        return self._free_devices(fleet).why(row, request.devices)

    def _free_devices(self, fleet: Snapshot) -> FreeDevices:
        """Made when a pod with a claim is first asked about."""
        if self._devices is None:
            self._devices = fleet.part(FreeDevices)
            self._devices.follow(self._claims)
        return self._devices


def _in_one_of(pools: frozenset[str], rows: NodeRows) -> Mask:
    """As in Node.pool: Karpenter's label, or else reconciler's."""
    first, second = rows.column(names.KARPENTER_POOL), rows.column(names.POOL)
    silent = (first == ABSENT) | (first == rows.value_id(names.KARPENTER_POOL, ""))
    mask: Mask = np.isin(first, [rows.value_id(names.KARPENTER_POOL, each) for each in sorted(pools)])
    mask |= silent & np.isin(second, [rows.value_id(names.POOL, each) for each in sorted(pools)])
    return mask
