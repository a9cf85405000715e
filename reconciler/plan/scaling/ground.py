"""What one NodeProvisioner looks at: the nodes of its pool, sorted by what may become of them.

A node that is being deleted is none of them. One that somebody else takes away (drained, disrupted by Karpenter) is on
its way out whatever happens here; one that is in others' hands otherwise stays, and is left alone.
"""

from functools import cached_property

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.node_facts import NodeFacts
from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.model.kinds.node_provisioner import NodeProvisioner
from reconciler.model.planned.evaluated import Marked
from reconciler.model.planned.inputs import Inputs
from reconciler.model.pool_use import Use
from reconciler.plan.guards.door import observes
from reconciler.plan.removal import untouchable
from reconciler.plan.scaling.imagined import ByNode, as_imagined
from reconciler.plan.scaling.marks import Mark, mark_of
from reconciler.plan.scaling.removal_order import RemovalOrder
from reconciler.plan.usage import is_empty


class Site(msgspec.Struct, frozen=True, dict=True):
    """What all provisioners of one plan look at; what several of them ask is looked up once."""

    inputs: Inputs
    fleet: Fleet
    imagined: ByNode

    @property
    def now(self) -> Instant:
        return self.inputs.now

    @cached_property
    def zones(self) -> list[str]:
        """Where the cluster has nodes; nothing where nodes do not say where they are."""
        labels = (node.metadata.labels for node in self.fleet.observed.nodes)
        return sorted({each[names.ZONE] for each in labels if names.ZONE in each}) or [""]

    @cached_property
    def daemons(self) -> list[Pod]:
        """A pod of each DaemonSet."""
        sets = (each for each in self.fleet.observed.workloads if each.kind == "DaemonSet")
        return [Pod(each.metadata, each.spec.template.spec) for each in sets if each.spec.template is not None]


class Noted(msgspec.Struct, frozen=True, gc=False):
    """A node that bears our mark, as we may act on it."""

    node: Node
    mark: Mark

    @property
    def told(self) -> Marked | None:
        at = self.mark.at
        return None if at is None else Marked(self.node.name, at, self.mark.is_hard)


class Ground:
    """Owner of what was counted of one pool, for one plan; in one walk over its nodes, since there may be thousands."""

    def __init__(self, site: Site, wish: Declared[NodeProvisioner], pool: Declared[GpuPool]) -> None:
        self.site, self.wish, self.pool = site, wish, pool
        self.facts = [each for each in site.fleet.facts_of(pool.name) if not each.is_leaving]
        self.staying: list[NodeFacts] = []  # that nobody takes away
        self.noted: list[Noted] = []  # marked, and not taken away otherwise
        self.leaving_otherwise: list[Node] = []
        self.unready = sum([not each.is_ready for each in self.facts])
        self._imagines = bool(site.imagined) and observes(site.inputs, pool.name)
        for each in self.facts:
            if each.is_going or self._imagines:
                self._sort(each)
            else:
                self.staying.append(each)

    def _sort(self, facts: NodeFacts) -> None:
        node = facts.node
        if self._imagines and (taints := self.site.imagined.get((node.name, node.metadata.uid))):
            node = as_imagined(node, taints)
        mark = mark_of(node)
        if node.taint(names.DRAINING) is not None or node.taint(names.DISRUPTED) is not None:
            self.leaving_otherwise.append(node)
        elif mark is not None:
            self.noted.append(Noted(node, mark))
        else:
            self.staying.append(facts)

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

    @cached_property
    def arriving(self) -> tuple[NodeClaim, ...]:
        """Machines that were bought, and whose nodes have not come, for as long as Karpenter has not given them up."""
        claims = self.site.fleet.nodeless_claims_of(self.pool.name)
        return tuple([each for each in claims if not each.metadata.deletion_timestamp])

    @cached_property
    def use(self) -> Use:
        occupancy, lent = self.site.fleet.occupancy, self.site.fleet.lent
        counting, asked = occupancy.counting, occupancy.gpus
        busy = used = total = 0
        sorts = {each.gpus for each in self.facts} - {0}
        for each in self.facts:
            name, gpus = each.name, each.gpus
            busy += counting.get(name, 0) > 0
            total += gpus
            wanted = asked.get(name, 0)
            if lent:
                wanted = max(wanted, lent.get(name, 0))
            used += min(wanted, gpus)
        return Use(
            nodes=len(self.facts),
            busy_nodes=busy,
            gpus_used=used,
            gpus_total=total,
            gpus_per_node=sorts.pop() if len(sorts) == 1 else self.pool.spec.devices.count,
            spare=tuple(node.gpus for node in self._spare()) if len(sorts) > 1 else None,
        )

    @cached_property
    def order(self) -> RemovalOrder:
        return RemovalOrder(self.pool.spec)

    def empty(self) -> list[Node]:
        """Those of the nodes that nobody takes away on which nothing runs that counts."""
        counting, lent = self.site.fleet.occupancy.counting, self.site.fleet.lent
        return [each.node for each in self.staying if not counting.get(each.name, 0) and not lent.get(each.name, 0)]

    def _spare(self) -> list[Node]:
        """Empty nodes in the order in which they go: those on their way out first, so that none is called back."""
        fleet = self.site.fleet
        leaving = [node for node in self.leaving_otherwise if is_empty(fleet, node)]
        marked = [each.node for each in self.noted if is_empty(fleet, each.node)]
        return [node for group in (leaving, marked, self.empty()) for node in self.order.sorted(group)]

    def claim_of(self, node: Node) -> NodeClaim | None:
        return self._claims.get(node.name)

    @cached_property
    def _claims(self) -> dict[str, NodeClaim]:
        return {each.status.node_name: each for each in self.site.fleet.claims_of(self.pool.name)}
