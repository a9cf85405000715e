"""An object that cannot be understood is set aside, fails closed, and stops nothing else."""

import json
from typing import Any

import msgspec
import pytest

from reconciler.controller.notices import Notices
from reconciler.controller.publishers import SetAsidePublisher
from reconciler.fleet.fleet import Fleet
from reconciler.kube.apply.events import EventNote
from reconciler.kube.cluster_file import read_cluster
from reconciler.kube.decode import Undecodable, WatchEvent, event, one, page
from reconciler.kube.placeholders import StandIn
from reconciler.kube.watch.changes import Listed, ObjectEvent
from reconciler.kube.watch.store import ObservedStore
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.metadata import Metadata, OwnerReference
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod, PodSpec
from reconciler.model.cluster.refusal import SetAside
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import (
    Action,
    Annotate,
    Decision,
    Delete,
    Evict,
    Hold,
    PlannerFailure,
    Preconditions,
    Ref,
    Taint,
    Ungate,
)
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.quantity import MOST
from reconciler.plan.check import BrokenInvariant, check
from reconciler.plan.guards.set_aside import BehindSetAside, ObjectSetAside, SetAsides
from reconciler.plan.nodes.eviction import EvictionObstacle, PodBudgets, Remaining
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.planner import plan
from reconciler.policy.resolve import bundle_of
from reconciler.serve.metrics import Metrics
from tests.unit.kube.real_objects import OBJECTS, Object, an, listed, seen
from tests.unit.plan.scaling.stage import World
from tests.unit.plan.some_reasons import some_reason

LONG = "9" * 5000
NOW = Instant(1_793_606_400_000)


def decoded(kind: str, *objects: Object) -> tuple[Any, ...]:
    return page(seen(kind), json.dumps({"items": objects}).encode()).items


def broken(kind: str, **fields: Any) -> Object:
    """With fields of a shape that Kubernetes never gives them."""
    return {**an(kind), **fields}


def bomb() -> Object:
    found = an("Pod")
    found["spec"]["containers"][0]["resources"]["requests"]["cpu"] = LONG
    return found


@pytest.mark.parametrize("kind", sorted({each["kind"] for each in OBJECTS}))
def test_one_object_of_any_kind_costs_no_other_its_place_in_a_list(kind: str) -> None:
    other = {**an(kind), "metadata": {**an(kind)["metadata"], "name": "other", "labels": [1]}}
    found = decoded(kind, an(kind), other)
    assert not isinstance(found[0], StandIn)
    assert isinstance(found[1], StandIn)
    assert (found[1].set_aside.kind, found[1].set_aside.name) == (kind, "other")


def test_a_pod_whose_request_has_5000_digits_keeps_its_node_and_leaves_no_room_there() -> None:
    (found,) = decoded("Pod", bomb())
    about = found.set_aside
    assert (about.code, about.node) == ("Quantity", "gpu-1")
    assert about.field == "spec.containers[0].resources.requests.cpu"
    assert len(about.detail) < 100
    assert isinstance(found.object, Pod)
    assert found.object.counts
    assert found.object.metadata.annotations.do_not_disrupt == "true"
    assert found.object.spec.containers[0].resources.requests["cpu"] == str(MOST)
    assert found.object.gpus == 2


def test_a_pod_of_a_daemonset_that_is_set_aside_keeps_its_node_too() -> None:
    daemon = bomb()
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "ds", "uid": "u", "controller": True}]
    (found,) = decoded("Pod", daemon)
    assert found.object.counts


def test_a_pod_that_has_no_node_and_is_set_aside_asks_for_nothing() -> None:
    waiting = bomb()
    del waiting["spec"]["nodeName"]
    (found,) = decoded("Pod", waiting)
    assert (found.object, found.set_aside.node) == (None, "")


