"""How nodes may be emptied: each rule is broken once by hand, and told; what drains do breaks none."""

from typing import Any

import pytest

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.model.plan.drain_memory import Batch, DrainMemory
from reconciler.model.plan.memory import Memory
from reconciler.model.policy.guards import Window
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.model.quantity import Duration, Quantity
from tests.unit.simulate.invariants.planted_drains import (
    ANEW,
    BATCH,
    BUDGET,
    EMPTY,
    GANG,
    LEAST,
    OFF,
    PLACE,
    SLOTS,
    WINDOW,
)
from tests.unit.simulate.invariants.test_monitor import US, Site, pod

Json = dict[str, Any]


def begin(site: Site, *names_of_nodes: str) -> None:
    value = str(site.stage.now // 1_000)
    for name in names_of_nodes:
        site.taint(name, {"key": names.DRAINING, "value": value, "effect": "NoSchedule"})


def wait(site: Site, seconds: int) -> None:
    site.stage.engine.run(Instant(site.stage.now + 1_000 * seconds))


def running(name: str, node: str, gpus: int = 1, **more: Any) -> Json:
    """One that is healthy, of the application that it is called after, and that may be lost."""
    body: Json = pod(name, node, gpus, {names.SAFE_TO_EVICT: "true"} | more.pop("annotations", {}))
    body["metadata"] |= {"labels": {"app": name.partition("-")[0]}} | more
    body["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    return body


def move(site: Site, name: str) -> None:
    """As a deletion, which no budget stands in the way of."""
    site.world.delete(Ref("Pod", "default", name), US, grace_seconds=0)


def settled(*pods: Json, **how: Any) -> Site:
    """What is there has been there for long enough to be known."""
    site = Site(**how)
    for each in pods:
        site.world.put(each)
    wait(site, 120)
    return site


def test_only_what_is_drained_is_moved() -> None:
    site = settled(running("web-0", "n1"))
    move(site, "web-0")
    assert site.rules == {OFF}


def test_a_pod_that_has_room_elsewhere_is_moved_off_a_drained_node() -> None:
    site = settled(running("web-0", "n1"))
    begin(site, "n1")
    move(site, "web-0")
    assert site.rules == set()


@pytest.mark.parametrize(
    ("version", "kind", "safe", "rules"),
    [
        ("apps/v1", "StatefulSet", "", set[str]()),
        ("batch/v1", "Job", "", set[str]()),
        ("v1", "ReplicationController", "", set[str]()),
        ("apps/v1", "DaemonSet", "", set[str]()),
        ("batch.volcano.sh/v1alpha1", "Job", "", {ANEW}),
        ("ray.io/v1", "RayCluster", "", {ANEW}),
        ("ray.io/v1", "RayCluster", "true", set[str]()),
        ("", "", "", {ANEW}),
        ("", "", "true", set[str]()),
    ],
)
def test_a_pod_is_moved_if_it_is_made_anew_or_may_be_lost(version: str, kind: str, safe: str, rules: set[str]) -> None:
    owner = {"apiVersion": version, "kind": kind, "name": "web", "uid": "uid-web", "controller": True}
    safe_to_evict = {names.SAFE_TO_EVICT: safe}
    site = settled(running("web-0", "n1", annotations=safe_to_evict, ownerReferences=[owner] if kind else []))
    begin(site, "n1")
    move(site, "web-0")
    assert site.rules == rules


@pytest.mark.parametrize(("counts_as_daemon", "rules"), [("true", set[str]()), ("false", {ANEW})])
def test_a_pod_that_counts_as_one_of_a_daemon_set_may_be_moved_whoever_made_it(
    counts_as_daemon: str, rules: set[str]
) -> None:
    annotations = {names.SAFE_TO_EVICT: "", names.DAEMONSET_POD: counts_as_daemon}
    site = settled(running("agent-0", "n1", annotations=annotations))
    begin(site, "n1")
    move(site, "agent-0")
    assert site.rules == rules


@pytest.mark.parametrize(("moved", "rules"), [(1, set[str]()), (2, {PLACE})])
def test_a_pod_for_which_no_room_is_left_is_told(moved: int, rules: set[str]) -> None:
    """Of one node that stays, on which there is room for one of two."""
    there = running("big-0", "n2", 8), running("other-0", "n3", 3)
    site = settled(running("web-0", "n1", 4), running("job-0", "n1", 4), *there)
    begin(site, "n1")
    for name in ("web-0", "job-0")[:moved]:
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": f"uid-{name}", "controller": True}
        body = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": {"replicas": 1}}
        site.world.put({**body, "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}})
        site.edit(name, {"metadata": {"ownerReferences": [owner]}}, "kubectl", "Pod")
        move(site, name)
    assert site.rules == rules


def test_what_was_placed_in_the_last_minute_may_not_have_been_known() -> None:
    for seconds, rules in ((59, set[str]()), (61, {PLACE})):
        site = settled(running("web-0", "n1", 5), running("one-0", "n3", 8))
        site.world.put(running("big-0", "n2", 8))
        wait(site, seconds)
        begin(site, "n1")
        move(site, "web-0")
        assert site.rules == rules


def budget(**spec: Any) -> Json:
    metadata = {"name": "web", "namespace": "default"}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata,
        "spec": {"selector": {"matchLabels": {"app": "web"}}, **spec},
    }


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        ({"minAvailable": 2}, {BUDGET}),
        ({"minAvailable": 1}, set()),
        ({"maxUnavailable": 0}, {BUDGET}),
        ({"maxUnavailable": "50%"}, set()),
        ({"minAvailable": "51%"}, {BUDGET}),
    ],
)
def test_a_budget_is_counted_again(spec: Json, rules: set[str]) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-web", "controller": True}
    site = settled(*(running(f"web-{number}", "n1", ownerReferences=[owner]) for number in range(2)))
    head = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "web", "namespace": "default"}}
    site.world.put({**head, "spec": {"replicas": 2}})
    site.world.put(budget(**spec))
    begin(site, "n1")
    move(site, "web-0")
    assert site.rules == rules


