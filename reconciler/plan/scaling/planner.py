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
from reconciler.plan.scaling.demand.demands import Demands, PoolViews, demands
from reconciler.plan.scaling.demand.shortfall import Shortfall, limited, unmet
from reconciler.plan.scaling.evaluate import evaluate
from reconciler.plan.scaling.labels import labels
from reconciler.plan.scaling.orphaned_taints import left_behind
from reconciler.plan.scaling.pool_context import PoolContext
from reconciler.plan.scaling.pool_view import PoolView, ScalingContext
from reconciler.plan.scaling.reasons import PLANNER, PlaceKept
from reconciler.plan.scaling.steps import reconcile
from reconciler.plan.sizes_by_time import provisioners_now

_UNBOUNDED = 100_000


def scaling(inputs: Inputs, draft: Draft) -> Verdict:
    """Each NodeProvisioner in order; `Verdict.sizes` tells what each comes to."""
    context = ScalingContext(inputs, draft, by_node(inputs))
    pool_views = grounds_of(context)
    decisions = list(left_behind(context, draft.left_out.union(each.pool.name for each in pool_views)))
    is_waited = bool(draft.fleet.occupancy.waiting)
    unscaled = unscaled_of(context) if is_waited else []
    idle = idle_of(context) if is_waited else []
    if not pool_views and not is_waited:
        return Verdict(tuple(decisions))
    asked = demands(context, PoolViews([*pool_views, *unscaled], idle))
    decisions += _promised(context, asked)
    freezes = Freezes(inputs, draft.fleet)
    sizes = []
    short: dict[str, Shortfall] = {}
    for pool_view in pool_views:
        with planning_for(pool_view.pool.name):
            demand = asked.of.get(pool_view.wish.name, Demand())
            evaluation = evaluate(pool_view, demand)
            short[pool_view.wish.name] = evaluation.short
            sizes.append(evaluation.evaluated)
            pool_context = PoolContext(pool_view, evaluation, demand, asked.spoken_for, asked.awaiting, draft, freezes)
            own = reconcile(pool_context)
            acted_on = {each.subject.name for each in own if not isinstance(each.act, Hold)}
            decisions += [*own, *labels(pool_context, acted_on)]
    for pool_view in unscaled:
        lacking = asked.of.get(pool_view.wish.name, Demand())
        if lacking.wanted:
            draft.missing.append(
                UnmetNodes(pool_view.pool.name, "", lacking.new_nodes, "demand", wanted=lacking.wanted)
            )
    draft.answered = answered(asked, [*pool_views, *unscaled], short)
    return Verdict(tuple(decisions), sizes=tuple(sizes))


def _promised(context: ScalingContext, asked: Demands) -> Iterator[Decision]:
    """Pods that wait, and for which nothing is done as their place is kept."""
    for each in asked.promised:
        node, metadata = context.fleet.node(each.home), each.pod.metadata
        subject = Ref("Pod", metadata.namespace, each.pod.name, metadata.uid)
        why = Reason(PlaceKept(subject, Ref("Node", "", each.home), each.until))
        pool = node.pool if node is not None else ""
        yield Decision(PLANNER, subject, Hold(each.until), why, pool)


def answered(asked: Demands, pool_views: Sequence[PoolView], short: Mapping[str, Shortfall]) -> CapacityAnswer:
    """What there is for those who wait, for whoever asks Karpenter and lets them go."""
    found = [(each, asked.of.get(each.wish.name, Demand())) for each in pool_views]
    lacking = [(pool_view, demand, short.get(pool_view.wish.name, Shortfall())) for pool_view, demand in found]
    used = [demand.used | lacks.used for _, demand, lacks in lacking]
    return CapacityAnswer(
        places=asked.places,
        schedulable=asked.schedulable,
        unfit=asked.unfit,
        used=frozenset().union(*used),
        unmet=tuple(each for pool_view, demand, lacks in lacking for each in unmet(pool_view, demand, lacks)),
        limited=tuple(each for pool_view, demand, lacks in lacking for each in limited(pool_view, demand, lacks)),
        asked={pod.metadata.uid: pool_view.pool.name for pool_view, demand in found for pod in demand.requested_pods},
        waits=asked.waits,
    )


def grounds_of(context: ScalingContext) -> list[PoolView]:
    """What each NodeProvisioner that is not suspended looks at, in the order in which they are asked."""
    desired = context.inputs.desired
    pools = {pool.name: pool for pool in desired.pools}
    wishes = sorted((each for each in provisioners_now(context.inputs) if not each.spec.suspend), key=_in_order)
    return [
        _build_pool_view(context, each, pools[each.spec.pool_name])
        for each in wishes
        if each.spec.pool_name in pools and each.spec.pool_name not in context.draft.left_out
    ]


def unscaled_of(context: ScalingContext) -> list[PoolView]:
    """The same of pools that nobody scales: pods wait for these too, and they may grow as far as their limits."""
    scaled = {each.spec.pool_name for each in context.inputs.desired.provisioners} | context.draft.left_out
    return [
        _build_pool_view(context, _unbounded(pool), pool)
        for pool in context.inputs.desired.pools
        if pool.name not in scaled
    ]


def _build_pool_view(context: ScalingContext, wish: Declared[NodeProvisioner], pool: Declared[GpuPool]) -> PoolView:
    with planning_for(pool.name):
        return PoolView(context, wish, pool)


def idle_of(context: ScalingContext) -> list[PoolView]:
    """The same of pools whose provisioner is suspended: machines on their way there still come."""
    desired = context.inputs.desired
    scaled = {each.spec.pool_name for each in desired.provisioners if not each.spec.suspend}
    first: dict[str, PoolView] = {}
    for each in sorted((each for each in desired.provisioners if each.spec.suspend), key=_in_order):
        pool = desired.pool(each.spec.pool_name)
        if pool is not None and pool.name not in scaled | context.draft.left_out:
            first.setdefault(pool.name, _build_pool_view(context, each, pool))
    return list(first.values())


def _unbounded(pool: Declared[GpuPool]) -> Declared[NodeProvisioner]:
    spec = NodeProvisioner(
        pool_name=pool.name, min_size=0, max_size=_UNBOUNDED, min_gpu_utilization_percent=0, min_unutilized_gpu_nodes=0
    )
    return Declared("NodeProvisioner", f"of/{pool.name}", spec, pool.origins)


def _in_order(wish: Declared[NodeProvisioner]) -> tuple[int, str]:
    return wish.spec.order, wish.name
