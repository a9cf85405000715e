"""The ledgers of one plan: copies of what the agents' desk has reserved, with the migrations of the memory.

Only nodes of declared pools with a PressurePolicy in force have a ledger. The memory of migrations decides which pods
migrate, and pods that are being deleted count as migrating: they give back what they have reserved.
"""

from collections.abc import Collection, Mapping

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared, Desired
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.pressure import ElasticPod, NodePods
from reconciler.model.policy.scaling import PressurePolicy
from reconciler.plan.pressure.reasons import PressedResource


def pressure_policies(desired: Desired) -> dict[str, Declared[PressurePolicy]]:
    """PressurePolicy by declared pool, without suspended policies. A policy that names the pool comes before a policy
    for all pools.
    """
    in_force = [each for each in desired.pressures if not each.spec.suspend]
    found: dict[str, Declared[PressurePolicy]] = {}
    for name in ("", "*"):
        for policy in in_force:
            for pool in desired.pools:
                if (name or pool.name) in policy.spec.pool_names:
                    found.setdefault(pool.name, policy)
    return found


def elastic_pods(fleet: Fleet) -> dict[str, Pod]:
    """Observed pods on nodes that declare elastic bounds, by uid."""
    return {each.metadata.uid: each for each in fleet.observed.pods if each.metadata.annotations.elastic and each.node}


def ledgers_of(
    inputs: Inputs, fleet: Fleet, pools: Collection[str], pods: Mapping[str, Pod], migrating: Collection[str]
) -> dict[str, NodeLedger]:
    """A ledger for each observed node of these pools, by name. `migrating`: uids."""
    ledgers: dict[str, NodeLedger] = {}
    for each in inputs.pressure.nodes if inputs.pressure is not None else ():
        node = fleet.node(each.node)
        if node is not None and node.pool in pools:
            ledgers[each.node] = ledger_of(each, pods, migrating)
    return ledgers


def ledger_of(pods_of_node: NodePods, pods: Mapping[str, Pod], migrating: Collection[str]) -> NodeLedger:
    """The ledger of one node. `pods`: observed elastic pods by uid."""
    ledger = NodeLedger(pods_of_node.bounds)
    for entry in pods_of_node.pods:
        if isinstance(entry, ElasticPod):
            observed = pods.get(entry.uid)
            leaves = entry.uid in migrating or (observed is not None and observed.metadata.leaving)
            ledger.put(msgspec.structs.replace(entry, is_migrating=leaves))
        else:
            ledger.put(entry)
    return ledger


def pressed_resources(ledger: NodeLedger) -> tuple[PressedResource, ...]:
    """Resources under pressure, accounted for or not, by name."""
    figures = ((name, ledger.pressure(name)) for name in sorted(ledger.bounds))
    return tuple(
        PressedResource(name, each.logical, each.capacity, each.left)
        for name, each in figures
        if each.logical or each.capacity
    )
