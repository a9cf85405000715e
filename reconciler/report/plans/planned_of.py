"""From a plan and the fleet it is for to what its report says: decisions in words, and each pool with its bill."""

from collections.abc import Iterable, Iterator

import msgspec

from reconciler.model.change import PolicyChange
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Declared
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.model.planned.consequence import Consequence
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.plan import Plan
from reconciler.plan.cost import micro_dollars_per_hour
from reconciler.plan.explain import sentence
from reconciler.plan.planner import LOOKED_AT
from reconciler.plan.scene import Scene
from reconciler.plan.usage import use_of
from reconciler.report.edited import edited
from reconciler.report.plans.planned import Cost, Planned, PoolLine
from reconciler.report.setting import Setting
from reconciler.report.told import Told

_GONE = frozenset({"removed", "deleted"})


class Compared(msgspec.Struct, frozen=True):
    """The plan of another revision on the same cluster, and what the policies of the two differ in."""

    plan: Plan
    changes: tuple[PolicyChange, ...]


def planned_of(setting: Setting, scene: Scene, compared: Compared | None, notices: tuple[str, ...] = ()) -> Planned:
    """All that the report of a plan says."""
    base = compared.plan if compared else None
    return Planned(
        setting=setting,
        plan=scene.plan,
        told=told_of(scene.plan.decisions, scene.inputs.observed),
        base=base,
        changes=compared.changes if compared else (),
        pools=tuple(pool_lines(scene, base)),
        unread=tuple(each for each in scene.inputs.observed.unread if each.kind in LOOKED_AT),
        notices=notices,
    )


def told_of(decisions: Iterable[Decision], observed: Observed) -> tuple[Told, ...]:
    """The decisions in words, with what each changes in an object that is there."""
    return tuple(Told(decision, sentence(decision.reason), edited=edited(decision, observed)) for decision in decisions)


def pool_lines(scene: Scene, base: Plan | None) -> Iterator[PoolLine]:
    """Each declared pool as it stands, and what it costs: now, without this change, and with it."""
    standing = [each for each in scene.plan.consequences if each.cause == "standing"]
    without = _gone(base.consequences if base else standing)
    with_change = _gone(scene.plan.consequences)
    for pool in scene.inputs.desired.pools:
        use = use_of(scene.fleet, pool.name, pool.spec.devices.count)
        yield PoolLine(
            pool=pool.name,
            mode=pool.spec.mode,
            nodes=use.nodes,
            busy_nodes=use.busy_nodes,
            gpus=use.gpus_total,
            gpus_in_use=use.gpus_used,
            cost=_cost(scene, pool, (without, with_change)),
            budgets_read=not scene.inputs.observed.why_unread("poddisruptionbudgets.policy"),
            remarks=tuple(_remarks(scene, pool, use.nodes)),
            unpriced=micro_dollars_per_hour(pool, scene.fleet.nodes_of(pool.name)).unpriced,
        )


def _remarks(scene: Scene, pool: Declared[GpuPool], nodes: int) -> Iterator[str]:
    """Whether a replacement may be launched before the node that it is for has gone."""
    wave = max((each.wave for each in scene.plan.consequences if _replaces(each, pool.name)), default=0)
    limit = pool.spec.limits.get("nodes")
    if not wave or limit is None:
        return
    most = limit.milli // 1000
    room = max(0, most - nodes)
    if room >= wave:
        yield f"Limits: {most} nodes leave room for replacements."
    else:
        yield f"Limits: {most} nodes leave room for {room} of the {wave} replacements at a time; the others wait."


def _replaces(consequence: Consequence, pool: str) -> bool:
    return consequence.pool == pool and consequence.fate == "replaced"


def _cost(scene: Scene, pool: Declared[GpuPool], gone: tuple[frozenset[str], frozenset[str]]) -> Cost:
    nodes = scene.fleet.nodes_of(pool.name)
    now = micro_dollars_per_hour(pool, nodes)
    left = [[node for node in nodes if node.name not in each] for each in gone]
    without, with_change = (micro_dollars_per_hour(pool, each).micro_dollars_per_hour for each in left)
    return Cost(now.micro_dollars_per_hour, without, with_change, now.committed_micro_dollars_per_hour)


def _gone(consequences: Iterable[Consequence]) -> frozenset[str]:
    return frozenset(name for each in consequences if each.fate in _GONE for name in each.nodes)
