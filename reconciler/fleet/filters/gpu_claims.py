"""GpuClaims: a pod of one belongs into a pool that has what the claim asks for.

Which pools those are is declared, and not seen: whoever knows it says so for as long as it asks (`judged`). The
scheduler knows nothing of it, so that outside of that nothing is ruled out. Nor is a claim that nobody speaks of.
"""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from typing import ClassVar

import numpy as np

from reconciler.fleet.obstacles import GpusOfNodeLent, NotInPoolOfClaim
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.rows import ABSENT, Mask, NodeRows
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.obstacle import Obstacle

Pools = Mapping[tuple[str, str], frozenset[str]]


class GpuClaims:
    """The pools by claim, while they are told."""

    name: ClassVar[str] = "GpuClaim"
    static: ClassVar[bool] = False

    def __init__(self, fleet: Snapshot) -> None:
        self._pools: Pools = {}
        self._lent: AbstractSet[str] = frozenset()
        self._masks: dict[tuple[int, frozenset[str]], Mask] = {}

    @contextmanager
    def judged(self, pools: Pools, lent: AbstractSet[str]) -> Iterator[None]:
        """`pools`: by namespace and name of a claim, those that have what it asks for; `lent`: nodes some of whose GPUs
        are lent, of which nobody can tell how many are left."""
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
        """As Node.pool reads it: Karpenter's label, or else ours."""
        first, second = rows.column(names.KARPENTER_POOL), rows.column(names.POOL)
        silent = (first == ABSENT) | (first == rows.value_id(names.KARPENTER_POOL, ""))
        mask: Mask = np.isin(first, [rows.value_id(names.KARPENTER_POOL, each) for each in sorted(pools)])
        mask |= silent & np.isin(second, [rows.value_id(names.POOL, each) for each in sorted(pools)])
        for name in self._lent:
            row = rows.row_of.get(name)
            if row is not None:
                mask[row] = False
        return mask
