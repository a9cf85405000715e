"""The pods of each GpuClaim, with their GPUs, and what the other pods wait for: the report of the gpu feature.

The size of the report is bounded, since the report goes to another process with each plan: claims with waiting pods, of
which a limited number is evaluated, and a limited number of claims whose published status is not the current one. Both
are taken in the order of names.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from reconciler.fleet.devices.board import MOST_DEVICES, Board, BoardLayout, DeviceSet
from reconciler.fleet.devices.choice import best_set, score
from reconciler.fleet.devices.free_devices import FreeDevices
from reconciler.fleet.gpu_claims import claimed_devices, serving_pools
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref, pod_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import ClaimedDevices
from reconciler.plan.capacity.demand import GpuClaimIndex
from reconciler.plan.capacity.refusals import ClaimState, ClaimUnusable
from reconciler.plan.draft import Draft
from reconciler.plan.gpu.claim_index import ClaimIndex, Key, waits_for_gpus
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
    WaitingClaims,
    WaitNotEvaluated,
    code_of,
)

# Kinds without which a Lease or a claim may look unused.
NEEDED = ("nodes", "pods", "leases.coordination.k8s.io")

MOST_EVALUATED = 200  # claims with waiting pods
TURN_MS = 60_000
MOST_UNPUBLISHED = 50  # other claims whose status is not published yet
_LARGEST_ID, _LONGEST_UUID = 63, 96  # in the status of a claim
_PHASES: tuple[Phase, ...] = ("Waiting", "Bound", "Ended")


def report_claims(inputs: Inputs, draft: Draft) -> ClaimReport:
    """The report. Nodes, pods and Leases must have been read."""
    uses = _uses(inputs, draft)
    if uses is None:
        return ClaimReport()
    order = _in_turn(uses, inputs.now)
    waiting = [uses.use_of(key) for key in sorted(order[:MOST_EVALUATED])]
    left = [(key, uses.index.count_waiting(key)) for key in sorted(order[MOST_EVALUATED:])]
    return ClaimReport((*waiting, *_unpublished(uses)), tuple(_by_reason(waiting, left)), tuple(uses.pool_gpus()))


def _in_turn(uses: "ClaimUses", now: Instant) -> list[Key]:
    """Claims with waiting pods. Those whose status does not say so come first, the others take turns each minute, so
    that the status of each claim is renewed however many wait.
    """
    waiting = uses.index.waiting
    if len(waiting) <= MOST_EVALUATED:
        return waiting
    new, known = list[Key](), list[Key]()
    for key in waiting:
        (known if uses.is_told_to_wait(key) else new).append(key)
    begin = (now // TURN_MS) * MOST_EVALUATED % max(1, len(known))
    return [*new, *known[begin:], *known[:begin]]


def use_of_claim(inputs: Inputs, draft: Draft, namespace: str, name: str) -> ClaimUse | None:
    """The pods of one claim, for an explanation; None while a needed kind can't be read."""
    uses = _uses(inputs, draft) if not inputs.observed.unread_among(*NEEDED) else None
    return uses.use_of((namespace, name)) if uses is not None else None


def _uses(inputs: Inputs, draft: Draft) -> "ClaimUses | None":
    """None without claims, or if they can't be read: every claim would look absent."""
    if inputs.observed.unread_among("gpuclaims.gpu.scheduling"):
        return None
    index = draft.fleet.part(ClaimIndex)
    index.follow(inputs.observed, inputs.desired.pools)
    if index.is_empty:
        return None
    devices = draft.fleet.snapshot.part(FreeDevices)
    devices.follow(GpuClaimIndex(inputs.observed, inputs.desired.pools).requests)
    return ClaimUses(inputs, draft, index, devices)


def _unpublished(uses: "ClaimUses") -> Iterator[ClaimUse]:
    """Claims without waiting pods whose status is not published yet."""
    found = 0
    for key in uses.index.unsettled:
        if found >= MOST_UNPUBLISHED:
            return
        if uses.index.count_waiting(key):
            continue
        use = uses.use_of(key)
        if is_published(uses.index.claims[key], use):
            uses.index.settle(key)
        else:
            found += 1
            yield use


