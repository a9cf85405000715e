"""Indexes of nodes, NodeClaims and pods: by name, by pool, by kind and by row."""

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Generic, TypeVar

import numpy as np

from reconciler.fleet.rows import Counts, Mask
from reconciler.fleet.snapshot.diff import changes
from reconciler.fleet.snapshot.pools import PerPoolIndex
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.pod import Pod


class NodeIndex:
    """As of the sighting to which it was last advanced."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.by_name: dict[str, Node] = {}  # not to be changed
        self._by_pool = PerPoolIndex[Node](_pool_of)
        self._taken_away = PerPoolIndex[Node](_pool_of, _is_taken_away)
        self._frozen = PerPoolIndex[Node](_pool_of, _is_frozen)
        self.advance((), nodes)

    def advance(self, gone: Sequence[Node], came: Sequence[Node]) -> None:
        """To the nodes as they were seen next: those that are gone, and that came."""
        for each in gone:
            self.by_name.pop(each.name, None)
        for each in came:
            self.by_name[each.name] = each
        for shelf in (self._by_pool, self._taken_away, self._frozen):
            shelf.move(gone, came)

    def of(self, pool: str) -> Sequence[Node]:
        """By name."""
        return self._by_pool.of(pool)

    def taken_away(self) -> Sequence[Node]:
        """Those that are being deleted, or that Karpenter disrupts."""
        return self._taken_away.all()

    def frozen(self) -> Sequence[Node]:
        """Those that say until when they are frozen, whether that is over or not."""
        return self._frozen.all()


def _pool_of(node: Node) -> str:
    return node.pool


def _is_taken_away(node: Node) -> bool:
    return node.metadata.leaving or node.taint(names.DISRUPTED) is not None


def _is_frozen(node: Node) -> bool:
    return bool(node.metadata.annotations.frozen_until)


# --- Owner of the NodeClaims by pool and by what they say; it moves on from one sighting to the next by what changed.


class NodeClaimIndex:
    """As of the sighting to which it was last advanced."""

    def __init__(self, claims: tuple[NodeClaim, ...]) -> None:
        self._claims: tuple[NodeClaim, ...] = ()
        self.by_pool = PerPoolIndex[NodeClaim](_node_claims_pool_of)
        self.drifted = PerPoolIndex[NodeClaim](_node_claims_pool_of, _is_drifted)
        self.initializing = PerPoolIndex[NodeClaim](_node_claims_pool_of, _is_initializing)
        self._leaving = PerPoolIndex[NodeClaim](_node_claims_pool_of, _is_leaving)
        self._on_nodes: dict[str, dict[str, NodeClaim]] = {}
        self.advance(claims)

    def advance(self, claims: tuple[NodeClaim, ...]) -> None:
        """To the claims as they were seen next."""
        gone, came = changes(self._claims, claims)
        self._claims = claims
        for shelf in (self.by_pool, self.drifted, self.initializing, self._leaving):
            shelf.move(gone, came)
        for each in (*gone, *came):
            self._on_nodes.pop(_node_claims_pool_of(each), None)

    def leaving(self) -> Sequence[NodeClaim]:
        """Those that are being deleted."""
        return self._leaving.all()

    def on_nodes(self, pool: str) -> Mapping[str, NodeClaim]:
        """Those of one pool by the names of their nodes; of several of one node the last by name."""
        node_claims = self._on_nodes.get(pool)
        if node_claims is None:
            node_claims = self._on_nodes[pool] = {each.status.node_name: each for each in self.by_pool.of(pool)}
        return node_claims


def _node_claims_pool_of(claim: NodeClaim) -> str:
    return claim.metadata.labels.get(names.KARPENTER_POOL, "")


def _is_drifted(claim: NodeClaim) -> bool:
    return claim.says("Drifted")


def _is_initializing(claim: NodeClaim) -> bool:
    """Whether it says that its node can't be used yet."""
    condition = claim.condition("Initialized")
    return condition is not None and condition.status != "True"


