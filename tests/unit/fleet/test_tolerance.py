"""Tolerations by what they say bear the same taints as tolerations one by one."""

from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.filters.node import untolerated
from reconciler.fleet.node_terms import Tolerance
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.pod import Toleration

EFFECTS = ("NoSchedule", "NoExecute", "PreferNoSchedule")
WORDS = ("", "a", "b")
taints = some.builds(NodeTaint, some.sampled_from(WORDS), some.sampled_from(EFFECTS), some.sampled_from(WORDS))
tolerations = some.builds(
    Toleration,
    key=some.sampled_from(WORDS),
    operator=some.sampled_from(("", "Equal", "Exists", "Gt", "Lt")),
    value=some.sampled_from(WORDS),
    effect=some.sampled_from(("", *EFFECTS)),
)


def bears(toleration: Toleration, taint: NodeTaint) -> bool:
    """As kube-scheduler compares one with one."""
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    return toleration.operator == "Exists"


@given(some.lists(tolerations, max_size=6), taints)
def test_it_bears_what_one_of_its_tolerations_bears(said: list[Toleration], taint: NodeTaint) -> None:
    assert Tolerance(said).bears(taint) == any(bears(each, taint) for each in said)


@given(some.lists(tolerations, max_size=4), some.lists(taints, max_size=4))
def test_the_first_hard_taint_is_told(said: list[Toleration], there: list[NodeTaint]) -> None:
    hard = [each for each in there if each.effect != "PreferNoSchedule"]
    expected = next((each for each in hard if not any(bears(one, each) for one in said)), None)
    assert untolerated(there, said) == expected
