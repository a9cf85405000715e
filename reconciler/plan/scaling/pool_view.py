"""What one NodeProvisioner looks at: the nodes of its pool, sorted by what may become of them.

A node that is being deleted is none of them. One that somebody else takes away (drained, disrupted by Karpenter) is on
its way out whatever happens here; one that is in others' hands otherwise stays, and is left alone.
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
from reconciler.plan.capacity.offerings import LaunchOptions, digest_of, live, outlook_of, zones_of
from reconciler.plan.draft import Draft
from reconciler.plan.guards.observing import ByNode, as_imagined, observes
from reconciler.plan.guards.tally import ClusterMin
from reconciler.plan.nodes.ownership import closed_nodes, drain_policies, untouchable
from reconciler.plan.scaling.marks import DeletionTaint, mark_of
from reconciler.plan.sums import is_empty

# --- Which of several empty nodes goes first: a table of keys, the first that tells two nodes apart decides.
#
# A node of which no price is known comes after all that have one: what it saves is not known either.

KeyName = Literal["readiness", "price", "priced", "name"]


class Key(msgspec.Struct, frozen=True):
    """What is looked at."""

    name: KeyName
    of: Callable[[Node, int | None], int | str]  # of a node and its price


class RemovalOrder:
    """For the nodes of one pool."""

    def __init__(self, pool: GpuPool) -> None:
        self._pool = pool

    def sorted(self, nodes: Iterable[Node]) -> list[Node]:
        """Those that go first, first."""
        return sorted(nodes, key=self.key)

    def key(self, node: Node) -> tuple[int | str, ...]:
        price = self.price(node)
        return tuple(each.of(node, price) for each in KEYS)

    def price(self, node: Node) -> int | None:
        """Millionths of a dollar an hour; None where the policy does not say."""
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
    """What all provisioners of one plan look at; what several of them ask is looked up once."""

    inputs: Inputs
    draft: Draft
    imagined: ByNode

    @cached_property
    def drain_policies(self) -> Mapping[str, Declared[DrainPolicy]]:
        """By pool."""
        return drain_policies(self.inputs.desired)

    @property
    def now(self) -> Instant:
        return self.inputs.now

    @property
    def fleet(self) -> Fleet:
        return self.draft.fleet

    @cached_property
    def daemons(self) -> list[tuple[Pod, Tolerance]]:
        """A pod of each DaemonSet, and what it tolerates."""
        sets = (each for each in self.fleet.observed.workloads if each.kind == "DaemonSet")
        pods = (Pod(each.metadata, each.spec.template.spec) for each in sets if each.spec.template is not None)
        return [(pod, Tolerance(pod.spec.tolerations)) for pod in pods]

    @cached_property
    def daemon_sets(self) -> DaemonSets | None:
        """By namespace and name; None where they could not be read."""
        return daemon_sets(self.fleet.observed)

    @cached_property
    def cluster_min(self) -> ClusterMin:
        """What the cluster keeps in all, for all provisioners together."""
        return ClusterMin(self.inputs, self.draft)


class Noted(msgspec.Struct, frozen=True, gc=False):
    """A node that bears our mark, as we may act on it."""

    node: Node
    mark: DeletionTaint

    @property
    def marked(self) -> Marked | None:
        at = self.mark.at
        return None if at is None else Marked(self.node.name, at, self.mark.is_hard)


class PoolView:
    """Owner of what was looked up of one pool, for one plan. Sums are the fleet's: of many nodes few have changed."""

    def __init__(self, context: ScalingContext, wish: Declared[NodeProvisioner], pool: Declared[GpuPool]) -> None:
        self.context, self.wish, self.pool = context, wish, pool
        self.totals = context.fleet.pool(pool.name)
        self.noted: list[Noted] = []  # marked, and not taken away otherwise
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
        """A pool that is only observed takes nothing from the others: its nodes go in thought."""
        if not self.context.cluster_min.is_limited or not observes(self.context.inputs, self.pool.name):
            return self.context.cluster_min
        cluster_min = self.context.cluster_min.copy()
        for each in self.noted:
            node = self.context.fleet.node(each.node.name)
            if node is not None and not node.is_being_removed:
                cluster_min.take(node)
        return cluster_min

    def _begun(self) -> Iterator[Node]:
        """Nodes that a drain began with, while its taint is not seen yet."""
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
        """The DrainPolicy to which a node belongs that is not ready; nothing where none names the pool."""
        return None if node.is_ready else self.context.drain_policies.get(self.pool.name)

    @property
    def facts(self) -> Sequence[NodeFacts]:
        """All its nodes, by name."""
        return self.totals.nodes

    @cached_property
    def _leaving_names(self) -> frozenset[str]:
        """Names of nodes that somebody takes away."""
        return frozenset([*(each.node.name for each in self.noted), *(each.name for each in self.leaving_otherwise)])

    def stays(self, name: str) -> bool:
        """Whether nobody takes that node of the pool away."""
        return name not in self._leaving_names

    @cached_property
    def ours(self) -> list[Noted]:
        """Marked nodes that nobody else has in hand."""
        return [each for each in self.noted if untouchable(each.node) is None]

    @property
    def nodes(self) -> list[Node]:
        """All of them, as they are."""
        return [each.node for each in self.facts]

    @property
    def size(self) -> int:
        return len(self.facts)

    @property
    def unready(self) -> int:
        return self.totals.unready

    @property
    def machines(self) -> Sequence[NodeClaim]:
        """Bought machines whose nodes have not come: until it is gone, each counts for what a pool may have."""
        return self.context.fleet.nodeless_claims_of(self.pool.name)

    @cached_property
    def arriving(self) -> tuple[NodeClaim, ...]:
        """Of these, those that will come: Karpenter has not given them up."""
        return tuple([each for each in self.machines if not each.metadata.deletion_timestamp])

    @property
    def requested_machines(self) -> int:
        """Machines that smart pods ask for, and that nobody has bought yet."""
        return self.context.draft.requests.open_in(self.pool.name)

    @cached_property
    def zones(self) -> list[str]:
        """Where a new node may come."""
        return zones_of(self.pool.spec, self.context.fleet)

    @cached_property
    def outlook(self) -> LaunchOptions:
        """In which ways nodes can be asked for now."""
        pool, inputs = self.pool, self.context.inputs
        failed = live(inputs.memory.shortages, pool.name, digest_of(pool.spec), inputs.now)
        return outlook_of(pool.spec, self.zones, failed)

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
        """Names of nodes with room for a pod of any size: empty ones, and those that only a smart pod holds."""
        fleet, empty = self.context.fleet, {each.name for each in self.totals.empty}
        held = (each.pod for each in self.context.draft.requests.of(self.pool.name) if each.pod.node)
        counting = fleet.occupancy.counting
        return frozenset(
            empty | {pod.node for pod in held if counting.get(pod.node) == 1 and not fleet.lent.get(pod.node, 0)}
        )

    def _is_drained(self, node: Node) -> bool:
        """Whether it is being emptied, its taint seen or not: places were found for what is left there."""
        return node.taint(names.DISRUPTED) is None and not is_empty(self.context.fleet, node)

    @cached_property
    def order(self) -> RemovalOrder:
        return RemovalOrder(self.pool.spec)

    def empty(self) -> list[Node]:
        """Those of the nodes that nobody takes away on which nothing runs that counts."""
        return [each.node for each in self.totals.empty if self.stays(each.name)]

    def _spare(self) -> list[Node]:
        """Empty nodes in the order in which they go: those on their way out first, so that none is called back."""
        fleet = self.context.fleet
        leaving = [node for node in self.leaving_otherwise if is_empty(fleet, node)]
        marked = [each.node for each in self.noted if is_empty(fleet, each.node)]
        return [node for group in (leaving, marked, self.empty()) for node in self.order.sorted(group)]

    def claim_of(self, node: Node) -> NodeClaim | None:
        return self.context.fleet.claims_on(self.pool.name).get(node.name)