def _is_leaving(claim: NodeClaim) -> bool:
    return claim.metadata.leaving


# --- Owner of the kind of each row, its node's pool and instance type, as numbers: nodes of a mask are counted by kind.
#
# A kind is told in words, as `a100 p4d.24xlarge`: whoever reads of twelve nodes wants to know which twelve.

_LABELS = (names.KARPENTER_POOL, names.POOL, names.INSTANCE_TYPE)


class NodeKinds:
    """`snapshot.part(NodeKinds)` is the one of a what-if."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._rows = snapshot.rows
        self._version = -1
        self._names: list[str] = []
        self._of_row: Counts = np.zeros(0, np.int64)

    def counted(self, mask: Mask) -> dict[str, int]:
        """Rows of a mask, all of which have nodes."""
        if self._version != self._rows.version:
            self._read()
            self._version = self._rows.version
        counts = np.bincount(self._of_row[mask], minlength=len(self._names))
        found = Counter[str]()
        for number in np.flatnonzero(counts).tolist():
            found[self._names[number]] += int(counts[number])
        return dict(found)

    def _read(self) -> None:
        rows = self._rows
        code: Counts = np.zeros(rows.capacity, np.int64)
        for key in _LABELS:
            column = rows.column(key)
            code = code * (len(rows.values(key)) + 1) + column + 1
        _, first, number = np.unique(code[rows.order], return_index=True, return_inverse=True)
        self._of_row = np.zeros(rows.capacity, np.int64)
        self._of_row[rows.order] = number
        self._names = [kind_of(rows.node(int(row))) for row in rows.order[first]]


def kind_of(node: Node) -> str:
    """Its pool and its instance type."""
    return f"{node.pool or 'no pool'} {node.instance_type}".rstrip()


# --- Owner of something that was found of rows, for as long as the node and the pods seen on it are the same objects.

T = TypeVar("T")


class PerRow(ABC, Generic[T]):
    """Found when first asked for; `snapshot.part(...)` of a class of these is the one of a what-if."""

    def __init__(self, fleet: Snapshot) -> None:
        self.fleet = fleet
        self._nodes, self._told = fleet.rows.nodes, fleet.bound.told
        self._known: dict[int, tuple[Node | None, tuple[Pod, ...] | None, T]] = {}

    @abstractmethod
    def find(self, row: int) -> T:
        """To go by nothing but the node, the pods seen there, and their classes."""

    def of(self, row: int) -> T:
        """The same object as before, if nothing was seen to change."""
        known = self._known.get(row)
        if known is None or known[0] is not self._nodes[row] or known[1] is not self._told[row]:
            pods = self.fleet.pods_of_row(row)
            known = self._known[row] = self._nodes[row], pods, self.find(row)
        return known[2]


# --- Owner of which pods are on which node; it moves on from one sighting to the next by what changed.


class PodsByNode:
    """Finished ones included, on each node by namespace and name."""

    def __init__(self, pods: tuple[Pod, ...]) -> None:
        self._pods: tuple[Pod, ...] = ()
        self.by_node: dict[str, list[Pod]] = {}
        self.advance(pods)

    def advance(self, pods: tuple[Pod, ...]) -> None:
        """To the pods as they were seen next; lists that were handed out stay as they are."""
        gone, came = changes(self._pods, pods) if self._pods else ([], list(pods))
        self._pods = pods
        left = {id(each) for each in gone}
        joined = defaultdict(list)
        for pod in came:
            joined[pod.node].append(pod)
        for node in sorted({*joined, *(each.node for each in gone)} - {""}):
            there = [each for each in self.by_node.get(node, ()) if id(each) not in left] + joined[node]
            there.sort(key=lambda each: (each.metadata.namespace, each.name))
            if there:
                self.by_node[node] = there
            else:
                self.by_node.pop(node, None)
