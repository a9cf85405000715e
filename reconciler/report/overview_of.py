"""From a plan and the fleet it is for to how things stand."""

from reconciler.model.desired import Declared
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.model.planned.action import Hold
from reconciler.plan.scene import Scene
from reconciler.plan.usage import use_of
from reconciler.report.overview import Overview, PoolStanding
from reconciler.report.setting import Setting


def overview_of(setting: Setting, scene: Scene, notices: tuple[str, ...] = ()) -> Overview:
    """All pools that policies declare, and how many decisions wait, each for what."""
    decisions = scene.plan.decisions
    held = sum(isinstance(each.act, Hold) for each in decisions)
    would = sum(each.would for each in decisions)
    return Overview(
        setting=setting,
        pools=tuple(_standing(scene, pool) for pool in scene.inputs.desired.pools),
        unread=scene.inputs.observed.unread,
        notices=notices,
        pending=len(decisions) - held - would,
        would=would,
        held=held,
    )


def _standing(scene: Scene, pool: Declared[GpuPool]) -> PoolStanding:
    use = use_of(scene.fleet, pool.name, pool.spec.devices.count)
    return PoolStanding(
        pool=pool.name,
        mode=pool.spec.mode,
        nodes=use.nodes,
        busy_nodes=use.busy_nodes,
        gpus=use.gpus_total,
        gpus_in_use=use.gpus_used,
        drifted_nodes=sum(claim.says("Drifted") for claim in scene.fleet.claims_of(pool.name)),
    )
