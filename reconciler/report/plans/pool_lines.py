"""Each pool as it stands, and its bill: now, once all is done that comes without this change, and once it is done too.

A pool that no policy declares any more is still paid for: by the policy of the base, or at a price that nobody knows.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.plan.consequence import LEAVES, Consequence
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.observing import inaction_of
from reconciler.plan.impact.blame import pool_of
from reconciler.plan.impact.pricing import Bills
from reconciler.plan.sums.usage import use_of
from reconciler.report.plans.planned import Cost, PoolLine


class Future(msgspec.Struct, frozen=True):
    """What becomes of a fleet by one plan."""

    gone: frozenset[str] = frozenset()  # names of nodes
    bought: dict[str, int] = {}  # GPUs of nodes that come, by the names that stand for them


class _Declared(msgspec.Struct, frozen=True):
    """A pool by name, with the policy of the base and that of the change; None where there is none."""

    name: str
    before: Declared[GpuPool] | None
    after: Declared[GpuPool] | None


def pool_lines(scene: PlanningResult, base: PlanningResult | None, bills: Mapping[str, Bills]) -> Iterator[PoolLine]:
    """The declared ones; then those that are no longer declared and that have nodes to pay for."""
    for pool in _pools(scene, base):
        declared = pool.after or pool.before
        use = use_of(scene.fleet, pool.name, declared.spec.devices.count if declared else 1)
        bill = bills[pool.name]
        yield PoolLine(
            pool=pool.name,
            nodes=use.nodes,
            busy_nodes=use.busy_nodes,
            gpus=use.gpus_total,
            gpus_in_use=use.gpus_used,
            cost=Cost(bill.now, bill.without, bill.with_change, bill.committed, bill.repriced),
            budgets_read=not scene.inputs.observed.why_unread("poddisruptionbudgets.policy"),
            remarks=tuple(_remarks(scene, pool)),
            unpriced=bill.unpriced,
            declared=pool.after is not None,
            observation=inaction_of(scene.inputs, scene.fleet, pool.name),
        )


def future_without(scene: PlanningResult, base: PlanningResult | None) -> Future:
    """Of what comes without this change."""
    consequences = [each for each in scene.plan.consequences if each.cause == "standing"]
    return _future(base.plan.consequences if base else consequences)


def future_with(scene: PlanningResult) -> Future:
    """Of all that comes with it."""
    return _future(scene.plan.consequences)


def _future(consequences: Iterable[Consequence]) -> Future:
    future = tuple(consequences)
    gone = frozenset(name for each in future if each.fate in LEAVES for name in each.nodes)
    bought = {
        name: share.gpus
        for each in future
        if each.fate == "bought"
        for name, share in zip(each.nodes, each.shares, strict=True)
    }
    return Future(gone, bought)


def _pools(scene: PlanningResult, base: PlanningResult | None) -> Iterator[_Declared]:
    before = {pool.name: pool for pool in base.inputs.desired.pools} if base else {}
    after = {pool.name: pool for pool in scene.inputs.desired.pools}
    touched = {pool_of(each) for one in (scene, base) if one for each in one.plan.consequences}
    for name, pool in after.items():
        yield _Declared(name, before.get(name, pool), pool)
    for name in sorted((before.keys() | touched) - after.keys()):
        if scene.fleet.nodes_of(name):
            yield _Declared(name, before.get(name), None)


def _remarks(scene: PlanningResult, pool: _Declared) -> Iterator[str]:
    yield from _limits(scene, pool)
    nodes = scene.fleet.nodes_of(pool.name)
    if scene.inputs.observed.why_unread("nodeclaims.karpenter.sh") or not nodes:
        return
    claimed = {claim.status.node_name for claim in scene.fleet.claims_of(pool.name)}
    unclaimed = sum(node.name not in claimed for node in nodes)
    if unclaimed:
        has = "has" if unclaimed == 1 else "have"
        them = "it" if unclaimed == 1 else "them"
        yield f"{unclaimed} of its {len(nodes)} nodes {has} no NodeClaim: Karpenter does nothing to {them}."


def _limits(scene: PlanningResult, pool: _Declared) -> Iterator[str]:
    """Whether a replacement may be launched before the node that it is for has gone."""
    limits = pool.after.spec.limits if pool.after else {}
    own = [each for each in scene.plan.consequences if each.pool == pool.name and limits]
    text = ", ".join(f"{most} {name}" for name, most in sorted(limits.items()))
    if any(hindrance.kind == "limits" for each in own for hindrance, _ in each.held_by):
        yield f"Limits: {text}: already exceeded or reached, so that no replacement is launched."
    elif any(each.fate == "replaced" for each in own):
        yield f"Limits: {text} leave room for replacements."
