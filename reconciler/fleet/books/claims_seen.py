"""The NodeClaims of one sighting, by pool and by what they say; made once for as long as none of them changes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim


class ClaimsSeen:
    """Each index is made when it is first asked for."""

    def __init__(self, claims: tuple[NodeClaim, ...]) -> None:
        self.claims = claims

    @cached_property
    def by_pool(self) -> dict[str, list[NodeClaim]]:
        """In each pool by name."""
        return _by_pool(self.claims)

    @cached_property
    def leaving(self) -> Sequence[NodeClaim]:
        """Those that are being deleted, in the order in which they were seen."""
        return [each for each in self.claims if each.metadata.leaving]

    @cached_property
    def drifted(self) -> dict[str, list[NodeClaim]]:
        """Those that say so, in each pool by name."""
        return _by_pool(each for each in self.claims if each.says("Drifted"))


def _by_pool(claims: Iterable[NodeClaim]) -> dict[str, list[NodeClaim]]:
    found = defaultdict(list)
    for claim in sorted(claims, key=lambda each: each.name):
        found[claim.metadata.labels.get(names.KARPENTER_POOL, "")].append(claim)
    return dict(found)
