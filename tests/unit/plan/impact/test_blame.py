"""Which consequences a change is blamed for, which would come without it, and which it spares: node by node."""

import msgspec

from reconciler.model.plan.consequence import Consequence, Hindrance
from reconciler.plan.impact.blame import Blame, blame
from tests.unit.report.plans.samples import BLOCKED, REMOVED, REPLACED, STANDING, nodes, plan, spread

replace = msgspec.structs.replace


def seven(fate: str, cause: str = "standing", first: int = 0, count: int = 7) -> Consequence:
    """Of seven nodes, or of others, with 8 GPUs and a pod each."""
    found = replace(REPLACED, fate=fate, cause=cause, nodes=nodes(first, count))
    return spread(replace(found, gpus=8 * count, gpus_in_use=8 * count, pods=count))


def test_without_a_base_what_stands_is_not_the_plans_doing() -> None:
    assert blame(plan(consequences=(REMOVED, STANDING)), None) == Blame((STANDING,), (REMOVED,))


def test_what_both_plans_do_comes_anyway() -> None:
    both = plan(consequences=(STANDING, REMOVED))
    assert blame(both, both) == Blame((STANDING, REMOVED))


def test_what_only_the_head_does_comes_because_of_it() -> None:
    head = plan(consequences=(STANDING, REMOVED, BLOCKED))
    assert blame(head, plan(consequences=(STANDING, REMOVED))) == Blame((STANDING, REMOVED), (BLOCKED,))


def test_of_nodes_that_the_base_moves_too_the_change_is_blamed_for_the_others_only() -> None:
    train = Hindrance("PodDisruptionBudget/ml/train", "pod_budget")
    held = ((train, 12),)
    head = spread(replace(REPLACED, held_by=held, unpriced=28))
    base = spread(replace(REPLACED, nodes=nodes(40, 8), gpus=64, gpus_in_use=64, pods=8))
    blamed = blame(plan(consequences=(head,)), plan(consequences=(base,)))
    (rest,) = blamed.causes
    assert blamed.without == (base,)
    assert (rest.nodes, rest.gpus, rest.gpus_in_use, rest.pods) == (nodes(48, 20), 160, 160, 40)
    assert (rest.unpriced, rest.held_by) == (20, ((train, 4),))


def test_where_neither_contains_the_other_each_node_stands_on_its_side() -> None:
    head, base = seven("removed", "change", first=0), seven("removed", "change", first=3)
    blamed = blame(plan(consequences=(head,)), plan(consequences=(base,)))
    sides = [[each.nodes for each in side] for side in (blamed.without, blamed.causes, blamed.spared)]
    assert sides == [[nodes(3, 4)], [nodes(0, 3)], [nodes(7, 3)]]


def test_nodes_that_nothing_happens_to_any_more_are_spared_and_no_longer_come() -> None:
    assert blame(plan(), plan(consequences=(REMOVED,))) == Blame((), (), (REMOVED,))


def test_nodes_that_meet_another_fate_meet_it_because_of_the_change() -> None:
    moved = replace(REMOVED, fate="blocked")
    assert blame(plan(consequences=(moved,)), plan(consequences=(REMOVED,))) == Blame((), (moved,))


def test_nodes_that_the_base_heals_and_the_change_does_not_are_replaced_because_of_it() -> None:
    healed, replaced = seven("undrifted", "change"), seven("replaced")
    assert blame(plan(consequences=(replaced,)), plan(consequences=(healed,))) == Blame((), (replaced,))


def test_nodes_that_the_change_heals_and_the_base_does_not_are_spared() -> None:
    healed, replaced = seven("undrifted", "change"), seven("replaced")
    assert blame(plan(consequences=(healed,)), plan(consequences=(replaced,))) == Blame((), (), (replaced,))


def test_nodes_that_both_heal_are_healed_anyway() -> None:
    healed = plan(consequences=(seven("undrifted", "change"),))
    assert blame(healed, healed) == Blame(healed.consequences)


def test_what_the_base_drifts_by_an_edit_of_its_own_comes_anyway() -> None:
    mine, its = seven("replaced", "change", 0, 4), seven("replaced", "change")
    blamed = blame(plan(consequences=(its,)), plan(consequences=(mine,)))
    assert (blamed.without, [each.nodes for each in blamed.causes]) == ((mine,), [nodes(4, 3)])


def test_what_stands_in_a_pool_that_the_base_does_not_declare_is_not_the_changes_doing() -> None:
    assert blame(plan(consequences=(STANDING,)), plan()) == Blame((STANDING,))
