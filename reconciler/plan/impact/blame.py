"""Which consequences come because of this change, which would come without it, and which it spares.

Two plans of the same cluster are compared, that of the change and that of its base, node by node. A fate that both have
comes anyway, and so does what stands in both. A fate that only the change brings is its doing, also where the base has
another one. Where the base drifts a node and the change does not, the node is spared. So each node stands on one side.
Nodes that are not there yet are compared by the names that stand for them (purchases.py).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec

from reconciler.model.plan.capacity import Stage
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.plan import Plan
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.observing import inaction_of

# What takes a node away, or would if nothing held it up, and what buys one: of these it is told that they do not come.
_SPARED: frozenset[Fate] = frozenset(
    {"scaled", "drained", "removed", "replaced", "blocked", "deleted", "bought", "scheduled"}
)

_Node = tuple[str, str]  # NodePool and name
_By = Mapping[_Node, Consequence]


class Blame(msgspec.Struct, frozen=True):
    """Each in the order of the plan."""

    without: tuple[Consequence, ...] = ()
    causes: tuple[Consequence, ...] = ()
    spared: tuple[Consequence, ...] = ()  # would come without the change, and do not come with it


def blame(plan: Plan, base: Plan | None) -> Blame:
    """Without a base, what changes is blamed on the plan, and what stands is not."""
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

    # What stands in a pool that the base does not look at is in no plan of the base.
    unseen = _parts(plan.consequences, lambda node: comes_anyway(node) and node not in without)
    return Blame(
        (*_parts(base.consequences, comes_anyway), *unseen),
        (*_parts(plan.consequences, is_new), *(each for each in plan.consequences if each.fate == "exchanged")),
        tuple(_parts(base.consequences, is_spared)),
    )


def instead_of(consequences: Iterable[Consequence], base: Plan | None) -> Iterator[Consequence]:
    """What the base does to nodes for which the change has another fate."""
    nodes = {(each.node_pool, node) for each in consequences if each.fate != "exchanged" for node in each.nodes}
    yield from _parts(base.consequences if base is not None else (), lambda node: node in nodes)


def pool_of(consequence: Consequence) -> str:
    """The GpuPool; of a NodePool that no policy declares any more, its own name, which was the same."""
    return consequence.pool or consequence.node_pool


def _is_same(head: Consequence, before: Consequence | None) -> bool:
    if before is None:
        return head.cause == "standing"
    return head.fate == before.fate or head.cause == before.cause == "standing"


def _by_node(consequences: Iterable[Consequence]) -> _By:
    """An exchange is told beside another fate of the same nodes."""
    return {(each.node_pool, node): each for each in consequences if each.fate != "exchanged" for node in each.nodes}


def _parts(consequences: Iterable[Consequence], belongs: Callable[[_Node], bool]) -> Iterator[Consequence]:
    for each in consequences:
        left = each.only(node for node in each.nodes if belongs((each.node_pool, node)))
        if left is not None:
            yield left


# --- Pools in which only one of two plans acts: a change sets mode, or suspends a pool, or takes that back.
#
# A plan tells what it would do in pools that only observe, or that are suspended or frozen. Where both plans only tell,
# both are told. Where one acts and the other does not, what the other would do is nothing that comes: so a pull request
# that sets `mode: Enforce` shows what will be done because of it, and one that suspends a pool what no longer will be.

# What others have begun or will begin, and what was asked of them already.
_OTHERS: frozenset[Stage] = frozenset({"machine", "asked", "karpenter"})


class Side(msgspec.Struct, frozen=True):
    """One of two plans, or the only one."""

    scene: PlanningResult
    quiet: frozenset[str] = frozenset()  # pools in which it does not act, and the other does

    def does(self, pool: str, stage: Stage | None = None) -> bool:
        """Whether what it does or would do there is told. `stage`: of a purchase."""
        return pool not in self.quiet or stage in _OTHERS


def sides(scene: PlanningResult, base: PlanningResult | None) -> tuple[Side, Side | None]:
    """Both plans, without what edits of NodePools would do where they only tell."""
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
    plan = msgspec.structs.replace(scene.plan, consequences=consequences) if quiet else scene.plan
    return Side(msgspec.structs.replace(scene, plan=plan), quiet)


def _acts(scene: PlanningResult, pool: str) -> bool:
    return inaction_of(scene.inputs, scene.fleet, pool) is None
