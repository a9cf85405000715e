"""Nodes that a NodeProvisioner asks for after this plan: in place of nodes that Karpenter removes, and by schedules.

Both follow from the size that the pool will have once all is done that the plan leads to. Scaling and drains leave what
minSize and warmNodes keep; Karpenter, which removes empty nodes that drift, knows neither, so these are bought again.
"""

from collections.abc import Iterable, Iterator

import msgspec

from reconciler.model.desired import Declared
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import LEAVES
from reconciler.model.plan.purchase import Purchase, Stage, Why
from reconciler.model.plan.size_evaluation import SizeEvaluation
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.plan.capacity.offerings import choices, zones_of
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.sizes_by_time import at
from reconciler.plan.windows import changes_at, is_open


class _Size(msgspec.Struct, frozen=True):
    """Of one pool, once all is done."""

    nodes: int
    needed: int  # in use by pods, or bought for pods
    removed: int  # nodes that Karpenter takes away for good
    closed: int  # empty ones that others have cordoned

    def lacks(self, wish: NodeProvisioner) -> tuple[int, int]:
        """For minSize, and beside that for warmNodes."""
        least = wish.min_size - self.nodes
        warm = self.needed + self.closed + wish.warm_nodes - self.nodes if wish.warm_nodes else 0
        room = max(0, wish.max_size - self.nodes)
        short = min(room, max(0, least))
        return short, max(0, min(room, warm) - short)


def later(scene: PlanningResult, bought: Iterable[Purchase]) -> Iterator[Purchase]:
    """Of each NodeProvisioner that is not suspended. `bought`: of all pools."""
    wishes = {each.name: each for each in scene.inputs.desired.provisioners}
    coming = [each for each in bought if each.stage != "limit"]
    for evaluated in scene.plan.sizes:
        wish, pool = wishes.get(evaluated.provisioner), scene.inputs.desired.pool(evaluated.pool)
        if wish is not None and pool is not None:
            size = _size(scene, evaluated, [each for each in coming if each.pool == pool.name])
            refilled = list(_refilled(scene, wish, pool, size))
            yield from refilled
            grown = msgspec.structs.replace(size, nodes=size.nodes + len(refilled))
            yield from _scheduled(scene, wish, pool, grown)


def _size(scene: PlanningResult, evaluated: SizeEvaluation, coming: list[Purchase]) -> _Size:
    there = {node.name for node in scene.fleet.nodes_of(evaluated.pool) if not node.metadata.leaving}
    gone = {name for each in scene.plan.consequences if each.fate in LEAVES for name in each.nodes} & there
    by_karpenter = {name for each in scene.plan.consequences if each.fate == "removed" for name in each.nodes} & there
    for_pods = sum(each.why == "demand" for each in coming)
    needed = evaluated.use.needed_nodes + for_pods
    return _Size(len(there) - len(gone) + len(coming), needed, len(by_karpenter), evaluated.use.closed_nodes)


def _refilled(
    scene: PlanningResult, wish: Declared[NodeProvisioner], pool: Declared[GpuPool], size: _Size
) -> Iterator[Purchase]:
    """No more than Karpenter removes: what else is lacking is asked for in this plan already."""
    least, warm = size.lacks(at(wish, scene.inputs.now).spec)
    least = min(least, size.removed)
    warm = min(warm, size.removed - least)
    for why, count in _by_reason(least, warm):
        yield from (_purchase(scene, pool, "refill", why, None) for _ in range(count))


def _scheduled(
    scene: PlanningResult, wish: Declared[NodeProvisioner], pool: Declared[GpuPool], size: _Size
) -> Iterator[Purchase]:
    """By the schedules that begin later, each at its next time: how many nodes more than before."""
    now = scene.inputs.now
    starts = {changes_at(each, now) for each in wish.spec.schedules if not is_open(each, now)}
    for start in sorted(each for each in starts if each is not None):
        least, warm = size.lacks(at(wish, start).spec)
        for why, count in _by_reason(least, warm):
            yield from (_purchase(scene, pool, "schedule", why, start) for _ in range(count))
        size = msgspec.structs.replace(size, nodes=size.nodes + least + warm)


def _by_reason(least: int, warm: int) -> tuple[tuple[Why, int], tuple[Why, int]]:
    return ("minSize", least), ("warmNodes", warm)


def _purchase(
    scene: PlanningResult, pool: Declared[GpuPool], stage: Stage, why: Why, begins: Instant | None
) -> Purchase:
    """By the pool's first choice: which others fail by then is not known."""
    spec = pool.spec
    choice = next(iter(choices(spec, zones_of(spec, scene.fleet))), None)
    instance_type = choice.instance_type if choice is not None else ""
    capacity_type = spec.capacity_types[0] if spec.capacity_types else ""
    return Purchase(pool.name, stage, why, instance_type, capacity_type, spec.devices.count, at=begins)
