"""Owner of what is asked of Karpenter by smart pods, as it stands, looked up once for one plan."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.plan.requests.request import TAG, Request, is_smart, request_of, tag_of


class Requested(msgspec.Struct, frozen=True, gc=False):
    """One smart pod, and the machine that was bought for it."""

    pod: Pod
    request: Request
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


class Requests:
    """Of all pools."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    @cached_property
    def smart_pods(self) -> Sequence[Pod]:
        """By namespace and name; those that can't be read among them."""
        return [each for each in self._fleet.occupancy.smart if is_smart(each)]

    @cached_property
    def by_pool(self) -> Mapping[str, tuple[Requested, ...]]:
        """Those that can be read, by name."""
        found: dict[str, list[tuple[Pod, Request]]] = {}
        for pod in self.smart_pods:
            request = request_of(pod)
            if request is not None and request.pool == pod.metadata.labels.get(names.POOL):
                found.setdefault(request.pool, []).append((pod, request))
        return {pool: tuple(self._requested(pool, there)) for pool, there in found.items()}

    def of(self, pool: str) -> tuple[Requested, ...]:
        return self.by_pool.get(pool, ())

    def open_in(self, pool: str) -> int:
        """Machines that are asked for in a pool, and that nobody has bought."""
        return sum(each.is_open for each in self.of(pool))

    def tags_in(self, pool: str) -> Mapping[str, str]:
        """The names of NodeClaims that were bought for a smart pod which is there still, and its name."""
        return {each.claim.name: each.name for each in self.of(pool) if each.claim is not None}

    def _requested(self, pool: str, there: Iterable[tuple[Pod, Request]]) -> Iterable[Requested]:
        tagged = self._tagged(pool)
        for pod, request in there:
            claim = tagged.get(tag_of(pod.name))
            if claim is not None and claim.metadata.creation_timestamp < pod.metadata.creation_timestamp:
                claim = None  # bought for one of the same name, which had come and gone
            name = pod.node or (claim.status.node_name if claim is not None else "")
            yield Requested(pod, request, claim, self._fleet.node(name) if name else None)

    def _tagged(self, pool: str) -> dict[str, NodeClaim]:
        """Claims by each label that they are to be without; of several the one that is furthest. One that is going is
        as good as gone: Karpenter buys another for as long as the smart pod waits."""
        there = (each for each in self._fleet.claims_of(pool) if not each.metadata.leaving)
        by_progress = sorted(there, key=lambda each: (bool(each.status.node_name), each.says("Initialized"), each.name))
        return {
            each.key: claim for claim in by_progress for each in claim.spec.requirements if each.key.startswith(TAG)
        }
