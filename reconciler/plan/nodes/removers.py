"""Which policy removes nodes of which pool.

A NodeProvisioner, suspended or not, is the only one that removes empty nodes of its pool. Where a pool has none, the
DrainPolicy that names the pool removes them. Nodes that are not ready belong to the DrainPolicy in either case: they
go after scaleDownUnreadyTime.
"""

from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.plan.sizes_by_time import provisioners_now


def drain_policies(desired: Desired) -> dict[str, Declared[DrainPolicy]]:
    """By pool; suspended policies name no pool."""
    declareds: dict[str, Declared[DrainPolicy]] = {}
    for policy in desired.drains:
        if not policy.spec.suspend:
            for pool in desired.pools:
                if {"*", pool.name} & set(policy.spec.pool_names):
                    declareds.setdefault(pool.name, policy)
    return declareds


def provisioners(inputs: Inputs) -> dict[str, Declared[NodeProvisioner]]:
    """By pool, with the sizes that hold now; suspended ones too."""
    return {each.spec.pool_name: each for each in provisioners_now(inputs)}
