"""Freezes and suspensions: on frozen or suspended objects, only removal of taints and a few other releasing actions go
on.

A freeze is an annotation with its end time, and optionally one with a reason: on a node; on the NodePool of a pool,
or its GpuPool if policies are custom resources; on a ChangeGuard, for all that it guards; and on reconciler's own
namespace, for everything. An unreadable end time freezes until it is corrected, because the author wanted a freeze.
"""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Literal

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import (
    Action,
    Annotate,
    Decision,
    Delete,
    Hold,
    Reason,
    Ref,
    Status,
    Taint,
    Ungate,
)
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.reasons import OfObject


class FreezeScope(msgspec.Struct, frozen=True, gc=False):
    kind: Literal["everything", "guard", "pool", "node"]
    name: str = ""  # name of the ChangeGuard, the pool or the node

    @property
    def words(self) -> str:
        """The scope as text: everything, what ChangeGuard/fleet guards, pool a100, Node/n1."""
        of_kind = {
            "guard": f"what ChangeGuard/{self.name} guards",
            "pool": f"pool {self.name}",
            "node": f"Node/{self.name}",
        }
        return of_kind.get(self.kind, "everything")


class Frozen(OfObject, frozen=True):
    template = "{scope} is frozen until {written}{note:in_brackets}: {object} is not changed."
    by_person = True

    scope: FreezeScope
    until: Instant
    written: str  # the end time, as written in the annotation
    note: str = ""  # the reason that somebody gave for the freeze


class FrozenUnreadably(OfObject, frozen=True):
    template = (
        "{scope} is frozen until {written}{note:in_brackets}, which is not a time such as 2026-11-02T08:00:00Z: "
        "{object} is not changed until the annotation is corrected."
    )
    by_person = True

    scope: FreezeScope
    written: str
    note: str = ""


class PoolSuspended(OfObject, frozen=True):
    template = "GpuPool/{pool} is suspended: {object} is not changed until spec.suspend is removed."
    by_person = True

    pool: str


REASONS = (Frozen, FrozenUnreadably, PoolSuspended)

# Kinds with freeze annotations. Nodes and NodePools are not listed, because every plan requires them.
_PLACES = tuple(each.title for each in RESOURCE_KINDS if each.kind in {"Namespace", "GpuPool", "ChangeGuard"})

RELEASE = "release"  # the planner that removes everything of reconciler, frozen objects included


class Freeze(msgspec.Struct, frozen=True):
    """A freeze that is active now."""

    scope: FreezeScope
    written: str  # the end time, as written
    reason: str = ""
    until: Instant | None = None  # None: unreadable

    @property
    def scope_text(self) -> str:
        return self.scope.words

    def facts(self, subject: Ref) -> Frozen | FrozenUnreadably:
        """Reason for a hold on a frozen subject."""
        if self.until is None:
            return FrozenUnreadably(object=subject, scope=self.scope, written=self.written, note=self.reason)
        return Frozen(object=subject, scope=self.scope, until=self.until, written=self.written, note=self.reason)

    @property
    def until_text(self) -> str:
        """The end as text: until 2026-11-02T08:00:00Z (maintenance)."""
        until = timestamp(self.until) if self.until is not None else self.written
        return f"until {until} ({self.reason})" if self.reason else f"until {until}"


def freeze_of(scope: FreezeScope, written: str, reason: str, now: Instant) -> Freeze | None:
    """Freeze from two annotations; None if there is no freeze, or the freeze has ended."""
    if not written:
        return None
    try:
        until = instant(written)
    except ValueError:
        return Freeze(scope, written, reason)
    return Freeze(scope, written, reason, until) if until > now else None


def why_unsure(observed: Observed) -> str:
    """Why freezes may exist that were not read; empty if all kinds could be read."""
    return observed.why_unread(*_PLACES)


