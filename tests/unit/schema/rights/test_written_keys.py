"""What the decisions of all golden cases write on pods and nodes is what the account of the controller may write."""

from reconciler.model import names
from reconciler.model.plan.decision import Annotate, Label, Taint, Ungate
from reconciler.schema.rights.rules import NODE_CHANGES, POD_CHANGES
from tests.unit.plan.guards import stage as guards_stage
from tests.unit.report.explain.test_decisions import scenes


def test_no_decision_writes_what_the_account_may_not_write() -> None:
    of_pods, labels, taints, gates = set[str](), set[str](), set[str](), set[str]()
    for _, of, case in scenes():
        if of is guards_stage.World:  # the acts of these cases are made up
            continue
        for decision in of(case).planned().decisions:
            match decision.act:
                case Annotate(annotations=annotations) if decision.subject.kind == "Pod":
                    of_pods |= {key for key, _ in annotations}
                case Label(labels=written) if decision.subject.kind == "Node":
                    labels |= {key for key, _ in written}
                case Taint(key=key):
                    taints.add(key)
                case Ungate(gate=gate):
                    gates.add(gate)
    assert POD_CHANGES.changes
    assert NODE_CHANGES.changes
    assert of_pods <= set(POD_CHANGES.changes.annotations)
    assert {names.WAITS_FOR, names.EVICT_AT, names.PHASE, names.SINCE} <= of_pods
    assert gates == {names.CAPACITY_GATE}
    assert all(key.startswith(NODE_CHANGES.changes.labels) for key in labels)
    assert labels.isdisjoint(NODE_CHANGES.changes.kept_labels)
    assert {names.DRAINING, names.DELETION_TIME} <= taints
    assert {key for key in taints if not key.startswith(NODE_CHANGES.changes.taints)} == set()
