"""Evictions, bindings, gates and sizes of pods, on an imagined cluster and on a real one."""

from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.plan.decision import Bind, Decision, Evict, Leaver, LentDevice, Outcome, Ref, Resize, Ungate
from tests.contract import objects
from tests.contract.ground import Ground, decision

EVICT = Evict(grace_seconds=30)


def budgeted(ground: Ground, name: str, pods: list[str]) -> list[Ref]:
    """Running pods of an application of which one must stay."""
    refs = []
    for pod in pods:
        manifest = objects.running(pod)
        manifest["metadata"]["labels"]["app"] = name
        refs.append(ground.put(manifest))
    budget = ground.put(objects.budget(name, name, len(pods)))
    ground.until(budget, lambda found: _is_weighed(found, len(pods)))
    return refs


def _is_weighed(budget: Any, healthy: int) -> bool:
    status = (budget or {}).get("status", {})
    return bool(status.get("observedGeneration") == 1 and status.get("currentHealthy") == healthy)


def is_going(ground: Ground, ref: Ref) -> bool:
    found = ground.get(ref)
    return found is None or "deletionTimestamp" in found["metadata"]


def one(outcomes: list[Outcome]) -> Outcome:
    (outcome,) = outcomes
    return outcome


def test_a_budget_in_the_way_is_told_and_the_pod_stays(ground: Ground, name: str) -> None:
    (ref,) = budgeted(ground, name, [f"{name}-0"])
    outcome = one(ground.apply([decision(ref, EVICT)]))
    assert outcome.result == "retry"
    assert outcome.detail == f"The disruption budget {name} needs 1 healthy pods and has 1 currently"
    assert not is_going(ground, ref)


def test_a_budget_lets_go_what_it_can_spare_and_no_more(ground: Ground, name: str) -> None:
    refs = budgeted(ground, name, [f"{name}-0", f"{name}-1"])
    outcomes = ground.apply([decision(each, EVICT) for each in refs])
    assert sorted(each.result for each in outcomes) == ["done", "retry"]
    assert sorted(is_going(ground, each) for each in refs) == [False, True]


def test_two_budgets_on_one_pod_are_refused(ground: Ground, name: str) -> None:
    (ref,) = budgeted(ground, name, [f"{name}-0"])
    ground.put(objects.budget(f"{name}-more", name))
    outcome = one(ground.apply([decision(ref, EVICT)]))
    assert (outcome.result, "more than one PodDisruptionBudget" in outcome.detail) == ("refused", True)
    assert not is_going(ground, ref)


def test_what_does_not_run_goes_whatever_the_budget(ground: Ground, name: str) -> None:
    budgeted(ground, name, [f"{name}-0"])
    manifest = objects.waiting(f"{name}-1")
    manifest["metadata"]["labels"]["app"] = name
    ref = ground.put(manifest)
    assert one(ground.apply([decision(ref, EVICT)])).result == "done"
    assert ground.get(ref) is None


def test_an_eviction_gives_the_grace_that_was_asked_for(ground: Ground, name: str) -> None:
    ref = ground.put(objects.running(name))
    assert one(ground.apply([decision(ref, Evict(grace_seconds=17))])).result == "done"
    found = ground.get(ref)
    assert found
    assert found["metadata"]["deletionGracePeriodSeconds"] == 17


def together(refs: list[Ref]) -> list[Decision]:
    """They say so to the first, with a grace of its own for each."""
    others = tuple(Leaver(each, 11 + number) for number, each in enumerate(refs[1:]))
    return [decision(refs[0], Evict(grace_seconds=10, others=others))]


def test_pods_leave_together_each_with_its_grace(ground: Ground, name: str) -> None:
    refs = [ground.put(objects.running(f"{name}-{number}")) for number in range(3)]
    assert one(ground.apply(together(refs))).result == "done"
    found = [ground.get(each) for each in refs]
    assert [each["metadata"]["deletionGracePeriodSeconds"] for each in found if each] == [10, 11, 12]