def test_a_node_that_is_set_aside_counts_in_its_pool_and_is_never_touched() -> None:
    node = an("Node")
    node["status"]["allocatable"]["example.com/x"] = "²"
    (found,) = decoded("Node", node)
    assert isinstance(found.object, Node)
    assert (found.object.pool, found.object.gpus) == ("a100", 8)
    assert untouchable(found.object) is not None


def test_a_budget_that_is_set_aside_lets_no_pod_of_its_namespace_go() -> None:
    (found,) = decoded("PodDisruptionBudget", broken("PodDisruptionBudget", status=7))
    assert isinstance(found.object, PodDisruptionBudget)
    (running,) = decoded("Pod", an("Pod"))
    budgets = PodBudgets((found.object,))
    assert Remaining(budgets).why_not(running) is EvictionObstacle.BUDGET_UNSEEN


def test_json_nested_deeper_than_any_program_reads_costs_nothing_where_nobody_looks() -> None:
    deep = json.dumps({"items": [an("ResourceClaim"), "@"]}).replace('"@"', '{"metadata": {"name": "deep"}, "x": @}')
    raw = deep.replace("@", '{"a":' * 1_700 + "1" + "}" * 1_700).encode()
    first, second = page(seen("ResourceClaim"), raw).items
    assert (first.metadata.name, second.metadata.name) == (an("ResourceClaim")["metadata"]["name"], "deep")


def test_what_is_kept_whole_is_bounded() -> None:
    pool = broken("NodePool", spec={"limits": {"cpu": 10**40}})
    deep = broken("NodePool")
    deep["spec"]["x"] = json.loads("[" * 90 + "]" * 90)
    shape = broken("NodePool", spec={"template": "x"})
    found = decoded("NodePool", pool, deep, shape)
    assert [each.set_aside.code for each in found] == ["Number", "Depth", "Malformed"]


def modified(found: Object, version: str) -> bytes:
    found["metadata"]["resourceVersion"] = version
    return json.dumps({"type": "MODIFIED", "object": found}).encode()


def test_a_watch_goes_on_and_the_store_tells_of_the_object_until_it_is_corrected() -> None:
    pods = seen("Pod", "pods")
    store = ObservedStore((pods,), lambda: NOW)
    store.take([Listed(pods, decoded("Pod", an("Pod")), "1", NOW)])
    line = json.dumps(
        {"type": "MODIFIED", "object": bomb() | {"metadata": bomb()["metadata"] | {"resourceVersion": "500"}}}
    )
    told = event(pods, line.encode())
    assert isinstance(told, WatchEvent)
    store.take([ObjectEvent(pods, told, NOW)])
    observed = store.observed()
    assert [each.title for each in observed.set_aside] == ["Pod/team-a/train-0"]
    assert [each.name for each in observed.pods] == ["train-0"]
    assert "pods" not in {each.kind for each in observed.unread}
    whole = json.dumps(
        {"type": "MODIFIED", "object": an("Pod") | {"metadata": an("Pod")["metadata"] | {"resourceVersion": "501"}}}
    )
    store.take([ObjectEvent(pods, event(pods, whole.encode()), NOW)])
    assert store.observed().set_aside == ()


def test_an_object_alone_is_refused_where_nothing_can_stand_in_its_place() -> None:
    with pytest.raises(Undecodable, match=r"train-0: spec\.containers"):
        one(seen("Pod", "pods"), json.dumps(bomb()).encode())


def test_an_object_of_a_file_is_set_aside_as_one_of_a_cluster() -> None:
    found = read_cluster("f", listed(bomb(), an("Node"))).observed
    assert [each.title for each in found.set_aside] == ["Pod/team-a/train-0"]
    assert len(found.pods) == len(found.nodes) == 1


def test_policies_of_which_one_is_set_aside_are_refused_as_a_whole() -> None:
    aside = SetAside("GpuPool", "", "a100", field="spec", detail="is no object")
    refused = bundle_of(Observed(set_aside=(aside,)))
    assert "GpuPool/a100 cannot be decoded" in refused.problems[0].sentence


