"""Attributes consequences: caused by this change, also happening without it, or spared by it.

Two plans of the same cluster are compared node by node: the plan of the change and the plan of its base. A fate in
both plans happens in any case. A fate only in the plan of the change is caused by it, even if the base has another
fate for the node. If only the base drifts a node, the change spares the node. So each node is on one side. Nodes
that do not exist yet are compared by placeholder names (purchases.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from reconciler.model.plan.capacity import Stage
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.plan import Plan
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.observing import inaction_of

# Fates that remove a node, would remove it if nothing prevented it, or buy one: reported as spared if they no longer
# happen.
_SPARED: frozenset[Fate] = frozenset(
    {"scaled", "drained", "removed", "replaced", "blocked", "deleted", "bought", "scheduled"}
)

_Node = tuple[str, str]  # NodePool and name
_By = Mapping[_Node, Consequence]


class Blame(msgspec.Struct, frozen=True):
    """Attributed consequences, each group in the order of the plan."""

    without: tuple[Consequence, ...] = ()
    causes: tuple[Consequence, ...] = ()
    spared: tuple[Consequence, ...] = ()  # happen only without the change


def blame(plan: Plan, base: Plan | None) -> Blame:
    """Without a base, changes are attributed to the plan, and independent consequences are not."""
    if base is None:
        changed = [each for each in plan.consequences if each.cause == "change"]
        consequences = [each for each in plan.consequences if each.cause == "standing"]
        return Blame(tuple(consequences), tuple(changed))
    with_change, without = _by_node(plan.consequences), _by_node(base.consequences)

    def comes_anyway(node: _Node) -> bool:
        head, before = with_change.get(node), without.get(node)
        return head is not None and _is_same(head, before)

    def is_spared(node: _Node) -> bool:
        head, before = with_change.get(node), without[node]
        return before.fate in _SPARED and (head is None or head.fate == "undrifted")

    def is_new(node: _Node) -> bool:
        return not comes_anyway(node) and not (node in without and is_spared(node))

    # Independent consequences in a pool that the base does not declare are in no plan of the base.
    unseen = _parts(plan.consequences, lambda node: comes_anyway(node) and node not in without)
    return Blame(
        (*_parts(base.consequences, comes_anyway), *unseen),
        (*_parts(plan.consequences, is_new), *(each for each in plan.consequences if each.fate == "exchanged")),
        tuple(_parts(base.consequences, is_spared)),
    )


def instead_of(consequences: Iterable[Consequence], base: Plan | None) -> Iterator[Consequence]:
    """Consequences of the base for nodes with another fate under the change."""
    nodes = {(each.node_pool, node) for each in consequences if each.fate != "exchanged" for node in each.nodes}
    yield from _parts(base.consequences if base is not None else (), lambda node: node in nodes)


def pool_of(consequence: Consequence) -> str:
    """The GpuPool; for a NodePool that no policy declares any more, its own name, which was the same."""
    return consequence.pool or consequence.node_pool


def _is_same(head: Consequence, before: Consequence | None) -> bool:
    if before is None:
        return head.cause == "standing"
    return head.fate == before.fate or head.cause == before.cause == "standing"


def _by_node(consequences: Iterable[Consequence]) -> _By:
    """An exchange is reported in addition to another fate of the same nodes."""
    return {(each.node_pool, node): each for each in consequences if each.fate != "exchanged" for node in each.nodes}


def _parts(consequences: Iterable[Consequence], belongs: Callable[[_Node], bool]) -> Iterator[Consequence]:
    for each in consequences:
        left = each.only(node for node in each.nodes if belongs((each.node_pool, node)))
        if left is not None:
            yield left


# --- Pools in which only one of two plans acts, because a change sets mode, or suspends or resumes a pool.
#
# A plan includes suppressed changes of pools that are in Observe mode, suspended or frozen. If both plans only
# suppress, both are reported. If only one acts, suppressed changes of the other are ignored: a pull request that sets
# `mode: Enforce` shows its actions, and one that suspends a pool shows the actions that no longer happen.

# Started or requested by others, or requested before.
_OTHERS: frozenset[Stage] = frozenset({"machine", "asked", "karpenter"})


def with_consequences(scene: PlanningResult, consequences: tuple[Consequence, ...]) -> PlanningResult:
    """The plan with these consequences instead."""
    return msgspec.structs.replace(scene, plan=msgspec.structs.replace(scene.plan, consequences=consequences))


class Side(msgspec.Struct, frozen=True):
    """One of two plans, or the only one."""

    scene: PlanningResult
    quiet: frozenset[str] = frozenset()  # pools in which only the other plan acts

    def does(self, pool: str, stage: Stage | None = None) -> bool:
        """Whether actions or suppressed actions of the plan in this pool are reported. `stage` is of a purchase."""
        return pool not in self.quiet or stage in _OTHERS

    def with_consequences(self, consequences: tuple[Consequence, ...]) -> "Side":
        return Side(with_consequences(self.scene, consequences), self.quiet)


def sides(scene: PlanningResult, base: PlanningResult | None) -> tuple[Side, Side | None]:
    """Both plans, without suppressed edits of NodePools."""
    if base is None:
        return Side(scene), None
    declared = {pool.name for pool in scene.inputs.desired.pools} & {pool.name for pool in base.inputs.desired.pools}
    acts = {name for name in declared if _acts(scene, name)}
    before = {name for name in declared if _acts(base, name)}
    return _side(scene, frozenset(before - acts)), _side(base, frozenset(acts - before))


def _side(scene: PlanningResult, quiet: frozenset[str]) -> Side:
    consequences = tuple(
        each for each in scene.plan.consequences if each.cause == "standing" or pool_of(each) not in quiet
    )
    return Side(with_consequences(scene, consequences), quiet)


def _acts(scene: PlanningResult, pool: str) -> bool:
    return inaction_of(scene.inputs, scene.fleet, pool) is None
