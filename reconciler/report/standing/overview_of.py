"""From a plan and the fleet it is for to how things stand."""

from reconciler.model.desired import Declared
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.model.planned.action import Hold
from reconciler.plan.at_rest import is_at_rest
from reconciler.plan.drain.reasons import NEXT_CANDIDATE
from reconciler.plan.guards.door import observes
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.impact.impact import with_impact
from reconciler.plan.kept.scene import Scene
from reconciler.plan.planner import unread_of_use
from reconciler.plan.requests.short import short_of, short_words
from reconciler.plan.sums.usage import use_of
from reconciler.report.plans.planned_of import told_of
from reconciler.report.setting import Setting
from reconciler.report.standing.controller import controller_of
from reconciler.report.standing.leaving import leaving_of
from reconciler.report.standing.overview import Overview, PoolStanding


def overview_of(setting: Setting, scene: Scene, notices: tuple[str, ...] = ()) -> Overview:
    """All pools that policies declare, and how many decisions wait, each for what."""
    scene = with_impact(scene).scene
    decisions = tuple(each for each in scene.plan.decisions if not is_at_rest(each))
    holds = tuple(each for each in decisions if isinstance(each.act, Hold))
    held = len(holds)
    # One plan writes to some of the candidates of a drain, and counts are of all.
    later = [each for each in scene.plan.decisions if each.reason.code == NEXT_CANDIDATE.code]
    would_later = sum(observes(scene.inputs, each.pool) for each in later)
    would = sum(each.would for each in decisions) + would_later
    return Overview(
        setting=setting,
        pools=tuple(_standing(scene, pool) for pool in scene.inputs.desired.pools),
        unread=unread_of_use(scene.inputs.observed),
        notices=notices,
        pending=len(decisions) + len(later) - held - would,
        would=would,
        held=held,
        freezes=Freezes(scene.inputs, scene.fleet).all(),
        guarded=tuple(each for each in scene.plan.guarded if not each.would),
        controller=controller_of(scene.inputs.observed),
        leaving=leaving_of(scene),
        holds=told_of(scene.inputs, holds),
    )


def _standing(scene: Scene, pool: Declared[GpuPool]) -> PoolStanding:
    use = use_of(scene.fleet, pool.name, pool.spec.devices.count)
    drifted = sum(claim.says("Drifted") for claim in scene.fleet.claims_of(pool.name))
    why = scene.inputs.observed.why_unread
    return PoolStanding(
        pool=pool.name,
        mode=pool.spec.mode,
        nodes=None if why("nodes") else use.nodes,
        busy_nodes=None if why("nodes", "pods") else use.busy_nodes,
        gpus=None if why("nodes") else use.gpus_total,
        gpus_in_use=None if why("nodes", "pods") else use.gpus_used,
        drifted_nodes=None if why("nodeclaims.karpenter.sh") else drifted,
        short=short_words(short_of(scene.plan.memory.shortages, pool.name, scene.inputs.now)),
    )
