"""Rules that raise the size of a pool: planners apply them to sizes that were raised before."""

from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.policy.scaling import RAISING_RULES

NODES = some.integers(0, 100_000)


@given(NODES, NODES, NODES)
def test_a_rule_never_lowers_a_size_never_raises_its_own_result_and_keeps_the_order(
    nodes: int, more: int, value: int
) -> None:
    for rule in RAISING_RULES:
        raised = rule.raised(nodes, value)
        assert raised >= nodes
        assert rule.raised(raised, value) == raised
        assert rule.raised(nodes + more, value) >= raised