def test_one_that_is_not_healthy_costs_nothing_where_that_is_always_allowed() -> None:
    for policy, rules in (("AlwaysAllow", set[str]()), ("IfHealthyBudget", {BUDGET})):
        sick = running("web-0", "n1") | {"status": {"phase": "Running"}}
        site = settled(sick, budget(minAvailable=1, unhealthyPodEvictionPolicy=policy))
        begin(site, "n1")
        move(site, "web-0")
        assert site.rules == rules


def test_two_budgets_of_one_pod_can_not_be_weighed() -> None:
    second = budget(minAvailable=0)
    second["metadata"] = {"name": "too", "namespace": "default"}
    site = settled(running("web-0", "n1"), budget(minAvailable=0), second)
    begin(site, "n1")
    move(site, "web-0")
    assert site.rules == {BUDGET}


@pytest.mark.parametrize(("second", "rules"), [(True, set[str]()), (False, {GANG})])
def test_a_gang_goes_as_a_whole(second: bool, rules: set[str]) -> None:
    head = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "spec": {"gangRef": "train"}}
    claims = [{**head, "metadata": {"name": name, "namespace": "default"}} for name in ("a", "b")]
    members = [running(f"m-{name}", "n1", annotations={names.CLAIM: name}) for name in ("a", "b")]
    site = settled(*claims, *members)
    begin(site, "n1")
    move(site, "m-a")
    if second:
        move(site, "m-b")
    wait(site, 60)
    site.world.put(running("late-0", "n2"))
    assert site.rules == rules


@pytest.mark.parametrize(("tainted", "rules"), [(("n1", "n2"), set[str]()), (("n1",), {BATCH})])
def test_nothing_is_moved_before_its_batch_is_whole(tainted: tuple[str, ...], rules: set[str]) -> None:
    site = settled(running("web-0", "n1"))
    nodes = tuple((name, site.world.get(Ref("Node", "", name))["metadata"]["uid"]) for name in ("n1", "n2"))  # type: ignore[index]
    site.memory = Memory(drained=DrainMemory(batch=Batch(site.stage.now, nodes)))
    begin(site, *tainted)
    site.memory = Memory()
    move(site, "web-0")
    assert site.rules == rules


@pytest.mark.parametrize(("seconds", "rules"), [(60, set[str]()), (59, {EMPTY})])
def test_a_node_that_was_drained_goes_when_it_was_empty_for_a_minute(seconds: int, rules: set[str]) -> None:
    site = settled(running("web-0", "n1"))
    begin(site, "n1")
    move(site, "web-0")
    wait(site, seconds)
    site.world.edit(Ref("Node", "", "n1"), {"metadata": {"finalizers": ["karpenter.sh/termination"]}}, "karpenter")
    site.world.delete(Ref("Node", "", "n1"), US)
    assert site.rules == rules


@pytest.mark.parametrize(("hours", "rules"), [(24, set[str]()), (1, {WINDOW})])
def test_a_drain_begins_in_a_window(hours: int, rules: set[str]) -> None:
    """It is 19:46:40 in UTC, and a window opened at 17:00 in Berlin."""
    window = Window(schedule="0 17 * * *", time_zone="Europe/Berlin", duration=Duration(hours * 3_600_000))
    site = settled(running("web-0", "n1"), drains=DrainPolicy(pool_names=["a100"], windows=[window]))
    begin(site, "n1")
    assert site.rules == rules


def test_a_pool_that_no_policy_names_is_not_drained() -> None:
    site = settled(running("web-0", "n1"), drains=DrainPolicy(pool_names=["l4"]))
    begin(site, "n1")
    assert site.rules == {WINDOW}


@pytest.mark.parametrize(
    ("most", "drained", "rules"),
    [((1, 2), 1, set[str]()), ((1, 2), 2, {SLOTS}), ((2, 2), 2, set()), ((3, 2), 3, {SLOTS})],
)
def test_no_more_are_drained_or_leave_than_may(most: tuple[int, int], drained: int, rules: set[str]) -> None:
    spec = DrainPolicy(pool_names=["a100"], max_drain_parallelism=most[0], max_scale_down_parallelism=most[1])
    site = settled(*(running(f"web-{number}", f"n{number}") for number in range(1, 4)), drains=spec)
    begin(site, *(f"n{number}" for number in range(1, drained + 1)))
    assert site.rules == rules


@pytest.mark.parametrize(("least", "rules"), [(3, set[str]()), (4, {LEAST})])
def test_a_pool_keeps_its_least_size(least: int, rules: set[str]) -> None:
    wish = NodeProvisioner(pool_name="a100", min_size=least, max_size=10, min_gpu_utilization_percent=80)
    site = settled(running("web-0", "n1"), provisioner=wish)
    begin(site, "n1")
    assert site.rules == rules


@pytest.mark.parametrize(("least", "rules"), [("24", set[str]()), ("25", {LEAST})])
def test_the_cluster_keeps_what_it_is_to_keep(least: str, rules: set[str]) -> None:
    spec = DrainPolicy(pool_names=["a100"], cluster_min={names.NVIDIA_GPU: Quantity.parse(least)})
    site = settled(running("web-0", "n1"), drains=spec)
    begin(site, "n1")
    assert site.rules == rules
