"""No plan that breaks an invariant is handed on."""

import json
import re

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Apply, Decision, Delete, Hold, Label, Preconditions, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.problem import Origin
from reconciler.plan import planner
from reconciler.plan.check import BrokenInvariant, check
from reconciler.plan.draft import Verdict
from tests import builders
from tests.unit.plan.some_reasons import some_reason

POOL = {
    "devices": {"model": "a100", "count": 8, "memory": {"milli": 1}},
    "instanceTypes": [{"name": "p4d.24xlarge"}],
    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "lab"},
}
NODE = Ref("Node", "", "n1", "uid-n1")
NODE_POOL = Ref("NodePool", "", "a100", "uid-a100")
LABEL = Label(labels=((names.GPU_TYPE, "a100"),), presumes=Preconditions(resource_version="7"))
DELETE = Delete(presumes=Preconditions(resource_version="7"))

MANIFEST = '{"apiVersion":"karpenter.sh/v1","kind":"NodePool","metadata":{"name":"a100"},"spec":{}}'


def node(name: str = "n1", deletion: str = "", pool: str = "a100", taints: tuple[NodeTaint, ...] = ()) -> Node:
    return builders.node(name, deletion_timestamp=deletion, labels={names.KARPENTER_POOL: pool}, taints=taints)


def inputs(mode: str = "Enforce", **observed: object) -> Inputs:
    spec = msgspec.convert({**POOL, "mode": mode}, GpuPool)
    declared = Declared("GpuPool", "a100", spec, (("", Origin("a.yaml", 1)),))
    seen = {"nodes": (node(),), **observed}
    return Inputs(Desired("r", "base", pools=(declared,)), Observed(**seen), Instant(0))  # type: ignore[arg-type]


def decision(subject: Ref = NODE, act: object = LABEL, pool: str = "a100", would: bool = False) -> Decision:
    return Decision("manifests", subject, act, some_reason("Any"), pool=pool, would=would)  # type: ignore[arg-type]


def judge(given: Inputs, *decisions: Decision) -> None:
    check(given, Fleet(given.observed), Plan("", decisions, (), Memory(), Hints(), None))


def broken(given: Inputs, *decisions: Decision) -> str:
    with pytest.raises(BrokenInvariant) as raised:
        judge(given, *decisions)
    return str(raised.value)


def test_a_plan_that_keeps_the_rules_passes() -> None:
    judge(inputs(), decision(), decision(NODE_POOL, DELETE))


def test_two_actions_on_one_subject_are_refused() -> None:
    assert "at most one action for each subject: broken by manifests on Node/n1 and manifests on Node/n1" in broken(
        inputs(), decision(), decision()
    )


def test_a_hold_beside_an_action_is_no_second_action() -> None:
    judge(inputs(), decision(), decision(act=Hold()))


@pytest.mark.parametrize(
    "leaving",
    [
        node(deletion="2026-11-02T08:00:00Z"),
        node(taints=(NodeTaint(names.DISRUPTED, "NoSchedule"),)),
        node("another"),
    ],
)
def test_a_node_that_someone_else_removes_is_left_alone(leaving: Node) -> None:
    assert "another controller or a person is removing" in broken(inputs(nodes=(leaving,)), decision())


def test_a_node_pool_that_is_being_deleted_is_left_alone() -> None:
    going = Unstructured(
        "karpenter.sh/v1", "NodePool", UnstructuredMetadata("a100", deletion_timestamp="2026-11-02T08:00:00Z")
    )
    told = broken(inputs(node_pools=(going,)), decision(NODE_POOL, Apply(manifest="{}")))
    assert "another controller or a person is removing: broken by manifests on NodePool/a100" in told


@pytest.mark.parametrize("kind", ["nodepools.karpenter.sh", "nodes", "pods", "nodeclaims.karpenter.sh"])
def test_nothing_is_deleted_while_a_kind_that_would_show_its_use_is_unread(kind: str) -> None:
    given = inputs(unread=(Unread(kind, "forbidden"),))
    assert f"although {kind} could not be read" in broken(given, decision(NODE_POOL, DELETE))


def test_no_node_is_deleted_while_it_is_not_known_which_gpus_are_lent() -> None:
    leases = "leases.coordination.k8s.io"
    given = inputs(unread=(Unread(leases, "forbidden"),))
    assert f"although {leases} could not be read" in broken(given, decision(NODE, DELETE))
    judge(given, decision(NODE_POOL, DELETE))


def test_other_kinds_may_be_unread() -> None:
    judge(inputs(unread=(Unread("jobs.batch", "forbidden"),)), decision(NODE_POOL, DELETE))


def test_in_observe_mode_nothing_is_done_unless_it_is_marked_as_would() -> None:
    assert "in Observe mode" in broken(inputs("Observe"), decision())
    judge(inputs("Observe"), decision(would=True))


def test_a_write_that_presumes_nothing_is_refused() -> None:
    blind = decision(Ref("NodePool", "", "a100"), Apply(manifest=MANIFEST))
    assert "has a precondition" in broken(inputs(), blind)
    judge(
        inputs(), decision(Ref("NodePool", "", "a100"), Apply(manifest=MANIFEST, presumes=Preconditions(absent=True)))
    )


DEFAULT_CLASS = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": -1, "globalDefault": True}


@pytest.mark.parametrize(
    ("manifest", "why"),
    [
        ({"apiVersion": "v1", "kind": "Pod", "spec": {"hostPID": True}}, "spec.hostPID is not an allowed field"),
        ({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}, "may not be applied"),
        ({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}, "may not be applied"),
        (DEFAULT_CLASS, "globalDefault is true, must be false"),
    ],
)
def test_a_manifest_that_no_template_may_yield_is_refused(manifest: dict[str, object], why: str) -> None:
    text = json.dumps({**manifest, "metadata": {"name": "a"}})
    act = Apply(manifest=text, presumes=Preconditions(absent=True))
    found = broken(inputs(), decision(Ref(str(manifest["kind"]), "", "a"), act))
    assert "only manifests that a template may render are applied: broken by manifests on" in found
    assert why in found


def test_a_subject_that_one_planner_holds_is_free_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    held, acted = Verdict((decision(act=Hold()),)), Verdict((decision(),))
    monkeypatch.setattr(planner, "PLANNERS", (lambda *_: held, lambda *_: acted))
    given = inputs()
    made = planner.plan(given, Fleet(given.observed))
    assert made.decisions == (*held.decisions, *acted.decisions)
    judge(given, *made.decisions)


def test_a_node_is_only_touched_for_its_own_pool() -> None:
    assert re.search("which belongs to b, for a100", broken(inputs(nodes=(node(pool="b"),)), decision()))


def test_everything_that_is_wrong_is_told_at_once() -> None:
    told = broken(inputs("Observe", nodes=(node(pool="b"),)), decision(), decision())
    assert len(told.splitlines()) == 5
