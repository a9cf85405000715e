"""What a changed policy buys, in a few words beside it.

Told of the NodeProvisioner where one of the pool is edited, else of the GpuPool; what follows on drift of the GpuPool.
"""

from collections.abc import Callable, Iterable

from reconciler.model.change import PolicyChange
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.plan.impact.blame import Blame, pool_of
from reconciler.report.plans.planned import Planned
from reconciler.report.wording import counted

_Sort = Callable[[Consequence], bool]


def buy_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """buys 10 nodes, buys 10 nodes fewer; nothing where the change buys what is bought anyway."""
    lines = []
    for pool, is_own in _pools(planned, change):
        more = _count(filter(is_own, blamed.causes), pool, "bought")
        fewer = _count(filter(is_own, blamed.spared), pool, "bought")
        instead = f" in place of {fewer}" if fewer else ""
        if more:
            lines.append(f"{_verb(planned, pool)} {counted(more, 'node')}{instead}")
        elif fewer:
            lines.append(f"buys {counted(fewer, 'node')} fewer")
    return ", ".join(lines)


def schedule_words(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """buys 5 nodes by schedules; nothing where no schedule of a NodeProvisioner buys more than it did."""
    if change.kind != "NodeProvisioner":
        return ""
    nodes = ((pool, _count(blamed.causes, pool, "scheduled")) for pool, _ in _pools(planned, change))
    return ", ".join(f"{_verb(planned, pool)} {counted(each, 'node')} by schedules" for pool, each in nodes if each)


def _verb(planned: Planned, pool: str) -> str:
    line = planned.pool(pool)
    return "would buy" if line and line.observation else "buys"


def _pools(planned: Planned, change: PolicyChange) -> list[tuple[str, _Sort]]:
    """Those whose purchases are told of this policy, and which of these are."""
    plans = [plan for plan in (planned.plan, planned.base) if plan is not None]
    sized = {(each.provisioner, each.pool) for plan in plans for each in plan.sizes}
    if change.kind == "NodeProvisioner":
        return [(pool, _is_requested) for pool in sorted({pool for name, pool in sized if name == change.name})]
    if change.kind != "GpuPool":
        return []
    edited = {each.name for each in planned.changes if each.kind == "NodeProvisioner"}
    is_sized = any(pool == change.name and name in edited for name, pool in sized)
    return [(change.name, _follows_drift if is_sized else lambda _: True)]


def _follows_drift(consequence: Consequence) -> bool:
    return consequence.order is not None and consequence.order.stage == "refill"


def _is_requested(consequence: Consequence) -> bool:
    return not _follows_drift(consequence)


def _count(consequences: Iterable[Consequence], pool: str, fate: Fate) -> int:
    return sum(len(each.nodes) for each in consequences if pool_of(each) == pool and each.fate == fate)
