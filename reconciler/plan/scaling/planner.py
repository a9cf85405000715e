"""How many nodes each pool shall have, and what is done for that: nodes are marked, kept and deleted.

First every NodeProvisioner is evaluated, in order and by name; nothing is changed by that. Then each has its turn.
Before all, marks come off nodes of pools that none of them looks at.
"""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.model.desired import Declared
from reconciler.model.plan.action import Hold, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.reason import Reason
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.plan.capacity.wanted_node import CapacityAnswer
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, UnmetNodes, Verdict
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observed_taints import by_node
from reconciler.plan.scaling.demand.assignment import Demand
from reconciler.plan.scaling.demand.demands import Demands, Grounds, demands
from reconciler.plan.scaling.demand.shortfall import Shortfall, limited, unmet
from reconciler.plan.scaling.evaluate import evaluate
from reconciler.plan.scaling.labels import labels
from reconciler.plan.scaling.orphaned_taints import left_behind
from reconciler.plan.scaling.pool_view import PoolView, ScalingContext
from reconciler.plan.scaling.reasons import PLANNER, PlaceKept
from reconciler.plan.scaling.steps import reconcile
from reconciler.plan.scaling.turn import PoolContext
from reconciler.plan.sizes_by_time import provisioners_now

_UNBOUNDED = 100_000


def scaling(inputs: Inputs, draft: Draft) -> Verdict:
    """Each NodeProvisioner in order; `Verdict.sizes` tells what each comes to."""
    site = ScalingContext(inputs, draft, by_node(inputs))
    grounds = grounds_of(site)
    decisions = list(left_behind(site, draft.left_out.union(each.pool.name for each in grounds)))
    is_waited = bool(draft.fleet.occupancy.waiting)
    unscaled = unscaled_of(site) if is_waited else []
    idle = idle_of(site) if is_waited else []
    if not grounds and not is_waited:
        return Verdict(tuple(decisions))
    asked = demands(site, Grounds([*grounds, *unscaled], idle))
    decisions += _promised(site, asked)
    freezes = Freezes(inputs, draft.fleet)
    sizes = []
    short: dict[str, Shortfall] = {}
    for ground in grounds:
        with planning_for(ground.pool.name):
            demand = asked.of.get(ground.wish.name, Demand())
            evaluation = evaluate(ground, demand)
            short[ground.wish.name] = evaluation.short
            sizes.append(evaluation.evaluated)
            turn = PoolContext(ground, evaluation, demand, asked.spoken_for, asked.awaiting, draft, freezes)
            own = reconcile(turn)
            acted_on = {each.subject.name for each in own if not isinstance(each.act, Hold)}
            decisions += [*own, *labels(turn, acted_on)]
    for ground in unscaled:
        lacking = asked.of.get(ground.wish.name, Demand())
        if lacking.wanted:
            draft.missing.append(UnmetNodes(ground.pool.name, "", lacking.new_nodes, "demand", wanted=lacking.wanted))
    draft.answered = answered(asked, [*grounds, *unscaled], short)
    return Verdict(tuple(decisions), sizes=tuple(sizes))


def _promised(site: ScalingContext, asked: Demands) -> Iterator[Decision]:
    """Pods that wait, and for which nothing is done as their place is kept."""
    for each in asked.promised:
        node, metadata = site.fleet.node(each.home), each.pod.metadata
        subject = Ref("Pod", metadata.namespace, each.pod.name, metadata.uid)
        why = Reason(PlaceKept(subject, Ref("Node", "", each.home), each.until))
        pool = node.pool if node is not None else ""
        yield Decision(PLANNER, subject, Hold(each.until), why, pool)


def answered(asked: Demands, grounds: Sequence[PoolView], short: Mapping[str, Shortfall]) -> CapacityAnswer:
    """What there is for those who wait, for whoever asks Karpenter and lets them go."""
    found = [(each, asked.of.get(each.wish.name, Demand())) for each in grounds]
    lacking = [(ground, demand, short.get(ground.wish.name, Shortfall())) for ground, demand in found]
    used = [demand.used | lacks.used for _, demand, lacks in lacking]
    return CapacityAnswer(
        places=asked.places,
        schedulable=asked.schedulable,
        unfit=asked.unfit,
        used=frozenset().union(*used),
        unmet=tuple(each for ground, demand, lacks in lacking for each in unmet(ground, demand, lacks)),
        limited=tuple(each for ground, demand, lacks in lacking for each in limited(ground, demand, lacks)),
        asked={pod.metadata.uid: ground.pool.name for ground, demand in found for pod in demand.asked},
        waits=asked.waits,
    )


def grounds_of(site: ScalingContext) -> list[PoolView]:
    """What each NodeProvisioner that is not suspended looks at, in the order in which they are asked."""
    desired = site.inputs.desired
    pools = {pool.name: pool for pool in desired.pools}
    wishes = sorted((each for each in provisioners_now(site.inputs) if not each.spec.suspend), key=_in_order)
    return [
        _ground(site, each, pools[each.spec.pool_name])
        for each in wishes
        if each.spec.pool_name in pools and each.spec.pool_name not in site.draft.left_out
    ]


def unscaled_of(site: ScalingContext) -> list[PoolView]:
    """The same of pools that nobody scales: pods wait for these too, and they may grow as far as their limits."""
    scaled = {each.spec.pool_name for each in site.inputs.desired.provisioners} | site.draft.left_out
    return [_ground(site, _unbounded(pool), pool) for pool in site.inputs.desired.pools if pool.name not in scaled]


def _ground(site: ScalingContext, wish: Declared[NodeProvisioner], pool: Declared[GpuPool]) -> PoolView:
    with planning_for(pool.name):
        return PoolView(site, wish, pool)


def idle_of(site: ScalingContext) -> list[PoolView]:
    """The same of pools whose provisioner is suspended: machines on their way there still come."""
    desired = site.inputs.desired
    scaled = {each.spec.pool_name for each in desired.provisioners if not each.spec.suspend}
    first: dict[str, PoolView] = {}
    for each in sorted((each for each in desired.provisioners if each.spec.suspend), key=_in_order):
        pool = desired.pool(each.spec.pool_name)
        if pool is not None and pool.name not in scaled | site.draft.left_out:
            first.setdefault(pool.name, _ground(site, each, pool))
    return list(first.values())


def _unbounded(pool: Declared[GpuPool]) -> Declared[NodeProvisioner]:
    spec = NodeProvisioner(
        pool_name=pool.name, min_size=0, max_size=_UNBOUNDED, min_gpu_utilization_percent=0, min_unutilized_gpu_nodes=0
    )
    return Declared("NodeProvisioner", f"of/{pool.name}", spec, pool.origins)


def _in_order(wish: Declared[NodeProvisioner]) -> tuple[int, str]:
    return wish.spec.order, wish.name
