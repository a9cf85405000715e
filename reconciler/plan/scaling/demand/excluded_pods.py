"""Whether a pool may be asked for a node at all, apart from stock and limits."""

from reconciler.model.plan.action import Ref
from reconciler.plan.capacity.refusals import Bar, NodePoolAbsent, PolicySuspended, PoolFrozen, PoolObserved
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import observation_of
from reconciler.plan.scaling.pool_view import PoolView


def why_barred(pool_view: PoolView, freezes: Freezes) -> Bar | None:
    """Why nothing that is asked of the pool would come; None where the pool may be asked."""
    context, pool = pool_view.context, pool_view.pool
    if pool.spec.suspend:
        return PolicySuspended(Ref("GpuPool", "", pool.name))
    if pool_view.wish.spec.suspend:
        return PolicySuspended(Ref("NodeProvisioner", "", pool_view.wish.name))
    if freeze := freezes.of_pool(pool.name):
        return PoolFrozen(freeze)
    if context.inputs.observed.why_unread("nodepools.karpenter.sh"):
        return None
    there = (each for each in context.inputs.observed.node_pools if each.name == pool.name)
    if all(each.metadata.deletion_timestamp for each in there):
        return NodePoolAbsent(Ref("NodePool", "", pool.name))
    observation = observation_of(context.inputs, pool.name)
    return PoolObserved(observation) if observation is not None else None
