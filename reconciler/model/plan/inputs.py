"""Inputs: all that a plan follows from; exactly what `dump` writes and `replay` reads."""

from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.memory import Hints, Memory


class Inputs(msgspec.Struct, frozen=True, dict=True):
    """The same inputs give the same plan, byte for byte."""

    desired: Desired
    observed: Observed
    now: Instant
    memory: Memory = Memory()
    hints: Hints = Hints()
    budget: int = 1_000_000  # predicate evaluations that the planners may spend
    prune: tuple[str, ...] = ()  # titles of objects that a person agreed to lose: NodePool/old

    @cached_property
    def unowned_node_pools(self) -> frozenset[str]:
        """Names of NodePools that are there, and that these policies neither made nor adopted: somebody else's, or kept
        by another environment."""
        return frozenset(each.name for each in self.observed.node_pools if not self._is_owned(each))

    def _is_owned(self, node_pool: Unstructured) -> bool:
        keeper = node_pool.metadata.annotations.get(names.ENVIRONMENT, self.desired.environment)
        return node_pool.is_ours and keeper == self.desired.environment
