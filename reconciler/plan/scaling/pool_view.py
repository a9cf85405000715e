"""View of one pool for its NodeProvisioner: the nodes, sorted by what may happen to them.

Nodes that are being deleted are not included. A node that others remove (drained, disrupted by Karpenter) leaves in
any case. A node that others handle in another way stays, and no action on it is decided.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Literal

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.node_terms import Tolerance
from reconciler.fleet.occupancy import NodeFacts
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.observed import DaemonSets, daemon_sets
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.evaluation import Marked, Use
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.plan.capacity.offerings import LaunchOptions, launch_options, zones_of
from reconciler.plan.draft import Draft
from reconciler.plan.guards.observing import ByNode, as_imagined, observes
from reconciler.plan.guards.tally import ClusterMin
from reconciler.plan.nodes.ownership import closed_nodes, drain_policies, untouchable
from reconciler.plan.scaling.marks import DeletionTaint, mark_of
from reconciler.plan.sums import is_empty

# --- Removal order of empty nodes: a table of sort keys; the first key that differs decides.
#
# A node without a known price comes after all nodes with a price, because its saving is unknown too.

KeyName = Literal["readiness", "price", "priced", "name"]


class Key(msgspec.Struct, frozen=True):
    """One sort key."""

    name: KeyName
    of: Callable[[Node, int | None], int | str]  # from a node and its price


class RemovalOrder:
    """Removal order of the nodes of one pool."""

    def __init__(self, pool: GpuPool) -> None:
        self._pool = pool

    def sorted(self, nodes: Iterable[Node]) -> list[Node]:
        """Nodes in removal order."""
        return sorted(nodes, key=self.key)

    def key(self, node: Node) -> tuple[int | str, ...]:
        price = self.price(node)
        return tuple(each.of(node, price) for each in KEYS)

    def price(self, node: Node) -> int | None:
        """Millionths of a dollar per hour; None if the policy declares no price."""
        return self._prices.get((node.instance_type, node.capacity_type))

    @cached_property
    def _prices(self) -> dict[tuple[str, str], int]:
        return {
            (each.name, capacity_type): money.micro_dollars
            for each in self._pool.instance_types
            for capacity_type, money in each.price_per_hour.items()
        }


KEYS: tuple[Key, ...] = (
    Key("readiness", lambda node, _: int(node.is_ready)),
    Key("price", lambda _, price: -(price or 0)),
    Key("priced", lambda _, price: int(price is None)),
    Key("name", lambda node, _: node.name),
)


class ScalingContext(msgspec.Struct, frozen=True, dict=True):
    """Shared lookups of all provisioners in one plan."""

    inputs: Inputs
    draft: Draft
    imagined: ByNode

    @cached_property
    def drain_policies(self) -> Mapping[str, Declared[DrainPolicy]]:
        """DrainPolicy by pool."""
        return drain_policies(self.inputs.desired)

    @property
    def now(self) -> Instant:
        return self.inputs.now

    @property
    def fleet(self) -> Fleet:
        return self.draft.fleet

    @cached_property
    def daemons(self) -> list[tuple[Pod, Tolerance]]:
        """One pod of each DaemonSet, with its tolerations."""
        sets = (each for each in self.fleet.observed.workloads if each.kind == "DaemonSet")
        pods = (Pod(each.metadata, each.spec.template.spec) for each in sets if each.spec.template is not None)
        return [(pod, Tolerance(pod.spec.tolerations)) for pod in pods]

    @cached_property
    def daemon_sets(self) -> DaemonSets | None:
        """DaemonSets by namespace and name; None if they could not be read."""
        return daemon_sets(self.fleet.observed)

    @cached_property
    def cluster_min(self) -> ClusterMin:
        """Capacity that the cluster keeps, shared by all provisioners."""
        return ClusterMin(self.inputs, self.draft)


class Noted(msgspec.Struct, frozen=True, gc=False):
    """A node with a mark that reconciler may act on."""

    node: Node
    mark: DeletionTaint

    @property
    def marked(self) -> Marked | None:
        at = self.mark.at
        return None if at is None else Marked(self.node.name, at, self.mark.is_hard)


class PoolView:
    """Lookups of one pool for one plan. Totals come from the fleet, because few of many nodes change between plans."""

    def __init__(self, context: ScalingContext, wish: Declared[NodeProvisioner], pool: Declared[GpuPool]) -> None:
        self.context, self.wish, self.pool = context, wish, pool
        self.totals = context.fleet.pool(pool.name)
        self.noted: list[Noted] = []  # marked, and not removed otherwise
        self.leaving_otherwise: list[Node] = []
        imagines = bool(context.imagined) and observes(context.inputs, pool.name)
        for each in self.totals.nodes if imagines else self.totals.leaving_nodes:
            self._sort(each, imagines)
        self.leaving_otherwise += self._begun()

    def _sort(self, facts: NodeFacts, imagines: bool) -> None:
        node = facts.node
        if imagines and (taints := self.context.imagined.get((node.name, node.metadata.uid))):
            node = as_imagined(node, taints)
        mark = mark_of(node)
        if node.taint(names.DRAINING) is not None or node.taint(names.DISRUPTED) is not None:
            self.leaving_otherwise.append(node)
        elif mark is not None:
            self.noted.append(Noted(node, mark))

    @cached_property
    def cluster_min(self) -> ClusterMin:
        """Remaining capacity for clusterMin. An observed pool uses a copy, because its removals are only simulated."""
        if not self.context.cluster_min.is_limited or not observes(self.context.inputs, self.pool.name):
            return self.context.cluster_min
        cluster_min = self.context.cluster_min.copy()
        for each in self.noted:
            node = self.context.fleet.node(each.node.name)
            if node is not None and not node.is_being_removed:
                cluster_min.take(node)
        return cluster_min

    def _begun(self) -> Iterator[Node]:
        """Nodes whose drain has begun and whose taint is not observed yet."""
        batch = self.context.inputs.memory.drained.batch
        for name, uid in batch.nodes if batch is not None and batch.torn_at is None else ():
            node = self.context.fleet.node(name)
            if (
                node is not None
                and node.metadata.uid == uid
                and node.pool == self.pool.name
                and not node.is_being_removed
            ):
                yield node

    def remover_of(self, node: Node) -> Declared[DrainPolicy] | None:
        """The DrainPolicy that removes the unready node; None if the node is ready or no policy names the pool."""
        return None if node.is_ready else self.context.drain_policies.get(self.pool.name)

    @property
    def facts(self) -> Sequence[NodeFacts]:
        """All nodes of the pool, by name."""
        return self.totals.nodes

    @cached_property
    def _leaving_names(self) -> frozenset[str]:
        """Names of nodes that are being removed."""
        return frozenset([*(each.node.name for each in self.noted), *(each.name for each in self.leaving_otherwise)])

    def stays(self, name: str) -> bool:
        """Whether nobody removes that node of the pool."""
        return name not in self._leaving_names

    @cached_property
    def ours(self) -> list[Noted]:
        """Marked nodes that nobody else handles."""
        return [each for each in self.noted if untouchable(each.node) is None]

    @property
    def nodes(self) -> list[Node]:
        """All nodes of the pool, as observed."""
        return [each.node for each in self.facts]

    @property
    def size(self) -> int:
        return len(self.facts)

    @property
    def unready(self) -> int:
        return self.totals.unready

    @property
    def machines(self) -> Sequence[NodeClaim]:
        """Bought machines without a node. Each counts for the limits of the pool until it is gone."""
        return self.context.fleet.nodeless_claims_of(self.pool.name)

    @cached_property
    def arriving(self) -> tuple[NodeClaim, ...]:
        """Machines without a node that will arrive: Karpenter has not given up on them."""
        return tuple([each for each in self.machines if not each.metadata.deletion_timestamp])

    @property
    def requested_machines(self) -> int:
        """Number of machines that smart pods request and that are not bought yet."""
        return self.context.draft.requests.open_in(self.pool.name)

    @cached_property
    def outlook(self) -> LaunchOptions:
        """Launch options that can be tried now."""
        return launch_options(self.context.inputs, self.context.fleet, self.pool)

    @cached_property
    def zones(self) -> list[str]:
        """Zones of a new node."""
        return zones_of(self.pool.spec, self.context.fleet)

    @cached_property
    def use(self) -> Use:
        totals = self.totals
        sorts = [gpus for gpus, nodes in totals.sorts.items() if gpus and nodes]
        return Use(
            nodes=self.size,
            busy_nodes=totals.busy,
            drained_nodes=sum(map(self._is_drained, self.leaving_otherwise)),
            free_nodes=len(self.free),
            closed_nodes=closed_nodes(totals),
            gpus_used=totals.gpus_used,
            gpus_total=totals.gpus_total,
            gpus_per_node=sorts[0] if len(sorts) == 1 else self.pool.spec.devices.count,
            spare=tuple(node.gpus for node in self._spare()) if len(sorts) > 1 else None,
        )

    @cached_property
    def free(self) -> frozenset[str]:
        """Names of nodes with room for a pod of any size: empty nodes, and nodes with only a smart pod."""
        fleet, empty = self.context.fleet, {each.name for each in self.totals.empty}
        held = (each.pod for each in self.context.draft.requests.of(self.pool.name) if each.pod.node)
        counting = fleet.occupancy.counting
        return frozenset(
            empty | {pod.node for pod in held if counting.get(pod.node) == 1 and not fleet.lent.get(pod.node, 0)}
        )

    def _is_drained(self, node: Node) -> bool:
        """Whether the node is draining, with or without an observed taint: its pods have destinations."""
        return node.taint(names.DISRUPTED) is None and not is_empty(self.context.fleet, node)

    @cached_property
    def order(self) -> RemovalOrder:
        return RemovalOrder(self.pool.spec)

    def empty(self) -> list[Node]:
        """Nodes without a workload pod that nobody removes."""
        return [each.node for each in self.totals.empty if self.stays(each.name)]

    def _spare(self) -> list[Node]:
        """Empty nodes in removal order. Leaving nodes come first, so that none of them is kept."""
        fleet = self.context.fleet
        leaving = [node for node in self.leaving_otherwise if is_empty(fleet, node)]
        marked = [each.node for each in self.noted if is_empty(fleet, each.node)]
        return [node for group in (leaving, marked, self.empty()) for node in self.order.sorted(group)]

    def claim_of(self, node: Node) -> NodeClaim | None:
        return self.context.fleet.claims_on(self.pool.name).get(node.name)
