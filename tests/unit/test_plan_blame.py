"""Which consequences a change is blamed for, and which would come without it."""

import msgspec

from reconciler.report.plans.blame import Blame, blame
from tests.unit.plan_samples import BLOCKED, REMOVED, REPLACED, STANDING, nodes, plan

replace = msgspec.structs.replace


def test_without_a_base_what_stands_is_not_the_plans_doing() -> None:
    assert blame(plan(consequences=(REMOVED, STANDING)), None) == Blame((STANDING,), (REMOVED,))


def test_what_both_plans_do_comes_anyway() -> None:
    both = plan(consequences=(STANDING, REMOVED))
    assert blame(both, both) == Blame((STANDING, REMOVED))


def test_what_only_the_head_does_comes_because_of_it() -> None:
    head = plan(consequences=(STANDING, REMOVED, BLOCKED))
    assert blame(head, plan(consequences=(STANDING, REMOVED))) == Blame((STANDING, REMOVED), (BLOCKED,))


def test_of_nodes_that_the_base_moves_too_the_change_is_blamed_for_the_others_only() -> None:
    held = (("PodDisruptionBudget/ml/train", 5), ("do-not-disrupt", 2))
    base = replace(REPLACED, nodes=nodes(40, 8), gpus=64, gpus_in_use=60, pods=11, held_by=held, unpriced=1)
    head = replace(REPLACED, held_by=(("PodDisruptionBudget/ml/train", 9), ("do-not-disrupt", 2)), unpriced=3)
    (rest,) = blame(plan(consequences=(head,)), plan(consequences=(base,))).because
    assert rest == replace(
        head,
        nodes=nodes(48, 20),
        gpus=160,
        gpus_in_use=164,
        pods=50,
        unpriced=2,
        held_by=(("PodDisruptionBudget/ml/train", 4),),
    )


def test_where_neither_contains_the_other_the_consequence_is_told_whole() -> None:
    base = replace(REMOVED, nodes=nodes(0, 10))
    blamed = blame(plan(consequences=(REMOVED,)), plan(consequences=(base,)))
    assert blamed == Blame((base,), (REMOVED,))


def test_nodes_that_nothing_happens_to_any_more_are_spared() -> None:
    assert blame(plan(), plan(consequences=(REMOVED,))) == Blame((REMOVED,), (), (REMOVED,))


def test_nodes_that_meet_another_fate_are_not_spared() -> None:
    moved = replace(REMOVED, fate="blocked")
    assert blame(plan(consequences=(moved,)), plan(consequences=(REMOVED,))) == Blame((REMOVED,), (moved,))
