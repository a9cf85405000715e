"""NodePool weights express the order of NodeProvisioners to Karpenter, as far as they can."""

from collections.abc import Iterator

from reconciler.model.problem import Problem
from reconciler.policy.manifests.weights import MOST, overlapping, untainted
from reconciler.policy.rules.context import RuleContext


def ranks_fit_into_weights(wish: RuleContext) -> Iterator[Problem]:
    """Karpenter knows 100 weights: it cannot be told the order of more overlapping pools."""
    for group in overlapping(wish.desired):
        for pool in group[MOST : MOST + 1]:
            text = f"{len(group)} pools overlap, and Karpenter orders at most {MOST} NodePools by weight"
            remedy = "give pools for different pods different taints, or write a weight in each GpuPool"
            yield wish.problem(pool, "", ("RC311", text, remedy))


def pools_without_taints_have_no_weight(wish: RuleContext) -> Iterator[Problem]:
    """Among NodePools of one weight Karpenter chooses by itself."""
    for pool in untainted(wish.desired):
        text = f"GpuPool/{pool.name} has no taints, so its NodePool gets no weight: Karpenter ignores the order of its "
        text += "NodeProvisioner, since a weight would pull pods without GPUs onto GPU nodes"
        remedy = "add a taint such as nvidia.com/gpu, or write a weight"
        yield wish.warning(pool, "spec.taints", ("RC317", text, remedy))