def test_none_of_them_leaves_if_one_may_not(ground: Ground, name: str) -> None:
    (kept,) = budgeted(ground, name, [f"{name}-0"])
    refs = [ground.put(objects.running(f"{name}-{number}")) for number in (1, 2)]
    for order in ([kept, *refs], [*refs, kept]):
        outcome = one(ground.apply(together(order)))
        assert outcome.result == "retry"
        assert outcome.detail == f"The disruption budget {name} needs 1 healthy pods and has 1 currently"
    assert not any(is_going(ground, each) for each in (kept, *refs))


def test_none_of_them_is_asked_if_one_has_left_or_is_another(ground: Ground, name: str) -> None:
    refs = [ground.put(objects.running(f"{name}-{number}")) for number in range(3)]
    assert one(ground.apply([decision(refs[1], EVICT)])).result == "done"
    another = msgspec.structs.replace(refs[2], uid="5f0c1c1e-0000-4000-8000-000000000000")
    for order, gone in ((refs, refs[1]), ([refs[0], another], another)):
        outcome = one(ground.apply(together(order)))
        assert outcome.result == "stale"
        assert outcome.detail == f"{gone.title} is already leaving, but must be evicted together with others"
    assert [is_going(ground, each) for each in refs] == [False, True, False]


def test_what_dry_runs_can_not_tell_takes_the_others_along_all_the_same(ground: Ground, name: str) -> None:
    """A budget spares each of two, and not both: whoever plans has to count, and what is left goes as it can."""
    pair = budgeted(ground, name, [f"{name}-0", f"{name}-1"])
    free = ground.put(objects.running(f"{name}-2"))
    assert one(ground.apply(together([free, *pair]))).result == "retry"
    assert [is_going(ground, each) for each in (*pair, free)] == [True, False, True]


def bind(name: str, *leases: str) -> Bind:
    devices = tuple(LentDevice(lease, place) for place, lease in enumerate(leases))
    return Bind(node=f"{name}-node", leases=devices, annotations=(("gpu.scheduling/devices", "GPU-1"),))


def lease_of(name: str) -> Ref:
    return Ref("Lease", names.LEASES_NAMESPACE, name)


def held(ground: Ground, name: str, holder: str) -> None:
    head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    metadata = {"name": name, "namespace": names.LEASES_NAMESPACE, "labels": {names.MANAGED: "true"}}
    ground.put({**head, "metadata": metadata, "spec": {"holderIdentity": holder}})


def test_a_binding_takes_what_is_lent_with_it(ground: Ground, name: str) -> None:
    node, pod = ground.put(objects.node(f"{name}-node")), ground.put(objects.waiting(name))
    assert one(ground.apply([decision(pod, bind(name, f"{name}-1", f"{name}-0"))])).result == "done"
    found = ground.get(pod)
    assert found
    assert found["spec"]["nodeName"] == node.name
    assert found["metadata"]["annotations"] == {**objects.THEIRS, "gpu.scheduling/devices": "GPU-1"}
    for lease in (ground.get(lease_of(f"{name}-{number}")) for number in range(2)):
        assert lease
        assert lease["spec"]["holderIdentity"] == pod.uid
        assert [each["uid"] for each in lease["metadata"]["ownerReferences"]] == [node.uid]


def test_what_is_lent_to_another_binds_nothing_and_what_was_taken_is_given_back(ground: Ground, name: str) -> None:
    ground.put(objects.node(f"{name}-node"))
    pod = ground.put(objects.waiting(name))
    held(ground, f"{name}-1", "another")
    outcome = one(ground.apply([decision(pod, bind(name, f"{name}-0", f"{name}-1"))]))
    assert outcome.result == "stale"
    assert outcome.detail == f"Lease/{names.LEASES_NAMESPACE}/{name}-1 is already held by another"
    found = ground.get(pod)
    assert found
    assert "nodeName" not in found["spec"]
    assert ground.get(lease_of(f"{name}-0")) is None
    assert ground.get(lease_of(f"{name}-1"))