# What follows in a plan

NODE, OTHER_NODE = Ref("Node", "", "n1", "u1"), Ref("Node", "", "n2", "u2")
POD = Ref("Pod", "team", "p", "up")
EVICT, DELETE = (
    Evict(30, presumes=Preconditions(resource_version="1")),
    Delete(presumes=Preconditions(resource_version="1")),
)

UNGATE, UNTAINT, EDIT = Ungate(names.CAPACITY_GATE), Taint("x", None, "NoSchedule"), Annotate(())


def of(*aside: SetAside, pods: tuple[Pod, ...] = ()) -> SetAsides:
    observed = Observed(set_aside=aside, pods=pods)
    return SetAsides(Inputs(Desired("", ""), observed, NOW), Fleet(observed))


def decision(subject: Ref, act: Action, pool: str = "a") -> Decision:
    return Decision("drain", subject, act, some_reason("X"), pool)


BOUND = Pod(
    Metadata("p", "team", owner_references=(OwnerReference("ReplicaSet", "rs", controller=True),)), PodSpec("n1")
)

HELD: dict[str, tuple[SetAside, Decision, tuple[str, ...]]] = {
    "its own subject": (SetAside("Node", "", "n1"), decision(NODE, DELETE), ()),
    "a pool whose NodePool is set aside": (SetAside("NodePool", "", "a", pool="a"), decision(NODE, DELETE), ()),
    "a node with a pod that is set aside": (SetAside("Pod", "x", "q", node="n1"), decision(NODE, DELETE), ("n1",)),
    "a NodePool whose edit would take such a node": (
        SetAside("Pod", "x", "q", node="n1"),
        decision(Ref("NodePool", "", "a"), EDIT),
        ("n1",),
    ),
    "a pod beside one that is set aside": (SetAside("Pod", "x", "q", node="n1"), decision(POD, EVICT), ()),
    "a pod in the namespace of a budget": (SetAside("PodDisruptionBudget", "team", "b"), decision(POD, EVICT), ()),
    "a pod in a namespace": (SetAside("Namespace", "", "team"), decision(POD, EVICT), ()),
    "a pod in the namespace of a claim": (SetAside("GpuClaim", "team", "c"), decision(POD, EVICT), ()),
    "a pod of an owner": (SetAside("ReplicaSet", "team", "rs"), decision(POD, EVICT), ()),
    "a pod that waits with another that is": (
        SetAside("Pod", "team", "q"),
        decision(POD, UNGATE),
        (),
    ),
    "everything where the pool is not known": (SetAside("Node", "", "q", pool="*"), decision(NODE, DELETE), ()),
}
LEFT: dict[str, tuple[SetAside, Decision, tuple[str, ...]]] = {
    "another node": (SetAside("Pod", "x", "q", node="n1"), decision(OTHER_NODE, DELETE), ("n2",)),
    "another pool": (SetAside("NodePool", "", "b", pool="b"), decision(NODE, DELETE), ("n1",)),
    "another namespace": (SetAside("PodDisruptionBudget", "x", "b"), decision(POD, EVICT), ()),
    "a node that is given back": (
        SetAside("Pod", "x", "q", node="n1"),
        decision(NODE, UNTAINT),
        (),
    ),
    "another owner": (SetAside("ReplicaSet", "team", "other"), decision(POD, EVICT), ()),
}


@pytest.mark.parametrize("case", HELD)
def test_what_depends_on_an_object_that_is_set_aside_is_held(case: str) -> None:
    aside, asked, taken = HELD[case]
    why = of(aside, pods=(BOUND,)).why_not(asked, taken)
    assert why is not None
    assert isinstance(why.facts, ObjectSetAside | BehindSetAside)


@pytest.mark.parametrize("case", LEFT)
def test_all_else_goes_on(case: str) -> None:
    aside, asked, taken = LEFT[case]
    assert of(aside, pods=(BOUND,)).why_not(asked, taken) is None


