"""Owner of the NodeClaims and their Nodes as Karpenter keeps them in mind, and of what it intends for them."""

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from reconciler.fleet.amounts import counted
from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.conditions import DRIFTED, INITIALIZED, TERMINATING, says
from reconciler.simulate.actors.karpenter.tallies import NODES, Part, Tallies
from reconciler.simulate.actors.karpenter.timing import NOMINATED_MS

__all__ = ["NODES", "Machines", "pool_of"]
_NOTHING: dict[str, int] = {}


class Machines:
    """Told of each write; every walk is in the order in which things came."""

    def __init__(self) -> None:
        self.claims: dict[str, Object] = {}
        self.nodes: dict[str, Object] = {}
        self.unlaunched: dict[str, None] = {}  # of claims that are not going either
        self.fresh: dict[str, None] = {}  # launched, and not initialized yet
        self.leaving: dict[str, None] = {}  # deleted, and not gone yet
        self.drifted: dict[str, None] = {}  # and not going
        self.marked: dict[str, None] = {}  # to be deleted once their replacements are there
        self.version = 0  # another whenever a claim went, or a node came or went or was cordoned
        self._claim_on: dict[str, str] = {}
        self._of_pool: dict[str, dict[str, None]] = {}
        self._on_pool: dict[str, dict[str, str]] = {}  # nodes that are there or were, and their claims
        self._sizes: dict[str, dict[str, int]] = {}
        self._nominated: dict[str, Instant] = {}
        self._tallies = Tallies()

    def take_claim(self, name: str, body: Object | None) -> None:
        """As it stands now."""
        before = self.claims.pop(name, None)
        for index in (self.unlaunched, self.fresh, self.leaving, self.drifted):
            index.pop(name, None)
        if body is None:
            self._forget(name, before)
            return
        self.claims[name] = body
        status = body.get("status") or {}
        self._of_pool.setdefault(pool_of(body), {})[name] = None
        if node := status.get("nodeName"):
            self._claim_on[node] = name
            self._on_pool.setdefault(pool_of(body), {})[node] = name
        if before is None or (before.get("status") or {}).get("capacity") is not status.get("capacity"):
            self._sizes[name] = counted(status.get("capacity") or {})
        if body["metadata"].get("deletionTimestamp"):
            self.version += before is None or not before["metadata"].get("deletionTimestamp")
            self.leaving[name] = None
        elif not status.get("providerID"):
            self.unlaunched[name] = None
        elif not says(body, INITIALIZED):
            self.fresh[name] = None
        if says(body, DRIFTED) and name not in self.leaving:
            self.drifted[name] = None
        self._count(name)

    def take_node(self, name: str, body: Object | None) -> None:
        """As it stands now."""
        before = self.nodes.get(name)
        if body is None:
            self.nodes.pop(name, None)
        else:
            self.nodes[name] = body
        if before is None or body is None or (before.get("spec") or {}) != (body.get("spec") or {}):
            self.version += 1
        if (claim := self._claim_on.get(name)) is not None:
            self._count(claim)

    def mark(self, name: str) -> None:
        """To be deleted once its replacement is there."""
        self.marked[name] = None
        self._count(name)

    def unmark(self, name: str) -> None:
        """It stays after all."""
        self.marked.pop(name, None)
        self._count(name)

    def of_pool(self, pool: str) -> Iterator[Object]:
        """The claims of a NodePool."""
        return (self.claims[name] for name in self._of_pool.get(pool, ()))

    def without(self, nodes: AbstractSet[str], pool: str) -> list[Object]:
        """The claims of a NodePool that are not on these nodes, by name of the node."""
        there = self._on_pool.get(pool, {})
        return [self.claims[there[node]] for node in sorted(node for node in there if node not in nodes)]

    def drifted_of(self, pool: str) -> list[Object]:
        """Those of its claims that it would no longer buy so."""
        return [self.claims[name] for name in self.drifted if name in self._of_pool.get(pool, ())]

    def claim_of(self, node: str) -> Object | None:
        """The claim that a node is for."""
        name = self._claim_on.get(node)
        return self.claims.get(name) if name is not None else None

    def node_of(self, claim: Object) -> Object | None:
        """The node that came of a claim, if it is there."""
        return self.nodes.get((claim.get("status") or {}).get("nodeName", ""))

    def leaving_claims(self) -> list[Object]:
        """Claims whose nodes will soon be gone."""
        return [self.claims[name] for name in (*self.leaving, *self.marked) if name in self.claims]

    def is_leaving(self, name: str) -> bool:
        return name in self.leaving or name in self.marked

    def used(self, pool: str, limited: Mapping[str, int]) -> dict[str, int]:
        """How much of what is limited the machines of a NodePool have; those that go count no more."""
        return self._tallies.used(pool, limited)

    def many(self, pool: str) -> int:
        """Nodes of a NodePool that are initialized and not yet shut down: what a budget's percentage is of."""
        return self._tallies.existing(pool)

    def disrupted(self, pool: str) -> int:
        """Of those, how many are on their way out or not ready."""
        return self._tallies.disrupted(pool)

    def nominate(self, claim: str, now: Instant) -> None:
        """Pods are to come there."""
        self._nominated[claim] = Instant(now + NOMINATED_MS)

    def is_nominated(self, claim: str, now: Instant) -> bool:
        return self._nominated.get(claim, now) > now

    def _forget(self, name: str, before: Object | None) -> None:
        self.marked.pop(name, None)
        self._sizes.pop(name, None)
        self._nominated.pop(name, None)
        if before is None:
            return
        self.version += 1
        self._of_pool.get(pool_of(before), {}).pop(name, None)
        node = (before.get("status") or {}).get("nodeName", "")
        if self._claim_on.get(node) == name:
            del self._claim_on[node]
            self._on_pool.get(pool_of(before), {}).pop(node, None)
        self._tallies.put(name, None)

    def _count(self, name: str) -> None:
        claim = self.claims.get(name)
        if claim is None:
            self._tallies.put(name, None)
            return
        is_going = self.is_leaving(name)
        is_standing = says(claim, INITIALIZED) and not says(claim, TERMINATING)
        is_disrupted = is_standing and (is_going or not says(self.node_of(claim), "Ready"))
        is_used = not is_going and name not in self.unlaunched
        size = self._sizes.get(name, _NOTHING)
        self._tallies.put(name, Part(pool_of(claim), is_used, is_standing, is_disrupted, size))


def pool_of(body: Object) -> str:
    """The name of the NodePool that a claim or a node is of."""
    result: str = (body["metadata"].get("labels") or {}).get(names.KARPENTER_POOL, "")
    return result
