"""The scaling planner: decides the size of each pool, and marks, keeps and deletes nodes accordingly.

First every NodeProvisioner is evaluated, sorted by order and name; that changes nothing. Then each provisioner is
reconciled. Before that, marks are removed from nodes of pools without an active provisioner.
"""

from collections.abc import Iterator, Mapping, Sequence

from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Decision, Hold, Label, Reason, Ref, Taint, node_ref
from reconciler.model.plan.evaluation import ScalingReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.plan.capacity.wanted_nodes import CapacityAnswer
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.observing import by_node
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.scaling import marks
from reconciler.plan.scaling.demand.assignment import Demand, Shortfall, wanted_for_size
from reconciler.plan.scaling.demand.demands import Demands, PoolViews, demands
from reconciler.plan.scaling.evaluate import PoolContext, evaluate
from reconciler.plan.scaling.pool_view import PoolView, ScalingContext
from reconciler.plan.scaling.reasons import PLANNER, MarkWithoutProvisioner, NodeOfProvisioner, PlaceKept
from reconciler.plan.scaling.steps import reconcile
from reconciler.plan.windows import provisioners_now

_UNBOUNDED = 100_000


def scaling(inputs: Inputs, draft: Draft) -> Verdict:
    """Decisions for all NodeProvisioners, and their evaluations."""
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
    draft.capacity = capacity(asked, [*pool_views, *unscaled], short)
    return Verdict(tuple(decisions), reports=(ScalingReport(tuple(sizes)),))


def _promised(context: ScalingContext, asked: Demands) -> Iterator[Decision]:
    """Holds on waiting pods that get no new node, because their place is reserved."""
    for each in asked.promised:
        node, metadata = context.fleet.node(each.home), each.pod.metadata
        subject = Ref("Pod", metadata.namespace, each.pod.name, metadata.uid)
        why = Reason(PlaceKept(subject, Ref("Node", "", each.home), each.until))
        pool = node.pool if node is not None else ""
        yield Decision(PLANNER, subject, Hold(each.until), why, pool)


def capacity(asked: Demands, pool_views: Sequence[PoolView], short: Mapping[str, Shortfall]) -> CapacityAnswer:
    """Capacity for waiting pods, for the planner that requests machines and removes gates."""
    found = [
        (each, asked.of.get(each.wish.name, Demand()), short.get(each.wish.name, Shortfall())) for each in pool_views
    ]
    wanted = [(*demand.wanted, *wanted_for_size(pool_view, lacks)) for pool_view, demand, lacks in found]
    return CapacityAnswer(
        wanted=tuple(each for nodes in wanted for each in nodes),
        places=asked.places,
        schedulable=asked.schedulable,
        unfit=asked.unfit,
        used=frozenset().union(*(demand.used | lacks.used for _, demand, lacks in found)),
        asked={
            pod.metadata.uid: pool_view.pool.name for pool_view, demand, _ in found for pod in demand.requested_pods
        },
        waits=asked.waits,
    )


def grounds_of(context: ScalingContext) -> list[PoolView]:
    """Views of the pools with an active NodeProvisioner, in evaluation order."""
    desired = context.inputs.desired
    pools = {pool.name: pool for pool in desired.pools}
    wishes = sorted((each for each in provisioners_now(context.inputs) if not each.spec.suspend), key=_in_order)
    return [
        _build_pool_view(context, each, pools[each.spec.pool_name])
        for each in wishes
        if each.spec.pool_name in pools and each.spec.pool_name not in context.draft.left_out
    ]


def unscaled_of(context: ScalingContext) -> list[PoolView]:
    """Views of pools without a NodeProvisioner. Pods wait for these pools too, and the pools may grow up to their
    limits.
    """
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
    """Views of pools whose provisioner is suspended: in-flight machines still arrive there."""
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


# --- The provisioner label on each node of a pool. Written to Nodes, because in a NodePool template the label would
# cause drift.

MOST = 200  # labels of one provisioner in one plan; further nodes follow in the next plan


def labels(context: PoolContext, acted_on: set[str]) -> Iterator[Decision]:
    """Labels for nodes without another action in this plan."""
    name, left = context.pool_view.wish.name, MOST
    if context.pool_view.totals.labelled[name] == context.pool_view.size:
        return
    for node in [each.node for each in context.pool_view.facts if each.provisioner != name]:
        if node.taint(names.ARRIVING) is not None:  # its startup taint is removed first
            continue
        subject = node_ref(node)
        if node.name in acted_on or context.draft.claimed_by(subject) or context.draft.is_labelled(subject):
            continue
        if untouchable(node) is not None:
            continue
        if context.freezes.of_node(node.name) is not None:
            continue
        yield context.act(
            node, Label(labels=((names.PROVISIONER, name),)), context.why(NodeOfProvisioner(node.name, context.ref))
        )
        left -= 1
        if not left:
            return


# --- Orphaned marks: their provisioner is suspended or deleted, so the marks are removed.
#
# Otherwise the marks would stay for ever, and a hard mark keeps all pods away from an empty node. In an observed pool
# the removal is reported only, and the marks stay (plan/holds/standstill.py). Nodes that others remove are skipped.


def left_behind(context: ScalingContext, scaled: frozenset[str]) -> Iterator[Decision]:
    """Removal of orphaned marks. `scaled`: pools whose provisioners are reconciled."""
    pools = {each.name: each for each in context.inputs.desired.pools}
    for node in (each.node for each in context.fleet.nodes_unsettled):
        mark, pool = marks.mark_of(node), pools.get(node.pool)
        if mark is None or pool is None or pool.name in scaled:
            continue
        if untouchable(node) is None and node.taint(names.DRAINING) is None:
            why = Reason(MarkWithoutProvisioner(node.name, pool.name, mark.time), pool.origin())
            act = Taint(key=marks.KEY, value=None, effect=mark.effect)
            yield Decision(PLANNER, node_ref(node), act, why, pool.name)
