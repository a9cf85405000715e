"""How many nodes each pool shall have, and what is done for that: nodes are marked, kept and deleted.

First every NodeProvisioner is evaluated, in order and by name; nothing is changed by that. Then each has its turn.
Before all, marks come off nodes of pools that none of them looks at.
"""

from reconciler.model.desired import Declared
from reconciler.model.kinds.node_provisioner import NodeProvisioner
from reconciler.model.planned.action import Hold
from reconciler.model.planned.inputs import Inputs
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.scaling.demand.demands import demands
from reconciler.plan.scaling.demand.serving import Demand
from reconciler.plan.scaling.evaluate import evaluate
from reconciler.plan.scaling.ground import Ground, Site
from reconciler.plan.scaling.imagined import by_node
from reconciler.plan.scaling.labels import labels
from reconciler.plan.scaling.left_behind import left_behind
from reconciler.plan.scaling.steps import reconcile
from reconciler.plan.scaling.turn import Turn


def scaling(inputs: Inputs, draft: Draft) -> Verdict:
    """Each NodeProvisioner in order; `Verdict.sizes` tells what each comes to."""
    site = Site(inputs, draft.fleet, by_node(inputs))
    grounds = grounds_of(site)
    decisions = list(left_behind(site, frozenset(each.pool.name for each in grounds)))
    if not grounds:
        return Verdict(tuple(decisions))
    asked = demands(site, grounds)
    freezes = Freezes(inputs, draft.fleet)
    sizes = []
    for ground in grounds:
        demand = asked.of.get(ground.wish.name, Demand())
        evaluated = evaluate(ground, demand)
        sizes.append(evaluated)
        turn = Turn(ground, evaluated, demand, asked.spoken_for, draft, freezes)
        own = reconcile(turn)
        acted_on = {each.subject.name for each in own if not isinstance(each.act, Hold)}
        decisions += [*own, *labels(turn, acted_on)]
    return Verdict(tuple(decisions), sizes=tuple(sizes))


def grounds_of(site: Site) -> list[Ground]:
    """What each NodeProvisioner that is not suspended looks at, in the order in which they are asked."""
    desired = site.inputs.desired
    pools = {pool.name: pool for pool in desired.pools}
    wishes = sorted((each for each in desired.provisioners if not each.spec.suspend), key=_in_order)
    return [Ground(site, each, pools[each.spec.pool_name]) for each in wishes if each.spec.pool_name in pools]


def _in_order(wish: Declared[NodeProvisioner]) -> tuple[int, str]:
    return wish.spec.order, wish.name
