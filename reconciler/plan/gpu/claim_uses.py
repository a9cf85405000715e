"""The pods of each GpuClaim, with their GPUs, and what the other pods wait for: the report of the gpu feature.

The report is as large as the number of claims and listed pods; only claims with waiting pods are evaluated, and of
these a limited number, in the order of names.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

from reconciler.fleet.amounts import claim_of
from reconciler.fleet.devices.board import Board, BoardLayout, DeviceSet
from reconciler.fleet.devices.choice import best_set, score
from reconciler.fleet.devices.device_lease import UNKNOWN, DeviceLease, read_device_lease
from reconciler.fleet.devices.free_devices import FreeDevices
from reconciler.fleet.gpu_claims import claimed_devices, serving_pools
from reconciler.model.cluster.bounds import gpu_claims
from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.decision import Ref, pod_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import ClaimedDevices
from reconciler.plan.capacity.demand import GpuClaimIndex
from reconciler.plan.capacity.refusals import ClaimState, ClaimUnusable
from reconciler.plan.draft import Draft
from reconciler.plan.gpu.claim_places import ClaimPlaces
from reconciler.plan.gpu.claim_report import (
    MOST_PODS,
    Allocation,
    AllocationScore,
    BindingBegun,
    ClaimChange,
    ClaimPod,
    ClaimReport,
    ClaimUse,
    ClaimWait,
    Phase,
    PoolGpus,
    WaitNotEvaluated,
)

MOST_EVALUATED = 200  # claims with waiting pods
_PHASES: tuple[Phase, ...] = ("Waiting", "Bound", "Ended")

Key = tuple[str, str]  # namespace and name


def report_claims(inputs: Inputs, draft: Draft) -> ClaimReport:
    """The report. Nodes, pods and Leases must have been read."""
    claims = {(each.metadata.namespace, each.name): each for each in gpu_claims(inputs.observed.policies)}
    pods: defaultdict[Key, list[Pod]] = defaultdict(list)
    for pod in inputs.observed.pods:
        if pod.metadata.annotations.claim:
            pods[claim_of(pod)].append(pod)
    if not claims and not pods:
        return ClaimReport()
    if inputs.observed.unread_among("gpuclaims.gpu.scheduling"):
        return ClaimReport()  # every claim would look absent
    devices = draft.fleet.snapshot.part(FreeDevices)
    devices.follow(GpuClaimIndex(inputs.observed, inputs.desired.pools).requests)
    uses = ClaimUses(inputs, draft, devices)
    keys = sorted(claims.keys() | pods.keys())
    return ClaimReport(
        tuple(uses.use_of(key, claims.get(key), pods.get(key, ())) for key in keys), tuple(uses.pool_gpus())
    )


class ClaimUses:
    """Builds the parts of one report. Owner of the number of evaluated claims."""

    def __init__(self, inputs: Inputs, draft: Draft, devices: FreeDevices) -> None:
        self._inputs, self._draft, self._devices = inputs, draft, devices
        self._pools = {each.name: each for each in inputs.desired.pools}
        self._places = ClaimPlaces(inputs, draft, devices)
        self._leases = _by_holder(inputs.observed.leases)
        self._evaluated = 0

    def use_of(self, key: Key, claim: Unstructured | None, pods: Sequence[Pod]) -> ClaimUse:
        """The pods of a claim; `claim` is None if it does not exist."""
        namespace, name = key
        ref = Ref("GpuClaim", namespace, name, claim.metadata.uid if claim is not None else "")
        by_phase: dict[Phase, list[Pod]] = {each: [] for each in _PHASES}
        for pod in sorted(pods, key=lambda each: (each.name, each.metadata.uid)):
            by_phase[phase_of(pod)].append(pod)
        wait, change = self._evaluate(claim) if by_phase["Waiting"] else (None, None)
        claimed = claimed_devices(claim.spec) if claim is not None else None
        listed = [(phase, pod) for phase in _PHASES for pod in by_phase[phase]][:MOST_PODS]
        return ClaimUse(
            claim=ref,
            waiting=len(by_phase["Waiting"]),
            bound=len(by_phase["Bound"]),
            ended=len(by_phase["Ended"]),
            pods=tuple(self._pod_of(phase, pod, claimed, wait) for phase, pod in listed),
            change=change,
            best_effort_in=self._best_effort(claim, claimed),
        )

    def _evaluate(self, claim: Unstructured | None) -> tuple[ClaimWait, ClaimChange | None]:
        """What the waiting pods of a claim wait for, and the change that would help."""
        if claim is None:
            return ClaimUnusable(ClaimState.ABSENT), None
        if self._evaluated >= MOST_EVALUATED:
            return WaitNotEvaluated(), None
        self._evaluated += 1
        return self._places.wait_of(claim.spec), self._places.change_for(claim.spec)

    def _pod_of(self, phase: Phase, pod: Pod, claimed: ClaimedDevices | None, wait: ClaimWait | None) -> ClaimPod:
        allocation = self._allocation(pod, claimed) if phase != "Ended" else None
        if phase != "Waiting":
            return ClaimPod(pod_ref(pod), phase, allocation)
        begun = BindingBegun(allocation.node) if allocation is not None else None
        return ClaimPod(pod_ref(pod), phase, allocation, begun or wait)

    def _allocation(self, pod: Pod, claimed: ClaimedDevices | None) -> Allocation | None:
        """The GPUs that Leases lend to the pod; None without a Lease of its node."""
        leases = self._leases.get(pod.metadata.uid, ())
        node = pod.node or next((each.node for each in leases), "")
        lent = {each.id: each.uuid for each in leases if each.node == node and each.id != UNKNOWN}
        if not lent:
            return None
        found, row = self._draft.fleet.node(node), self._draft.fleet.snapshot.rows.row_of.get(node)
        pool = self._pools.get(found.pool) if found is not None else None
        board = self._devices.board_on(row) if row is not None else None
        return Allocation(
            node=node,
            devices=tuple(sorted(lent)),
            uuids=tuple(lent[each] for each in sorted(lent)),
            score=_score(board, tuple(sorted(lent)), claimed) if board is not None else None,
            is_by_kubelet=pool is not None and pool.spec.allocation == "plugin",
        )

    def _best_effort(self, claim: Unstructured | None, claimed: ClaimedDevices | None) -> tuple[str, ...]:
        """Pools where the kubelet chooses the GPUs of a claim that prefers or requires one island."""
        if claim is None or claimed is None or claimed.policy == "any" or claimed.count == 1:
            return ()
        pools = serving_pools(claim.spec, claimed, self._pools.values())
        return tuple(each.name for each in pools if each.spec.allocation == "plugin")

    def pool_gpus(self) -> Iterator[PoolGpus]:
        """Lent and free GPUs of each declared pool."""
        row_of = self._draft.fleet.snapshot.rows.row_of
        for name in sorted(self._pools):
            nodes = [node.name for node in self._draft.fleet.nodes_of(name)]
            rows = np.array([row_of[node] for node in nodes if node in row_of], np.int32)
            lent = sum(self._draft.fleet.lent.get(node, 0) for node in nodes)
            yield PoolGpus(name, lent, self._devices.free_count(rows) if len(rows) else 0)


def phase_of(pod: Pod) -> Phase:
    """Whether the pod waits for its GPUs, has them, or needs them no more."""
    if pod.is_finished:
        return "Ended"
    return "Bound" if pod.node else "Waiting"


def _by_holder(leases: Sequence[Lease]) -> Mapping[str, Sequence[DeviceLease]]:
    """Leases of GPUs by the uid of their pods, in the order of names."""
    found: defaultdict[str, list[DeviceLease]] = defaultdict(list)
    for lease in sorted(leases, key=lambda each: each.metadata.name):
        device = read_device_lease(lease)
        if device is not None:
            found[device.holder].append(device)
    return found


def _score(board: Board, ids: tuple[int, ...], claimed: ClaimedDevices | None) -> AllocationScore | None:
    """The score of GPUs of a board; None if the board does not have all of them."""
    devices = board.layout.set_of(ids)
    return _scored(board.layout, devices, claimed) if devices.bit_count() == len(ids) else None


@lru_cache(maxsize=65_536)
def _scored(layout: BoardLayout, devices: DeviceSet, claimed: ClaimedDevices | None) -> AllocationScore:
    own = score(layout, layout.everything, devices)
    best = best_set(layout, layout.everything, claimed) if claimed is not None else 0
    best_gbps = score(layout, layout.everything, best).smallest_gbps if best else 0
    return AllocationScore(
        own.is_one_island, own.smallest_gbps, own.sum_gbps, max(best_gbps, own.smallest_gbps), own.is_bandwidth_known
    )
