"""How pods leave an imagined cluster: by deletion, by eviction within their budgets, and driven out by taints."""

from reconciler.model.plan.decision import Ref
from tests.unit.simulate.stage import Small, budget, node, pod, template, workload


def test_an_evicted_pod_takes_its_grace_and_another_comes_in_its_place() -> None:
    there = Small(node("n1"), node("n2")).start()
    there.world.put(workload("ReplicaSet", "r", template(8, terminationGracePeriodSeconds=120), replicas=1))
    ((name, (_, phase)),) = there.until(20).pods().items()
    assert phase == "Running"
    assert there.world.evict(Ref("Pod", "default", name), "tests").result == "done"
    assert len(there.until(60).pods()) == 2, "the new one is there while the old one takes its grace"
    assert name in there.until(139).pods()
    assert list(there.until(145).pods()) == ["r-00002"]


def test_a_disruption_budget_tells_how_many_may_go_and_an_eviction_counts_at_once() -> None:
    there = Small(node("n1")).start()
    there.world.put(budget("b", maxUnavailable=1))
    there.world.put(workload("ReplicaSet", "r", template(), replicas=3))
    there.until(20)
    status = there.get("PodDisruptionBudget", "b")["status"]
    figures = ("expectedPods", "currentHealthy", "desiredHealthy", "disruptionsAllowed")
    assert [status[each] for each in figures] == [3, 3, 2, 1]
    first, second, _ = there.pods()
    assert there.world.evict(Ref("Pod", "default", first), "tests").result == "done"
    assert there.world.evict(Ref("Pod", "default", second), "tests").result == "retry"
    there.until(100)
    assert there.world.evict(Ref("Pod", "default", second), "tests").result == "done"
    assert there.get("PodDisruptionBudget", "b")["status"]["disruptedPods"].keys() == {second}


def test_pods_that_do_not_bear_a_taint_that_drives_out_are_deleted_and_others_when_their_time_is_over() -> None:
    there = Small(node("n1")).start()
    bearing = {"key": "gpu.scheduling/leave", "operator": "Exists", "effect": "NoExecute"}
    there.world.put(pod("gone"))
    there.world.put(pod("later", tolerations=[{**bearing, "tolerationSeconds": 100}]))
    there.world.put(pod("stays", tolerations=[bearing]))
    there.until(20)
    taint = {"key": "gpu.scheduling/leave", "value": "1", "effect": "NoExecute"}
    there.world.edit(Ref("Node", "", "n1"), {"spec": {"taints": [taint]}})
    assert {"later", "stays"} == there.until(60).pods().keys()
    assert not there.until(119).get("Pod", "later")["metadata"].get("deletionTimestamp")
    assert {"stays"} == there.until(160).pods().keys()


def test_a_taint_that_is_taken_off_in_time_drives_nobody_out() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("p", tolerations=[{"operator": "Exists", "tolerationSeconds": 100}]))
    there.until(20)
    taint = {"key": "gpu.scheduling/leave", "value": "1", "effect": "NoExecute"}
    for taints, until in (([taint], 60), ([], 70), ([taint], 160)):
        there.world.edit(Ref("Node", "", "n1"), {"spec": {"taints": taints}})
        there.until(until)
    assert there.pods() == {"p": ("n1", "Running")}, "it counts from the second time on"
    assert not there.get("Pod", "p")["metadata"].get("deletionTimestamp")
    assert there.until(210).pods() == {}


def test_a_pod_that_is_going_can_be_given_less_time_but_not_more() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("p", terminationGracePeriodSeconds=600))
    there.until(20)
    ref = Ref("Pod", "default", "p")
    there.world.delete(ref)
    there.until(50)
    there.world.delete(ref, grace_seconds=5_000)
    assert there.get("Pod", "p")["metadata"]["deletionGracePeriodSeconds"] == 600
    there.world.delete(ref, grace_seconds=60)
    assert "p" in there.until(79).pods()
    assert there.until(82).pods() == {}


def test_a_pod_that_has_ended_is_deleted_at_once() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("p", seconds=10))
    assert there.until(60).pods() == {"p": ("n1", "Succeeded")}
    there.world.delete(Ref("Pod", "default", "p"))
    assert there.pods() == {}


def test_an_evicted_pod_of_a_stateful_set_counts_again_once_it_is_back_under_its_name() -> None:
    there = Small(node("n1")).start()
    there.world.put(budget("b", maxUnavailable=1))
    there.world.put(workload("StatefulSet", "s", template(), replicas=2))
    there.until(20)
    assert there.world.evict(Ref("Pod", "default", "s-0"), "tests").result == "done"
    there.until(100)
    status = there.get("PodDisruptionBudget", "b")["status"]
    assert (status["currentHealthy"], status["disruptionsAllowed"], status["disruptedPods"]) == (2, 1, {})


def test_of_jobs_a_budget_lets_somebody_go_only_where_it_says_how_many_must_be_there() -> None:
    there = Small(node("n1")).start()
    there.world.put(budget("away", maxUnavailable=1, selector={"matchLabels": {"app": "a"}}))
    there.world.put(workload("Job", "j", template(), parallelism=3))
    there.until(20)
    assert there.get("PodDisruptionBudget", "away")["status"]["disruptionsAllowed"] == 0
    there.world.put(budget("away", minAvailable=2))
    there.until(30)
    assert there.get("PodDisruptionBudget", "away")["status"]["disruptionsAllowed"] == 1


def test_a_budget_expects_no_pods_that_nobody_owns() -> None:
    there = Small(node("n1")).start()
    there.world.put(budget("b", maxUnavailable=1))
    there.world.put(pod("bare"))
    status = there.until(20).get("PodDisruptionBudget", "b")["status"]
    assert (status["expectedPods"], status["disruptionsAllowed"]) == (0, 0)
