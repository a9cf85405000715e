"""What is made once for all pools: the PriorityClass of smart pods, as soon as any of the pools is acted on.

It belongs to no pool: it stays while any is left, and says in its origin which one it is there for first.
"""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.desired import Desired, Manifest
from reconciler.model.origin import Origin

PRIORITY_CLASS: dict[str, Any] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": names.SMART_PODS_PRIORITY},
    # The least that people may give: every workload displaces a smart pod, and a smart pod displaces none.
    "value": -1_000_000_000,
    "preemptionPolicy": "Never",
    "globalDefault": False,
    "description": "Pods that ask Karpenter for GPU nodes: whoever needs their room gets it at once.",
}


def shared_manifests(wish: Desired) -> tuple[Manifest, ...]:
    """None where nothing is written."""
    acted_on = [pool for pool in wish.pools if pool.spec.mode == "Enforce" and not pool.spec.suspend]
    if not acted_on:
        return ()
    return (
        Manifest(
            kind=PRIORITY_CLASS["kind"],
            namespace="",
            name=PRIORITY_CLASS["metadata"]["name"],
            body=msgspec.json.encode(PRIORITY_CLASS, order="sorted").decode(),
            pool="",
            origin=acted_on[0].origin("spec.mode"),
            template=Origin("", 0, wish.revision),
        ),
    )