def _by_reason(waiting: Sequence[ClaimUse], left: Sequence[tuple[Key, int]]) -> Iterator[WaitingClaims]:
    found: dict[str, list[tuple[Ref, int]]] = {}
    for use in waiting:
        if use.wait is not None:
            found.setdefault(code_of(use.wait), []).append((use.claim, use.waiting))
    for (namespace, name), pods in left:
        found.setdefault(code_of(WaitNotEvaluated()), []).append((Ref("GpuClaim", namespace, name), pods))
    for reason, claims in sorted(found.items()):
        yield WaitingClaims(reason, len(claims), sum(pods for _, pods in claims), claims[0][0])


class ClaimUses:
    """Builds the parts of one report."""

    def __init__(self, inputs: Inputs, draft: Draft, index: ClaimIndex, devices: FreeDevices) -> None:
        self.index = index
        self._draft, self._devices = draft, devices
        self._pools = {each.name: each for each in inputs.desired.pools}
        self._places = ClaimPlaces(inputs, draft, devices)

    def is_told_to_wait(self, key: Key) -> bool:
        """Whether the published status of a claim has this number of waiting pods. A claim that is absent has none."""
        claim = self.index.claims.get(key)
        return claim is None or claim.status.get("waiting") == self.index.count_waiting(key)

    def use_of(self, key: Key) -> ClaimUse:
        """The pods of a claim, which need not exist."""
        claim, (namespace, name) = self.index.claims.get(key), key
        by_phase: dict[Phase, list[Pod]] = {each: [] for each in _PHASES}
        for pod in self.index.pods_of(key):
            by_phase[phase_of(pod)].append(pod)
        wait, change = self._evaluate(claim) if by_phase["Waiting"] else (None, None)
        claimed = claimed_devices(claim.spec) if claim is not None else None
        listed = [(phase, pod) for phase in _PHASES for pod in by_phase[phase]][:MOST_PODS]
        return ClaimUse(
            claim=Ref("GpuClaim", namespace, name, claim.metadata.uid if claim is not None else ""),
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
        return self._places.wait_of(claim.spec), self._places.change_for(claim.spec)

    def _pod_of(self, phase: Phase, pod: Pod, claimed: ClaimedDevices | None, wait: ClaimWait | None) -> ClaimPod:
        allocation = self._allocation(pod, claimed) if phase != "Ended" else None
        if phase != "Waiting":
            return ClaimPod(pod_ref(pod), phase, allocation)
        begun = BindingBegun(allocation.node) if allocation is not None else None
        return ClaimPod(pod_ref(pod), phase, allocation, begun or wait)

    def _allocation(self, pod: Pod, claimed: ClaimedDevices | None) -> Allocation | None:
        """The GPUs that Leases lend to the pod; None without a Lease of its node."""
        leases = self.index.leases_of(pod)
        node = pod.node or next((each.node for each in leases), "")
        # Leases of others may have any ids and UUIDs.
        known = [each for each in leases if each.node == node and 0 <= each.id <= _LARGEST_ID]
        lent = {each.id: each.uuid if len(each.uuid) <= _LONGEST_UUID else "" for each in known[:MOST_DEVICES]}
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
    return "Waiting" if waits_for_gpus(pod) else "Bound"


def is_published(claim: Unstructured, use: ClaimUse) -> bool:
    """Whether the published status of a claim without waiting pods has these facts; sentences are not compared."""
    status, generation = claim.status, claim.metadata.generation
    entries = status.get("allocations")
    published = [_published_fact(each) for each in entries] if isinstance(entries, list) else []
    current = [(each.pod.uid, each.phase, *_held(each.allocation)) for each in use.pods]
    # Server-side apply may change the order of entries.
    return (
        bool(status.get("conditions"))
        and (not generation or status.get("observedGeneration") == generation)
        and (status.get("pods"), status.get("bound"), status.get("waiting")) == (use.all_pods, use.bound, 0)
        and (status.get("bestEffortPools") or []) == list(use.best_effort_in)
        and sorted(published) == sorted(current)
    )


def _published_fact(entry: Any) -> tuple[str, str, str, list[int]]:
    found = entry if isinstance(entry, dict) else {}
    texts = [str(found.get(key) or "") for key in ("podUID", "phase", "node")]
    devices = found.get("devices")
    ids = [each for each in devices if type(each) is int] if isinstance(devices, list) else []
    return texts[0], texts[1], texts[2], ids


def _held(allocation: Allocation | None) -> tuple[str, list[int]]:
    return ("", []) if allocation is None else (allocation.node, list(allocation.devices))


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
