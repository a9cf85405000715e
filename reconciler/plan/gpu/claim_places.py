"""Where pods of a GpuClaim could get their GPUs, what the pods wait for, and the cheapest change that would help.

A place is a ready node that stays and has the requested GPUs free, or one more node of a pool. Only pools that lend
GPUs count: in mode Enforce and not suspended. Other requirements of pods are not considered: a change of a claim
requires new pods, whose node affinity and GPU requests follow the claim.

Changes are tried in a fixed order, from those that cost the workload least: a preferred instead of a required island,
any model, less memory, fewer GPUs, any pool, and the end of a suspension.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from reconciler.fleet.devices.board import MOST_DEVICES
from reconciler.fleet.devices.choice import can_serve
from reconciler.fleet.devices.free_devices import FreeDevices
from reconciler.fleet.gpu_claims import claimed_devices, has_devices, serving_pools
from reconciler.fleet.obstacles import GpuModelDiffers, NoIslandOfFreeGpus, TooFewFreeGpus
from reconciler.fleet.rows import Numbers
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Obstacle, order_of
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import ClaimedDevices, GpuPool
from reconciler.model.quantity import Quantity
from reconciler.plan.capacity.refusals import ClaimState, ClaimUnusable
from reconciler.plan.draft import Draft
from reconciler.plan.gpu.claim_report import (
    ClaimChange,
    ClaimWait,
    GpusFree,
    GpusLacking,
    NodesAbsent,
    PoolsObserved,
    PoolWithGpusAbsent,
)

Spec = Mapping[str, Any]
Place = tuple[str, str]  # a node, or else a pool


class ClaimPlaces:
    """Answers for one plan; equal questions are answered once."""

    def __init__(self, inputs: Inputs, draft: Draft, devices: FreeDevices) -> None:
        self._inputs, self._draft, self._devices = inputs, draft, devices
        self._pools = inputs.desired.pools
        self._places: dict[tuple[ClaimedDevices, tuple[str, ...]], Place | None] = {}

    def wait_of(self, spec: Spec) -> ClaimWait:
        """What a pod of an existing claim waits for."""
        devices = claimed_devices(spec)
        if spec.get("suspend"):
            return ClaimUnusable(ClaimState.SUSPENDED)
        if devices is None:
            return ClaimUnusable(ClaimState.UNREADABLE)
        serving = serving_pools(spec, devices, self._pools)
        if not serving:
            return PoolWithGpusAbsent(str(spec.get("poolName") or ""))
        lending = [each.name for each in serving if each.spec.is_enforced]
        if not lending:
            return PoolsObserved(tuple(each.name for each in serving))
        rows = self._rows_of(lending)
        if not len(rows):
            return NodesAbsent(tuple(lending))
        node = self._free_node(devices, lending)
        return GpusFree(node) if node else self._lacking(devices, rows)

    def change_for(self, spec: Spec) -> ClaimChange | None:
        """The cheapest change that gives pods of the claim a place; None if they have one, or if no change helps."""
        if spec.get("suspend"):
            resumed = {**spec, "suspend": False}
            place = self._place(resumed)
            return _change("suspend", "false", place) if place else None
        if claimed_devices(spec) is None or self._place(spec):
            return None
        for field, value, changed in self._changed(spec):
            if place := self._place(changed):
                return _change(field, value, place)
        return None

    def _changed(self, spec: Spec) -> Iterator[tuple[str, str, Spec]]:
        """Changed specs, the cheapest first: the field, the value, and the spec."""
        devices: dict[str, Any] = spec["devices"]
        if devices.get("policy") == "requireContiguous":
            yield "policy", "contiguous", {**spec, "devices": {**devices, "policy": "contiguous"}}
        if devices.get("model"):
            yield "model", "", {**spec, "devices": {**devices, "model": None}}
        if devices.get("memory") is not None:
            for memory in self._smaller_memories(str(devices["memory"])):
                yield "memory", memory, {**spec, "devices": {**devices, "memory": memory}}
        for count in range(min(devices["count"] - 1, MOST_DEVICES), 0, -1):
            yield "count", str(count), {**spec, "devices": {**devices, "count": count}}
        if spec.get("poolName"):
            yield "poolName", "", {**spec, "poolName": None}

    def _smaller_memories(self, memory: str) -> list[str]:
        below = Quantity.parse(memory).milli
        known = {each.spec.devices.memory.milli for each in self._pools}
        for rows in self._rows_by_pool.values():
            for row in self._devices.different(rows):
                known.update([gpu.memory_milli for gpu in self._devices.board_on(row).layout.gpus])
        return [str(Quantity(each, binary=True)) for each in sorted(known, reverse=True) if 0 < each < below]

    # --- Places

    def _place(self, spec: Spec) -> Place | None:
        """A place for one more pod; None if there is none."""
        devices = claimed_devices(spec)
        if devices is None:
            return None
        lending = tuple(each.name for each in serving_pools(spec, devices, self._pools) if each.spec.is_enforced)
        key = devices, lending
        if key not in self._places:
            node = self._free_node(devices, lending)
            pools = (each for each in self._pools if each.name in lending and self._buys(each, devices))
            pool = next(pools, None) if not node else None
            self._places[key] = (node, "") if node else ("", pool.name) if pool is not None else None
        return self._places[key]

    def _free_node(self, devices: ClaimedDevices, pools: "tuple[str, ...] | list[str]") -> str:
        """The first node by name with the GPUs free; empty if there is none."""
        rows = self._rows_of(pools)
        serving = rows[self._devices.mask(devices)[rows]] if len(rows) else rows
        return min((self._snapshot.rows.node(int(row)).name for row in serving), default="")

    def _buys(self, pool: Declared[GpuPool], devices: ClaimedDevices) -> bool:
        """Whether the pool may have one more node, and such a node has the GPUs."""
        if not has_devices(pool.spec.devices, devices) or not self._may_grow(pool):
            return False
        rows = self._rows_by_pool.get(pool.name)
        if rows is None:
            return True
        layouts = {self._devices.board_on(row).layout for row in self._devices.different(rows)}
        return any(can_serve(each, each.everything, devices) for each in layouts)

    def _may_grow(self, pool: Declared[GpuPool]) -> bool:
        """By maxSize, limits.nodes and limits of GPUs. Without an active provisioner, Karpenter buys by itself."""
        fleet, desired = self._draft.fleet, self._inputs.desired
        size = len(fleet.nodes_of(pool.name)) + len(fleet.nodeless_claims_of(pool.name))
        most = [each.spec.max_size for each in desired.provisioners if each.spec.pool_name == pool.name]
        if not most and pool.name not in {each.name for each in self._inputs.observed.node_pools}:
            return False
        limits = pool.spec.limits
        most += [limits["nodes"].milli // 1_000] if "nodes" in limits else []
        gpus = limits.get(names.NVIDIA_GPU)
        most += [gpus.milli // 1_000 // pool.spec.devices.count] if gpus is not None else []
        return all(size < each for each in most)

    def _lacking(self, devices: ClaimedDevices, rows: Numbers) -> GpusLacking:
        """The node that lacks least, of those with different free GPUs."""
        found: list[tuple[tuple[Any, ...], str, Obstacle]] = []
        for row in self._devices.different(rows):
            why, node = self._devices.why(row, devices), self._snapshot.rows.node(row).name
            found.append(((*_distance(why), node), node, why))
        _, node, why = min(found, key=lambda each: each[0])
        return GpusLacking(len(rows), node, why)

    # --- Nodes

    @property
    def _snapshot(self) -> Snapshot:
        return self._draft.fleet.snapshot

    @cached_property
    def _rows_by_pool(self) -> dict[str, Numbers]:
        """Rows of the ready nodes that stay and accept pods, by lending pool; only pools with such nodes."""
        found: dict[str, Numbers] = {}
        for pool in (each for each in self._pools if each.spec.is_enforced):
            row_of = self._snapshot.rows.row_of
            rows = [
                row_of[node.name]
                for node in self._draft.fleet.nodes_of(pool.name)
                if node.is_ready and not node.spec.unschedulable and not self._draft.leaves(node)
            ]
            if rows:
                found[pool.name] = np.array(rows, np.int32)
        return found

    def _rows_of(self, pools: "tuple[str, ...] | list[str]") -> Numbers:
        rows = [self._rows_by_pool[each] for each in pools if each in self._rows_by_pool]
        return np.concatenate(rows) if rows else np.zeros(0, np.int32)


def _change(field: Any, value: str, place: Place) -> ClaimChange:
    return ClaimChange(field, value, *place)


def _distance(obstacle: Obstacle) -> tuple[Any, ...]:
    """Sort key: enough GPUs but in no island, then the most free GPUs, then other obstacles."""
    match obstacle:
        case NoIslandOfFreeGpus(largest=largest, free=free):
            return 0, -largest, -free, ()
        case TooFewFreeGpus(free=free):
            return 1, -free, 0, ()
        case GpuModelDiffers():
            return 3, 0, 0, order_of(obstacle)
        case _:
            return 2, 0, 0, order_of(obstacle)
