"""The order of capacity types, which a NodePool cannot say."""

from collections.abc import Iterator

from reconciler.model.policy.gpu_pool import CapacityType
from reconciler.model.problem import Problem
from reconciler.policy.rules.context import RuleContext

# In which order Karpenter buys where a NodePool allows several.
_KARPENTERS: tuple[CapacityType, ...] = ("reserved", "spot", "on-demand")


def capacity_types_in_karpenters_order(wish: RuleContext) -> Iterator[Problem]:
    """A NodePool has a set of capacity types. Only smart pods, which name one type each, keep the order of a policy."""
    for pool in wish.desired.pools:
        written = pool.spec.capacity_types
        preferred = [each for each in _KARPENTERS if each in written]
        if pool.spec.suspend or written == preferred or len(set(written)) < len(written):
            continue
        text = (
            f"Karpenter chooses the capacity type itself and prefers {', then '.join(preferred)}: the order "
            f"{', '.join(written)} holds only for pods that wait behind the gate gpu.scheduling/capacity"
        )
        remedy = f"give each capacity type a pool of its own, or write [{', '.join(preferred)}] to agree with Karpenter"
        yield wish.warning(pool, "spec.capacityTypes", ("RC315", text, remedy))
