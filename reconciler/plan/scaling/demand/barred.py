"""Whether a pool may be asked for a node at all, apart from stock and limits."""

from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import observation_of
from reconciler.plan.scaling.ground import Ground


def why_barred(ground: Ground, freezes: Freezes) -> str:
    """Why nothing that is asked of the pool would come; empty where the pool may be asked."""
    site, pool = ground.site, ground.pool
    if pool.spec.suspend:
        return f"GpuPool/{pool.name} is suspended"
    if ground.wish.spec.suspend:
        return f"NodeProvisioner/{ground.wish.name} is suspended"
    if freeze := freezes.of_pool(pool.name):
        return f"{freeze.what} is frozen {freeze.told}"
    if site.inputs.observed.why_unread("nodepools.karpenter.sh"):
        return ""
    there = (each for each in site.inputs.observed.node_pools if each.name == pool.name)
    if all(each.metadata.deletion_timestamp for each in there):
        return f"NodePool/{pool.name} does not exist yet"
    observation = observation_of(site.inputs, pool.name)
    return observation.told if observation is not None else ""