def planned(*aside: SetAside) -> tuple[Inputs, Plan]:
    inputs = World({"nodes": 4, "busy": "0-1"}).inputs
    inputs = msgspec.structs.replace(inputs, observed=msgspec.structs.replace(inputs.observed, set_aside=aside))
    return inputs, plan(inputs, Fleet(inputs.observed))


def test_a_plan_tells_of_each_object_and_acts_on_none_of_them() -> None:
    before = planned()[1]
    acted = [each for each in before.decisions if each.subject.kind == "Node" and not isinstance(each.act, Hold)]
    assert acted
    node = acted[0].subject
    inputs, made = planned(SetAside("Node", "", node.name, node.uid, detail="is a riddle", node=node.name))
    check(inputs, Fleet(inputs.observed), made)
    told = [
        each for each in made.decisions if isinstance(each.reason.facts, ObjectSetAside) and each.planner == "set_aside"
    ]
    assert [each.subject.name for each in told] == [node.name]
    others = {each.subject for each in acted[1:]}
    assert others <= {each.subject for each in made.decisions if not isinstance(each.act, Hold)}
    broken_plan = msgspec.structs.replace(made, decisions=(acted[0],))
    with pytest.raises(BrokenInvariant, match="no action on an object that is set aside"):
        check(inputs, Fleet(inputs.observed), broken_plan)


# What operators are told

ASIDE = (SetAside("Pod", "team", "p", "u", "Quantity", "spec", "is odd"), SetAside("Pod", "team", "q", "v", "Quantity"))


def cycle(*aside: SetAside, **more: Any) -> CycleResult:
    return CycleResult(NOW, Inputs(Desired("", ""), Observed(set_aside=aside), NOW), **more)


def test_metrics_count_objects_by_kind_and_reason_until_none_is_left() -> None:
    metrics = Metrics()
    metrics.publish(cycle(*ASIDE))
    assert b'reconciler_set_aside_objects{kind="Pod",reason="Quantity"} 2.0' in metrics.text()
    metrics.publish(cycle())
    assert b'reconciler_set_aside_objects{kind="Pod",reason="Quantity"} 0.0' in metrics.text()
    metrics.leaderless(True)
    assert b"reconciler_leaderless 1.0" in metrics.text()


def test_readyz_names_objects_that_are_set_aside_and_trouble_that_lasts() -> None:
    notices = Notices()
    notices.publish(cycle(*ASIDE))
    assert "Pod/team/p, Pod/team/q" in notices.told[0]
    failing = planned()[1]
    failing = msgspec.structs.replace(failing, troubles=(PlannerFailure("drain", "a", "KeyError"),))
    for _ in range(2):
        notices.publish(cycle(plan=failing))
        assert notices.told == ()
    notices.publish(cycle(plan=failing))
    assert notices.told == ("in 3 consecutive cycles, drain could not plan for pool a: KeyError",)
    notices.publish(cycle())
    assert not notices.told


def test_an_object_is_told_by_one_event_while_this_replica_leads() -> None:
    told: list[EventNote] = []
    fences: list[Any] = [None]
    publisher = SetAsidePublisher(told.append, lambda: fences[0])
    publisher.publish(cycle(*ASIDE))
    assert told == []
    fences[0] = object()
    for _ in range(2):
        publisher.publish(cycle(*ASIDE))
    assert [(each.regarding.title, each.reason) for each in told] == [
        ("Pod/team/p", "ObjectSetAside"),
        ("Pod/team/q", "ObjectSetAside"),
    ]
    assert "spec: is odd" in told[0].note


def test_every_kind_that_is_seen_is_tried_here() -> None:
    assert {each.kind for each in RESOURCE_KINDS} == {each["kind"] for each in OBJECTS}
    assert names.OWN_NAMESPACE
