"""Owner of what is asked of Karpenter by smart pods, as it stands, looked up once for one plan."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.identity import SmartPodIdentity
from reconciler.plan.capacity.request import TAG, CapacityRequest, tag_of


class Requested(msgspec.Struct, frozen=True, gc=False):
    """One smart pod, and the machine that was bought for it."""

    pod: Pod
    request: CapacityRequest
    claim: NodeClaim | None = None  # that Karpenter bought for it
    node: Node | None = None  # of that claim, whether the scheduler has bound it there or not yet; or that it runs on

    @property
    def name(self) -> str:
        return self.pod.name

    @property
    def is_open(self) -> bool:
        """Whether it asks still, and nothing was bought for it: Karpenter is to be taken at its word that it will."""
        pod = self.pod
        ended = pod.is_finished or pod.metadata.leaving or pod.metadata.annotations.phase == "Failed"
        return not (ended or pod.node or self.claim)

    @property
    def uses_its_machine(self) -> bool:
        """Whether it waits for the machine that was bought for it, or runs there. Where the scheduler has bound it to
        another node, that machine comes for whoever needs it."""
        if self.claim is None or not self.pod.node:
            return self.claim is not None
        return self.node is not None and self.node.name == self.claim.status.node_name

    @property
    def awaits_machine(self) -> bool:
        """Whether a machine is still to come for it; one whose node is there is looked at as that node."""
        return self.is_open or (self.uses_its_machine and self.node is None)


class Requests:
    """Of all pools."""

    def __init__(self, fleet: Fleet, identity: SmartPodIdentity) -> None:
        self._fleet, self._identity = fleet, identity

    @cached_property
    def smart_pods(self) -> Sequence[Pod]:
        """By namespace and name; those that can't be read among them."""
        return [each for each in self._fleet.occupancy.smart if self._identity.is_smart(each)]

    @cached_property
    def by_pool(self) -> Mapping[str, tuple[Requested, ...]]:
        """Those that prove to be ours, by name."""
        found: dict[str, list[tuple[Pod, CapacityRequest]]] = {}
        for pod in self.smart_pods:
            request = self._identity.request_of(pod)
            if request is not None:
                found.setdefault(request.pool, []).append((pod, request))
        return {pool: tuple(self._requested(pool, there)) for pool, there in found.items()}

    def of(self, pool: str) -> tuple[Requested, ...]:
        return self.by_pool.get(pool, ())

    def open_in(self, pool: str) -> int:
        """Machines that are asked for in a pool, and that nobody has bought."""
        return sum(each.is_open for each in self.of(pool))

    def used_claims_of(self, pool: str) -> frozenset[str]:
        """The names of NodeClaims that were bought for a smart pod which waits for them or runs there."""
        return frozenset(each.claim.name for each in self.of(pool) if each.claim is not None and each.uses_its_machine)

    def _requested(self, pool: str, there: Iterable[tuple[Pod, CapacityRequest]]) -> Iterable[Requested]:
        tagged = self._tagged(pool)
        for pod, request in there:
            # A smart pod of the same name may have been there before: its machine is another's by now.
            made = pod.metadata.creation_timestamp
            claims = (each for each in tagged.get(tag_of(pod.name), ()) if each.metadata.creation_timestamp >= made)
            claim = max(claims, key=_progress, default=None)
            name = pod.node or (claim.status.node_name if claim is not None else "")
            yield Requested(pod, request, claim, self._fleet.node(name) if name else None)

    def _tagged(self, pool: str) -> dict[str, list[NodeClaim]]:
        """Claims by each label that they are to be without. One that is going is as good as gone: Karpenter buys
        another for as long as the smart pod waits."""
        node_claims: dict[str, list[NodeClaim]] = {}
        for claim in self._fleet.claims_of(pool):
            for each in () if claim.metadata.leaving else claim.spec.requirements:
                if each.key.startswith(TAG):
                    node_claims.setdefault(each.key, []).append(claim)
        return node_claims


def _progress(claim: NodeClaim) -> tuple[bool, bool, str]:
    """Of several the one that is furthest counts."""
    return bool(claim.status.node_name), claim.says("Initialized"), claim.name
