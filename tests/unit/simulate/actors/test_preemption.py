"""Important pods displace others on an imagined cluster, as kube-scheduler does it."""

from random import Random

import pytest

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Ref
from reconciler.simulate.objects import says
from tests.unit.simulate.stage import Small, budget, node, pod, template, workload


def nominated(there: Small, name: str) -> str:
    found: str = there.get("Pod", name)["status"].get("nominatedNodeName", "")
    return found


def test_a_real_pod_displaces_a_filler_at_once_and_gets_its_node_after_the_fillers_grace() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("filler", gpus=8, priority=-10, preemptionPolicy="Never", terminationGracePeriodSeconds=60))
    there.until(20)
    there.world.put(pod("real", gpus=8))
    filler = there.until(21).get("Pod", "filler")
    assert filler["metadata"]["deletionGracePeriodSeconds"] == 60
    assert [each["reason"] for each in filler["status"]["conditions"] if each["type"] == "DisruptionTarget"] == [
        "PreemptionByScheduler"
    ]
    assert nominated(there, "real") == "n1"
    assert says(there.get("Pod", "real"), "PodScheduled", "False")
    assert there.until(79).pods()["real"] == ("", "Pending")
    assert there.until(100).pods() == {"real": ("n1", "Running")}
    assert nominated(there, "real") == "", "it is bound"


def test_a_pod_that_never_preempts_waits_and_so_does_one_that_is_not_more_important() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("filler", gpus=8, priority=-10))
    there.until(20)
    there.world.put(pod("patient", gpus=8, priority=5, preemptionPolicy="Never"))
    there.world.put(pod("equal", gpus=8, priority=-10))
    there.until(200)
    assert {name: on for name, (on, _) in there.pods().items()} == {"filler": "n1", "patient": "", "equal": ""}


def test_no_more_is_displaced_than_is_needed_and_the_least_important_go() -> None:
    there = Small(node("n1")).start()
    for name, gpus, priority in (("a", 4, 1), ("b", 2, 0), ("c", 2, 0)):
        there.world.put(pod(name, gpus=gpus, priority=priority))
    there.until(20)
    there.world.put(pod("real", gpus=4, priority=10))
    assert {name for name, (_, phase) in there.until(100).pods().items() if phase == "Running"} == {"a", "real"}


def test_of_two_nodes_the_one_is_chosen_whose_disruption_budgets_allow_it() -> None:
    there = Small(node("n1"), node("n2")).start()
    there.world.put(budget("b", maxUnavailable=0, selector={"matchLabels": {"app": "kept"}}))
    there.world.put(pod("kept", gpus=8, priority=-10, nodeSelector={names.HOSTNAME: "n1"}))
    there.world.edit(Ref("Pod", "default", "kept"), {"metadata": {"labels": {"app": "kept"}}})
    there.world.put(pod("free", gpus=8, priority=-5, nodeSelector={names.HOSTNAME: "n2"}))
    there.until(20)
    for name in ("first", "second"):
        there.world.put(pod(name, gpus=8))
    there.until(21)
    assert nominated(there, "first") == "n2", "though those there are more important"
    assert nominated(there, "second") == "n1", "budgets are minded only as long as that is possible"


def test_several_pods_displace_one_filler_each_and_nobody_takes_what_was_left_for_another() -> None:
    there = Small(node("n1"), node("n2"), node("n3")).start()
    for number in range(3):
        there.world.put(pod(f"filler-{number}", gpus=8, priority=-10))
    there.until(20)
    for number in range(2):
        there.world.put(pod(f"real-{number}", gpus=8))
    there.world.put(pod("low", gpus=8, priority=-5, preemptionPolicy="Never"))
    there.until(200)
    running = {name for name, (_, phase) in there.pods().items() if phase == "Running"}
    assert len(running) == 3
    assert {"real-0", "real-1"} < running
    assert "low" not in running


def test_a_more_important_pod_takes_over_the_node_that_was_nominated_for_another() -> None:
    there = Small(node("n1")).start()
    there.world.put(pod("filler", gpus=8, priority=-10))
    there.until(20)
    there.world.put(pod("real", gpus=8))
    assert nominated(there.until(21), "real") == "n1"
    there.world.put(pod("urgent", gpus=8, priority=100))
    assert nominated(there.until(22), "urgent") == "n1"
    assert nominated(there, "real") == ""
    assert there.until(100).pods()["urgent"] == ("n1", "Running")


@pytest.mark.parametrize("seed", range(5))
def test_at_rest_nobody_waits_who_would_have_room_without_those_less_important(seed: int) -> None:
    chance = Random(seed)
    there = Small(*[node(f"n{number}") for number in range(3)], seed=seed).start()
    there.world.put(budget("b", maxUnavailable=1))
    there.world.put(workload("ReplicaSet", "filler", template(priority=-10, preemptionPolicy="Never"), replicas=30))
    for number in range(60):
        there.until(10 * number)
        gpus, priority = chance.choice([1, 2, 4, 8]), chance.choice([0, 0, 5, 10])
        there.world.put(pod(f"p{number}", gpus=gpus, priority=priority, seconds=chance.choice([0, 30, 300])))
    there.until(3_000)
    alive = [each for each in there.world.observe().pods if not each.is_finished]
    for each in alive:
        if each.node:
            continue
        assert not each.status.nominated_node_name
        for name in ("n0", "n1", "n2"):
            above = [one for one in alive if one.node == name and not _gives_way(one, each)]
            assert sum(one.gpus for one in above) + each.gpus > 8, f"{each.name} could be on {name}"


def _gives_way(pod: Pod, other: Pod) -> bool:
    return pod.spec.priority < other.spec.priority and other.spec.preemption_policy != "Never"
