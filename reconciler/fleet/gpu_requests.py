"""How many GPUs pods ask of their node: what their containers request, or the count of their GpuClaim if that is more.

The scheduler of GpuClaims allocates `count` GPUs to each pod of a claim, whether the containers request any or not. A
pod that is given both does not get their sum: what it requests are the GPUs that its claim is for.

GPUs that are lent are those with a Lease that somebody holds. Leases are held by pods that are counted already, so that
of a node the larger of both sums is in use, and never their sum.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from reconciler.model.cluster.lease import Lease
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured

Lent = Mapping[str, int]  # GPUs, by the name of a node

_MOST = 1_000_000  # far more than a node has; whoever wrote more meant no node


def claim_of(pod: Pod) -> tuple[str, str]:
    """Namespace and name of its GpuClaim; no name where it has none."""
    return pod.metadata.namespace, pod.metadata.annotations.claim


class GpuRequests(msgspec.Struct, frozen=True):
    """By the GpuClaims as they were seen."""

    counts: Mapping[tuple[str, str], int] = {}  # of each claim that can be read, by namespace and name

    def claimed_by(self, pod: Pod) -> int:
        """The count of its claim; 0 where the pod has none."""
        return self.counts.get(claim_of(pod), 0) if pod.metadata.annotations.claim else 0

    def of(self, pod: Pod) -> int:
        """GPUs of its node that are in use while the pod is there."""
        return max(pod.gpus, self.claimed_by(pod))

    def differing(self, other: "GpuRequests") -> frozenset[tuple[str, str]]:
        """Claims whose counts are not the same."""
        return frozenset(name for name, _ in self.counts.items() ^ other.counts.items())


def read_gpu_requests(policies: Iterable[Unstructured]) -> GpuRequests:
    """By all objects of our kinds."""
    claims = (each for each in policies if each.kind == "GpuClaim")
    return GpuRequests(
        {(each.metadata.namespace, each.name): count for each in claims if (count := count_of(each.spec))}
    )


def count_of(spec: Mapping[str, Any]) -> int:
    """GPUs for each pod of a claim, from its spec as it was written; 0 where that can't be read."""
    devices = spec.get("devices")
    count = devices.get("count") if isinstance(devices, dict) else None
    return min(max(0, count), _MOST) if type(count) is int else 0


def lent_by(leases: Iterable[Lease]) -> Lent:
    """There is a Lease for each GPU, owned by the Node."""
    held = (each for each in leases if each.spec.holder_identity)
    return Counter(owner.name for each in held for owner in each.metadata.owner_references if owner.kind == "Node")
