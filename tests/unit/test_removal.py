"""Which nodes nobody here may act on, and the reason that is told first."""

import pytest

from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeTaint
from reconciler.plan.explain import sentence
from reconciler.plan.removal import RULES, untouchable

GOING = "2026-11-02T08:00:00Z"
DISRUPTED = NodeTaint(names.DISRUPTED, "NoSchedule")
CASES = {
    "a node that is being deleted": (Node(Metadata("n", deletion_timestamp=GOING)), "NodeLeaving"),
    "a node that Karpenter disrupts": (Node(Metadata("n"), NodeSpec(taints=(DISRUPTED,))), "DisruptedByKarpenter"),
    "a node whose GPU driver is being upgraded": (
        Node(Metadata("n", labels={names.UPGRADE_STATE: "drain-required"})),
        "DriverUpgrade",
    ),
    "a node that somebody cordoned": (Node(Metadata("n"), NodeSpec(unschedulable=True)), "CordonedByOthers"),
}


@pytest.mark.parametrize(("node", "code"), CASES.values(), ids=CASES)
def test_left_alone(node: Node, code: str) -> None:
    reason = untouchable(node)
    assert reason
    assert reason.code == code
    assert "n" in sentence(reason)


def test_each_rule_has_a_case() -> None:
    assert {code for _, code in CASES.values()} == {rule.because.code for rule in RULES}


def test_the_first_reason_of_several_is_told() -> None:
    node = Node(Metadata("n", deletion_timestamp=GOING), NodeSpec(unschedulable=True, taints=(DISRUPTED,)))
    reason = untouchable(node)
    assert reason
    assert reason.code == "NodeLeaving"


@pytest.mark.parametrize(
    "node",
    [
        Node(Metadata("n")),
        Node(Metadata("n", labels={names.UPGRADE_STATE: "upgrade-done"})),
        Node(Metadata("n"), NodeSpec(taints=(NodeTaint("nvidia.com/gpu", "NoSchedule"),))),
    ],
)
def test_any_other_node_may_be_acted_on(node: Node) -> None:
    assert untouchable(node) is None
