"""An action on a node is reported for its NodeClaim and for the NodePool and GpuPool that the node belongs to."""

from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeClaim, NodeClaimStatus
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Preconditions, Reason, Ref, Taint, node_ref
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.planner import plan
from reconciler.plan.release import TaintReleased

LABELS = {names.KARPENTER_POOL: "a100", names.POOL: "a100"}
NODE = Node(Metadata("a100-1", uid="uid-node", labels=LABELS))
CLAIM = NodeClaim(Metadata("a100-x", uid="uid-claim", labels=LABELS), status=NodeClaimStatus(node_name="a100-1"))


def whole(kind: str, uid: str) -> Unstructured:
    return Unstructured("v1", kind, UnstructuredMetadata("a100", uid=uid, labels={names.MANAGED: "true"}))


OBJECTS: dict[str, Any] = {
    "node_claims": (CLAIM,),
    "node_pools": (whole("NodePool", "uid-node-pool"),),
    "policies": (whole("ChangeGuard", "uid-guard"), whole("GpuPool", "uid-pool")),
}
REFS = {
    "node_claims": Ref("NodeClaim", "", "a100-x", "uid-claim"),
    "node_pools": Ref("NodePool", "", "a100", "uid-node-pool"),
    "policies": Ref("GpuPool", "", "a100", "uid-pool"),
}


@pytest.mark.parametrize("left_out", [*OBJECTS, ""])
def test_an_action_on_a_node_is_reported_for_related_objects_that_exist(left_out: str) -> None:
    objects = {field: objects for field, objects in OBJECTS.items() if field != left_out}
    inputs = Inputs(Desired("r", "prod"), Observed(nodes=(NODE,), **objects), Instant(0))
    assert set(_about(inputs)) == {ref for field, ref in REFS.items() if field != left_out}


def test_an_object_without_a_uid_gets_no_report() -> None:
    pools = (whole("NodePool", ""),)
    inputs = Inputs(Desired("r", "prod"), Observed(nodes=(NODE,), **(OBJECTS | {"node_pools": pools})), Instant(0))
    assert set(_about(inputs)) == {REFS["node_claims"], REFS["policies"]}


def _about(inputs: Inputs) -> tuple[Ref, ...]:
    """Related objects of the removal of a taint."""
    reason = Reason(TaintReleased(object=node_ref(NODE), key="k", effect="NoSchedule"))
    act = Taint(key="k", value=None, effect="NoSchedule", presumes=Preconditions(resource_version="7"))
    decision = Decision("hand", node_ref(NODE), act, reason, "a100")

    def by_hand(inputs: Inputs, draft: Draft) -> Verdict:
        return Verdict((decision,))

    made = plan(inputs, Fleet(inputs.observed), (by_hand,))
    (found,) = [each for each in made.decisions if each.planner == "hand"]
    assert msgspec.structs.replace(found, about=()) == decision
    return found.about
