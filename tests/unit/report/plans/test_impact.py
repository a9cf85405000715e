"""What a plan leaves of the fleet: each node counts once, and only those that there are."""

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Cause, Consequence, Fate
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files.dump import PlanningResult
from reconciler.report.plans.build import Compared, planned_of
from reconciler.report.plans.plan_shape import Amount
from tests.unit.plan.manifests.stage import nodes, pool
from tests.unit.report.plans.samples import ALONE, plan, spread

THREE = {"nodes": 3}


def fated(fate: Fate, cause: Cause, *names: str, pool: str = "a100") -> Consequence:
    return spread(Consequence(pool, pool, cause, fate, names, 8 * len(names), 0, 0, 0))


def left(*head: Consequence, base: tuple[Consequence, ...] | None = None, **fleet: int | str) -> tuple[Amount, Amount]:
    """Of three nodes of the pool a100, the only one declared, or of another fleet."""
    name = str(fleet.pop("name", "a100"))
    observed = Observed(nodes=tuple(nodes(THREE | fleet, name)))
    inputs = Inputs(Desired("r", "prod", pools=(pool("a100", {}),)), observed, Instant(0))
    scene = PlanningResult(inputs, Fleet(observed), plan(consequences=head))
    before = None if base is None else PlanningResult(inputs, Fleet(observed), plan(consequences=base))
    compared = None if before is None else Compared(before, ())
    told = planned_of(ALONE, scene, compared)
    return told.nodes, told.gpus


def test_what_is_removed_is_gone_and_what_is_replaced_is_not() -> None:
    removed, replaced = fated("removed", "change", "node-0"), fated("replaced", "change", "node-1")
    assert left(removed, replaced) == (Amount(3, 3, 2), Amount(24, 24, 16))


def test_what_goes_anyway_goes_before() -> None:
    assert left(fated("removed", "standing", "node-0")) == (Amount(3, 2, 2), Amount(24, 16, 16))


def test_a_node_that_is_leaving_already_is_in_no_sum() -> None:
    assert left(fated("removed", "standing", "node-0"), nodes_leaving=1) == (Amount(2, 2, 2), Amount(16, 16, 16))


def test_a_machine_without_a_node_is_in_no_sum() -> None:
    assert left(fated("removed", "change", "claim-7")) == (Amount(3, 3, 3), Amount(24, 24, 24))


def test_a_node_with_another_fate_in_the_base_goes_once() -> None:
    base = (fated("removed", "standing", "node-0"),)
    assert left(fated("deleted", "change", "node-0", "node-1", "node-2"), base=base)[0] == Amount(3, 2, 0)


def test_what_the_change_spares_is_there_after_it() -> None:
    assert left(base=(fated("removed", "change", "node-0"),))[0] == Amount(3, 2, 3)


def test_nodes_of_a_pool_that_is_no_longer_declared_count_where_it_is_deleted() -> None:
    deleted = fated("deleted", "change", "node-0", "node-1", "node-2", pool="old")
    assert left(deleted, name="old") == (Amount(3, 3, 0), Amount(24, 24, 0))
    assert left(name="old")[0] == Amount(0, 0, 0)
