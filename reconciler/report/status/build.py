"""From a plan and the fleet it is for to how things stand."""

from collections import Counter

from reconciler.model.desired import Declared
from reconciler.model.plan.action import Hold
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.plan.capacity.shortages import short_of, short_words
from reconciler.plan.drain.codes.candidacy import DrainCandidateNext
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import observation_of
from reconciler.plan.holds.classes import is_held
from reconciler.plan.holds.resting import is_at_rest, supposed_by
from reconciler.plan.impact.impact import with_impact
from reconciler.plan.planner import unread_of_use
from reconciler.plan.sums.usage import use_of
from reconciler.report.contained import SectionContainment
from reconciler.report.plans.build import describe_decisions
from reconciler.report.setting import ReportHeader, set_aside_notices
from reconciler.report.status.controller import controller_of
from reconciler.report.status.leaving import leaving_of
from reconciler.report.status.overview import Overview, PoolOverview


def overview_of(setting: ReportHeader, scene: PlanningResult, notices: tuple[str, ...] = ()) -> Overview:
    """All pools that policies declare, and how many decisions wait, each for what."""
    contained, planned = SectionContainment(), scene
    scene = contained.part("what goes and what comes", lambda: with_impact(planned).scene, scene)
    decisions = tuple(each for each in scene.plan.decisions if not is_at_rest(each))
    holds = tuple(each for each in decisions if isinstance(each.act, Hold))
    # One plan writes to some of the candidates of a drain, and counts are of all.
    later = [each for each in scene.plan.decisions if isinstance(each.reason.facts, DrainCandidateNext)]
    acted = [each for each in decisions if not isinstance(each.act, Hold)]
    observations = (supposed_by(scene.inputs, each) for each in (*acted, *later))
    supposed = Counter(each for each in observations if each is not None)
    pools = tuple(
        contained.part(f"pool {pool.name}", lambda pool=pool: _pool_overview(scene, pool), _unknown(pool))  # type: ignore[misc]
        for pool in scene.inputs.desired.pools
    )
    leaving = contained.several("what is on its way", lambda: leaving_of(scene))
    decision_texts = contained.several("what is held", lambda: describe_decisions(scene.inputs, holds))
    return Overview(
        setting=setting,
        pools=pools,
        unread=unread_of_use(scene.inputs.observed),
        notices=(*notices, *set_aside_notices(scene.inputs.observed), *contained.notes),
        pending=len(acted) + len(later) - supposed.total(),
        supposed=supposed,
        held=sum(map(is_held, holds)),
        waiting=sum(not is_held(each) for each in holds),
        freezes=Freezes(scene.inputs, scene.fleet).all(),
        guarded=tuple(each for each in scene.plan.guarded if not each.would),
        controller=controller_of(scene.inputs.observed),
        leaving=leaving,
        holds=decision_texts,
    )


def _unknown(pool: Declared[GpuPool]) -> PoolOverview:
    return PoolOverview(pool.name, pool.spec.mode, None, None, None, None, None)


def _pool_overview(scene: PlanningResult, pool: Declared[GpuPool]) -> PoolOverview:
    use = use_of(scene.fleet, pool.name, pool.spec.devices.count)
    drifted = sum(claim.says("Drifted") for claim in scene.fleet.claims_of(pool.name))
    why, observation = scene.inputs.observed.why_unread, observation_of(scene.inputs, pool.name)
    return PoolOverview(
        pool=pool.name,
        mode=pool.spec.mode,
        nodes=None if why("nodes") else use.nodes,
        busy_nodes=None if why("nodes", "pods") else use.busy_nodes,
        gpus=None if why("nodes") else use.gpus_total,
        gpus_in_use=None if why("nodes", "pods") else use.gpus_used,
        drifted_nodes=None if why("nodeclaims.karpenter.sh") else drifted,
        observed_because=observation.causes_text if observation is not None else "",
        short=short_words(short_of(scene.plan.memory.shortages, pool.name, scene.inputs.now)),
    )
