"""What DaemonSets will take of a new node of a NodePool."""

from collections.abc import Sequence

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.simulate.actors.karpenter.node_pools import NodePool
from reconciler.simulate.actors.karpenter.provisioning.existing_nodes import shut_out
from reconciler.simulate.actors.karpenter.provisioning.pod_requirements import wanting
from reconciler.simulate.actors.karpenter.requirements import WELL_KNOWN, compatible


def overhead_of(daemons: Sequence[Pod], pool: NodePool, what_if: Snapshot) -> dict[str, int]:
    """Of all together."""
    found: dict[str, int] = {}
    for pod in daemons:
        asked = wanting(pod, what_if)
        if shut_out(pool.taints, pod, tolerant=True):
            continue
        if any(compatible(pool.demands, each, WELL_KNOWN) for each in asked.alternatives):
            for name, amount in asked.request.items():
                found[name] = found.get(name, 0) + amount
    return found