class Freezes:
    """Lookups of freezes for one plan."""

    def __init__(self, inputs: Inputs, fleet: Fleet) -> None:
        self._inputs = inputs
        self._fleet = fleet

    def why_still(self, decision: Decision, nodes: frozenset[str]) -> tuple[Reason, Hold] | None:
        """Why the decision must wait, and until when. `nodes`: nodes that the decision removes besides its subject."""
        act = decision.act
        if isinstance(act, Hold) or decision.planner == RELEASE or _goes_on(act, decision.subject):
            return None
        declared = self._inputs.desired.pool(decision.pool) if decision.pool else None
        if declared is not None and declared.spec.suspend:
            facts = PoolSuspended(object=decision.subject, pool=decision.pool)
            return Reason(facts, declared.origin("spec.suspend")), Hold()
        freeze = next(self._over(decision, nodes), None)
        if freeze is None:
            return None
        return Reason(freeze.facts(decision.subject), decision.reason.origin), Hold(freeze.until)

    def all(self) -> tuple[Freeze, ...]:
        """All active freezes, the widest first."""
        pools = [each for _, each in sorted(self._pools.items())]
        nodes = [each for _, each in sorted(self._nodes.items())]
        freezes = [*self._everything, *pools, *nodes]
        return tuple(dict.fromkeys(freezes))

    def of_node(self, name: str) -> Freeze | None:
        """The widest freeze of a node."""
        node = self._fleet.node(name)
        return next(iter((*self._wide(node.pool if node else ""), *self._of_nodes(frozenset({name})))), None)

    def of_node_alone(self, name: str) -> Freeze | None:
        """The freeze of the node itself, without freezes of its pool."""
        return self._nodes.get(name)

    def of_pool(self, pool: str) -> Freeze | None:
        """The widest freeze of a pool."""
        return next(iter(self._wide(pool)), None)

    def _over(self, decision: Decision, nodes: frozenset[str]) -> Iterator[Freeze]:
        subject = decision.subject
        yield from self._wide(decision.pool or (subject.name if subject.kind == "NodePool" else ""))
        if not self._nodes:
            return
        own = {subject.name} if subject.kind == "Node" else set()
        if subject.kind == "Pod":
            own = {self._node_of_pod.get((each.namespace, each.name), "") for each in decision.refs}
        yield from self._of_nodes(nodes | own)

    def _wide(self, pool: str) -> Iterator[Freeze]:
        yield from self._everything
        if pool in self._pools:
            yield self._pools[pool]

    def _of_nodes(self, nodes: frozenset[str]) -> Iterator[Freeze]:
        for name in sorted(nodes & self._nodes.keys()):
            yield self._nodes[name]

    def _freeze(self, scope: FreezeScope, annotations: Mapping[str, str]) -> Freeze | None:
        until, reason = annotations.get(names.FROZEN_UNTIL, ""), annotations.get(names.FROZEN_REASON, "")
        return freeze_of(scope, until, reason, self._inputs.now)

    @cached_property
    def _everything(self) -> tuple[Freeze, ...]:
        own = [each for each in self._inputs.observed.namespaces if each.name == self._inputs.observed.own_namespace]
        annotationses = (each.metadata.annotations for each in own)
        scope, now = FreezeScope("everything"), self._inputs.now
        freezes = (freeze_of(scope, each.frozen_until, each.frozen_reason, now) for each in annotationses)
        return tuple(each for each in freezes if each is not None)

    @cached_property
    def _pools(self) -> dict[str, Freeze]:
        """Freeze by pool: from a guard, else from the GpuPool, else from a NodePool."""
        freezes: dict[str, Freeze] = {}
        named = [(each.name, each) for each in (*self._of("GpuPool"), *self._inputs.observed.node_pools)]
        named += [(each.metadata.labels.get(names.POOL, ""), each) for each in self._inputs.observed.node_pools]
        for guard in self._of("ChangeGuard"):
            if freeze := self._freeze(FreezeScope("guard", guard.name), guard.metadata.annotations):
                freezes |= {pool: freeze for pool in self._guarded(guard.name) if pool not in freezes}
        for name, whole in named:
            freeze = self._freeze(FreezeScope("pool", name), whole.metadata.annotations)
            if freeze and name:
                freezes.setdefault(name, freeze)
        return freezes

    @cached_property
    def _nodes(self) -> dict[str, Freeze]:
        freezes = {}
        for node in self._fleet.nodes_frozen:
            annotations = node.metadata.annotations
            freeze = freeze_of(
                FreezeScope("node", node.name), annotations.frozen_until, annotations.frozen_reason, self._inputs.now
            )
            if freeze is not None:
                freezes[node.name] = freeze
        return freezes

    @cached_property
    def _node_of_pod(self) -> dict[tuple[str, str], str]:
        return {(each.metadata.namespace, each.name): each.node for each in self._inputs.observed.pods}

    def _of(self, kind: str) -> list[Unstructured]:
        return sorted(
            (each for each in self._inputs.observed.policies if each.kind == kind), key=lambda each: each.name
        )

    def _guarded(self, guard: str) -> list[str]:
        """Pools of a guard. If the guard covers all pools, undeclared pools are included."""
        guards = [each for each in self._inputs.desired.guards if each.name == guard]
        named = {pool for each in guards for pool in each.spec.pool_names}
        if "*" not in named:
            return sorted(named)
        declared = {each.name for each in self._inputs.desired.pools}
        return sorted(declared | {each.name for each in self._inputs.observed.node_pools})


def _goes_on(act: Action, subject: Ref) -> bool:
    """Whether the action releases the subject or only reports, and so is carried out on frozen objects too."""
    match act:
        case Taint(value=value):
            return value is None
        case Delete():
            return subject.kind == "Lease"
        case Ungate() | Status():  # an ungated pod has room, and the scheduler chooses the node
            return True
        case Annotate(annotations=annotations):  # cancellation of a pod's notice to save its work
            return annotations == ((names.EVICT_AT, None),)
        case _:
            return False