def test_what_is_lent_to_the_pod_already_is_enough(ground: Ground, name: str) -> None:
    ground.put(objects.node(f"{name}-node"))
    pod = ground.put(objects.waiting(name))
    held(ground, f"{name}-0", pod.uid)
    outcome = one(ground.apply([decision(pod, bind(name, f"{name}-0"))]))
    assert (outcome.result, outcome.detail) == ("done", "")


def test_a_pod_is_bound_once(ground: Ground, name: str) -> None:
    ground.put(objects.node(f"{name}-node"))
    pod = ground.put(objects.pod(name).on("elsewhere").manifest())
    outcome = one(ground.apply([decision(pod, bind(name, f"{name}-0"))]))
    assert (outcome.result, outcome.detail) == ("stale", f"Pod/default/{name} is already bound to elsewhere")
    assert ground.get(lease_of(f"{name}-0")) is None


def test_a_gated_pod_is_not_bound_and_nothing_is_lent_to_it(ground: Ground, name: str) -> None:
    ground.put(objects.node(f"{name}-node"))
    pod = ground.put(objects.gated(name))
    outcome = one(ground.apply([decision(pod, bind(name, f"{name}-0"))]))
    assert (outcome.result, "has scheduling gates: example.com/quota" in outcome.detail) == ("stale", True)
    assert ground.get(lease_of(f"{name}-0")) is None


def test_nothing_is_bound_to_a_node_that_is_not_there(ground: Ground, name: str) -> None:
    pod = ground.put(objects.waiting(name))
    outcome = one(ground.apply([decision(pod, bind(name, f"{name}-0"))]))
    assert (outcome.result, outcome.detail) == ("stale", f"Node/{name}-node no longer exists")


def test_the_last_gate_is_lifted_too(ground: Ground, name: str) -> None:
    gates = ("gpu.scheduling/claim", "gpu.scheduling/capacity")
    pod = ground.put(objects.pod(name).gated(*gates).manifest())
    for gate in gates:
        assert one(ground.apply([decision(pod, Ungate(gate=gate))])).result == "done"
    found = ground.get(pod)
    assert found
    assert not found["spec"].get("schedulingGates")


def test_a_limit_that_equals_the_request_moves_with_it(ground: Ground, name: str) -> None:
    manifest = objects.waiting(name)
    manifest["spec"]["containers"][0]["resources"] = {
        "requests": {"cpu": "500m", "memory": "1Gi"},
        "limits": {"cpu": "500m", "memory": "2Gi"},
    }
    pod = ground.put(manifest)
    gibibyte_milli = 1000 * 2**30
    act = Resize(resources=(("cpu", 250), ("memory", gibibyte_milli * 3 // 2)))
    assert one(ground.apply([decision(pod, act)])).result == "done"
    found = ground.get(pod)
    assert found
    assert found["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "250m", "memory": "1536Mi"},
        "limits": {"cpu": "250m", "memory": "2Gi"},
    }


def test_a_running_container_whose_resources_are_not_known_is_not_resized(ground: Ground, name: str) -> None:
    manifest = objects.running(name)
    state = {"running": {"startedAt": "2026-11-02T08:00:00Z"}}
    manifest["status"]["containerStatuses"] = [
        {"name": "main", "state": state, "ready": True, "restartCount": 0, "image": "a", "imageID": "a"}
    ]
    pod = ground.put(manifest)
    outcome = one(ground.apply([decision(pod, Resize(resources=(("cpu", 250),)))]))
    assert outcome.result == "refused"
    found = ground.get(pod)
    assert found
    assert found["spec"]["containers"][0]["resources"]["requests"]["cpu"] == "100m"


def test_nothing_of_a_pod_is_ours_but_what_was_asked_for(ground: Ground, name: str) -> None:
    pod = ground.put(objects.gated(name))
    before = ground.get(pod)
    assert before
    assert one(ground.apply([decision(pod, Ungate(gate="gpu.scheduling/claim"))])).result == "done"
    after = ground.get(pod)
    assert after
    spec = {**before["spec"], "schedulingGates": [{"name": "example.com/quota"}]}
    assert msgspec.json.encode(after["spec"], order="sorted") == msgspec.json.encode(spec, order="sorted")
