"""Which nodes nobody here may act on, and the reason that is told first."""

import pytest

from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeTaint
from reconciler.model.instant import Instant, instant
from reconciler.plan.nodes.ownership import REASONS, NodeGone, NodeOptedOut, opt_out, untouchable
from reconciler.report.sentences import sentence
from tests import builders

GOING = "2026-11-02T08:00:00Z"
CREATED, LATER = "2026-11-02T07:00:00Z", "2026-11-02T09:00:00Z"
DISRUPTED = NodeTaint(names.DISRUPTED, "NoSchedule")
CASES = {
    "a node that is being deleted": (builders.node("n", deletion_timestamp=GOING), "NodeLeaving"),
    "a node that Karpenter disrupts": (builders.node("n", taints=(DISRUPTED,)), "DisruptedByKarpenter"),
    "a node whose GPU driver is being upgraded": (
        builders.node("n", labels={names.UPGRADE_STATE: "drain-required"}),
        "DriverUpgrade",
    ),
    "a node that somebody cordoned": (builders.node("n", unschedulable=True), "CordonedByOthers"),
}


@pytest.mark.parametrize(("node", "code"), CASES.values(), ids=CASES)
def test_left_alone(node: Node, code: str) -> None:
    reason = untouchable(node)
    assert reason
    assert reason.code == code
    assert "n" in sentence(reason)


OPTING_OUT = {
    "scale-down-disabled: true": (Annotations(scale_down_disabled="true"), True, None),
    "scale-down-disabled: false": (Annotations(scale_down_disabled="false"), False, None),
    "do-not-disrupt: true": (Annotations(do_not_disrupt="true"), True, None),
    "do-not-disrupt for longer than the node exists": (Annotations(do_not_disrupt="2h"), True, instant(LATER)),
    "do-not-disrupt for a time that is over": (Annotations(do_not_disrupt="1h"), False, None),
    "do-not-disrupt that Karpenter cannot read": (Annotations(do_not_disrupt="soon"), False, None),
}


@pytest.mark.parametrize(("annotations", "opts_out", "until"), OPTING_OUT.values(), ids=OPTING_OUT)
def test_a_node_opts_out_of_removal_by_an_annotation(
    annotations: Annotations, opts_out: bool, until: Instant | None
) -> None:
    node = builders.node("n", creation_timestamp=CREATED, annotations=annotations)
    found = opt_out(node, instant(GOING))
    assert (found is not None) is opts_out
    if found is not None:
        assert found.until == until
        assert "n has the annotation " in sentence(found.reason)
        assert untouchable(node) is None  # labels and untainting go on


def test_each_reason_to_leave_a_node_alone_has_a_case() -> None:
    declared = {each.__name__ for each in REASONS if each not in {NodeGone, NodeOptedOut}}
    assert {code for _, code in CASES.values()} == declared


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
