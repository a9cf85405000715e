"""What DaemonSets will take of a new node of a NodePool."""

from collections.abc import Sequence

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.simulate.actors.karpenter.node_pools import NodePool
from reconciler.simulate.actors.karpenter.provisioning.existing_nodes import shut_out
from reconciler.simulate.actors.karpenter.provisioning.pod_requirements import wanting
from reconciler.simulate.actors.karpenter.requirements import WELL_KNOWN, compatible


def overhead_of(daemons: Sequence[Pod], pool: NodePool, snapshot: Snapshot) -> dict[str, int]:
    """Of all together."""
    result: dict[str, int] = {}
    for pod in daemons:
        requirements = wanting(pod, snapshot)
        if shut_out(pool.taints, pod, tolerant=True):
            continue
        if any(compatible(pool.demands, each, WELL_KNOWN) for each in requirements.alternatives):
            for name, amount in requirements.request.items():
                result[name] = result.get(name, 0) + amount
    return result
