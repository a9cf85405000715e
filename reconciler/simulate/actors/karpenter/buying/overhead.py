"""What DaemonSets will take of a new node of a NodePool."""

from collections.abc import Sequence

from reconciler.fleet.what_if import WhatIf
from reconciler.model.cluster.pod import Pod
from reconciler.simulate.actors.karpenter.buying.standing import shut_out
from reconciler.simulate.actors.karpenter.buying.wanting import wanting
from reconciler.simulate.actors.karpenter.demanding import WELL_KNOWN, compatible
from reconciler.simulate.actors.karpenter.node_pools import NodePool


def overhead_of(daemons: Sequence[Pod], pool: NodePool, what_if: WhatIf) -> dict[str, int]:
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
