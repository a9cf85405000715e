"""NodePool weights must be able to express the order of NodeProvisioners."""

from collections.abc import Iterator

from reconciler.model.problem import Problem
from reconciler.policy.manifests.weights import MOST, overlapping
from reconciler.policy.rules.wish import Wish


def ranks_fit_into_weights(wish: Wish) -> Iterator[Problem]:
    """Karpenter knows 100 weights: it cannot be told the order of more overlapping pools."""
    for group in overlapping(wish.desired):
        for pool in group[MOST : MOST + 1]:
            told = f"{len(group)} pools overlap, and Karpenter orders at most {MOST} NodePools by weight"
            remedy = "give pools for different pods different taints, or write a weight in each GpuPool"
            yield wish.problem(pool, "", ("RC311", told, remedy))
