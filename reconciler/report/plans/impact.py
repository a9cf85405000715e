"""What a plan does to the fleet, all pools together."""

from reconciler.plan.impact.blame import Blame
from reconciler.report.plans.plan_shape import Amount, Impact
from reconciler.report.plans.planned import Cost, Planned

_DISRUPTED = frozenset({"drained", "replaced", "blocked", "deleted"})


def impact(planned: Planned, blamed: Blame) -> Impact:
    """A node that is replaced is one as before; what is held up is counted as if it were done in the end."""
    disrupted = [each for each in blamed.causes if each.fate in _DISRUPTED]
    bought = [each for each in blamed.causes if each.fate == "bought"]
    cost = total_cost(planned)
    return Impact(
        nodes=planned.nodes,
        gpus=planned.gpus,
        gpus_disrupted=sum(each.gpus_in_use for each in disrupted),
        pods_evicted=sum(each.pods for each in disrupted),
        nodes_bought=sum(len(each.nodes) for each in bought),
        gpus_bought=sum(each.gpus for each in bought),
        micro_dollars_per_hour=Amount(cost.now, cost.without, cost.with_change),
        repriced_micro_dollars_per_hour=cost.repriced,
    )


def total_cost(planned: Planned) -> Cost:
    """Of all pools together."""
    costs = [pool.cost for pool in planned.pools]
    return Cost(
        now=sum(each.now for each in costs),
        without=sum(each.without for each in costs),
        with_change=sum(each.with_change for each in costs),
        committed=sum(each.committed for each in costs),
        repriced=sum(each.repriced for each in costs),
    )
