"""clusterMin: the capacity that the cluster keeps in all, whoever removes a node.

The largest clusterMin of all DrainPolicies that are not suspended holds for every removal: by scaling, by a drain, and
by the edit or deletion of a NodePool. A node that bears a taint by which somebody takes it away is counted as gone, and
so is a node that an earlier planner takes in this plan. Planners ask before they choose; guards/admission.py asks once
more for every decision that takes a node, so no planner can forget to. A node that has none of a resource costs none of
it.
"""

from collections.abc import Iterable, Iterator

import msgspec

from reconciler.fleet.amounts import CPU
from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.origin import Origin
from reconciler.model.plan.action import Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import CodeFacts
from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.model.quantity import Quantity
from reconciler.plan.draft import Draft


class ClusterMinHolds(CodeFacts, frozen=True):
    template = "{object} would leave {left} of {resource} in the cluster, and clusterMin of {policy} is {least}."

    object: Ref
    resource: str
    left: str  # a quantity
    least: str  # a quantity
    policy: Ref


REASONS = (ClusterMinHolds,)


class Lack(msgspec.Struct, frozen=True, gc=False):
    """What the cluster would have too little of."""

    resource: str
    left: str  # a quantity
    least: str  # a quantity
    policy: Ref
    origin: Origin | None

    @property
    def facts(self) -> dict[str, str | int]:
        """As reasons name them."""
        return {"resource": self.resource, "left": self.left, "least": self.least, "policy": self.policy.title}


class ClusterMin:
    """Owner of what the cluster has of each limited resource, while nodes are taken away in one plan."""

    def __init__(self, inputs: Inputs, draft: Draft) -> None:
        self._fleet = draft.fleet
        self._limits = dict(sorted(_limits(inputs)))
        self._left = dict.fromkeys(self._limits, 0)
        for node in self._fleet.observed.nodes if self._limits else ():
            if not draft.leaves(node):
                self.give(node)

    @property
    def is_limited(self) -> bool:
        """Whether any policy says anything."""
        return bool(self._limits)

    def copy(self) -> "ClusterMin":
        """For what is only told: nothing taken from the copy is missing here."""
        other = object.__new__(ClusterMin)
        other._fleet, other._limits, other._left = self._fleet, self._limits, dict(self._left)
        return other

    def why_not(self, *nodes: Node) -> Lack | None:
        """What would be lacking without these nodes; nothing where the cluster keeps enough."""
        for resource, limit in self._limits.items():
            taken = sum(_has(self._fleet, node, resource) for node in nodes)
            left = self._left[resource] - taken
            if taken and left < limit.amount:
                return limit.lack(left)
        return None

    def why_kept(self, node: Node) -> Lack | None:
        """What is lacking already, where the node is on its way out and would make up for some of that."""
        for resource, limit in self._limits.items():
            if self._left[resource] < limit.amount and _has(self._fleet, node, resource):
                return limit.lack(self._left[resource])
        return None

    def take(self, node: Node) -> None:
        """The node goes."""
        for resource in self._limits:
            self._left[resource] -= _has(self._fleet, node, resource)

    def give(self, node: Node) -> None:
        """The node stays after all."""
        for resource in self._limits:
            self._left[resource] += _has(self._fleet, node, resource)


class _Limit(msgspec.Struct, frozen=True, gc=False):
    """The most that any policy asks for of one resource."""

    resource: str
    least: Quantity
    policy: Declared[DrainPolicy]

    @property
    def amount(self) -> int:
        """As the fleet counts it: cpu in thousandths, all else in units."""
        return self.least.milli if self.resource == CPU else -(-self.least.milli // 1_000)

    def lack(self, left: int) -> Lack:
        text = str(Quantity(left if self.resource == CPU else left * 1_000))
        policy = Ref("DrainPolicy", "", self.policy.name)
        return Lack(self.resource, text, str(self.least), policy, self.policy.origin("spec.clusterMin"))


def _limits(inputs: Inputs) -> Iterable[tuple[str, _Limit]]:
    limits: dict[str, _Limit] = {}
    for policy in sorted(inputs.desired.drains, key=lambda each: each.name):
        for resource, least in policy.spec.cluster_min.items() if not policy.spec.suspend else ():
            if resource not in limits or least.milli > limits[resource].least.milli:
                limits[resource] = _Limit(resource, least, policy)
    return limits.items()


def _has(fleet: Fleet, node: Node, resource: str) -> int:
    snapshot = fleet.snapshot
    column, row = snapshot.classes.columns.get(resource), snapshot.rows.row_of.get(node.name)
    return 0 if column is None or row is None else snapshot.stock.allocatable_at(row, column)


def nodes_named(fleet: Fleet, names: Iterable[str]) -> Iterator[Node]:
    """Those that are there."""
    nodes = (fleet.node(name) for name in sorted(names))
    yield from (node for node in nodes if node is not None)
