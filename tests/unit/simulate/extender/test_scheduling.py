"""Simulated pods with a GpuClaim get the GPUs that the extender chooses, with Leases, as in a real cluster."""

from tests.unit.simulate.extender.stage import SOLD_OUT, Played, claim, jobs, kept, play


def test_pods_get_gpus_of_one_island_and_a_lease_for_each() -> None:
    played = Played(play([claim("pair", 2, policy="requireContiguous")], [kept("pair", 3)]))
    assert sorted(played.bound.values()) == [(0, 1), (2, 3), (4, 5)]
    assert played.lent == played.bound
    assert played.result.broken == ()


def test_the_webhook_names_the_scheduler_the_pool_and_the_gpus() -> None:
    played = Played(play([claim("pair", 2)], [kept("pair", 1)]))
    (pod,) = [each for each in played.pods.values() if each.metadata.annotations.claim]
    assert pod.gpus == 2
    assert pod.spec.affinity is not None
    assert pod.spec.affinity.node_affinity.required is not None


def test_without_the_webhook_a_pod_stays_as_it_is_created() -> None:
    played = Played(play([claim("pair", 2)], [kept("pair", 1, gpus=2)], webhook=False))
    (pod,) = [each for each in played.pods.values() if each.metadata.annotations.claim]
    assert pod.spec.affinity is None
    assert list(played.bound.values()) == [(0, 1)]


def test_a_pod_whose_claim_does_not_exist_is_not_created() -> None:
    played = Played(play([], [kept("pair", 1)]))
    assert not any(each.metadata.annotations.claim for each in played.observed.pods)


def test_gpus_of_ended_pods_are_lent_again() -> None:
    played = Played(play([claim("four", 4)], [jobs("four", 6, seconds=90)], minutes=15))
    assert played.result.sums.finished_pods == 6
    assert played.lent == {}
    assert {"LeaseOfEndedPod", "FreedGpusAnnounced"} <= played.codes
    assert played.result.broken == ()


def test_a_pod_of_a_claim_that_no_island_serves_waits_although_enough_gpus_are_free() -> None:
    claims = [claim("three", 3, policy="requireContiguous"), claim("two", 2, policy="requireContiguous")]
    played = Played(play(claims, [kept("three", 2), kept("two", 1, begins=60)], faults=[SOLD_OUT]))
    assert sorted(played.bound.values()) == [(0, 1, 2), (4, 5, 6)]
    (waiting,) = [each for each in played.pods.values() if not each.node and each.metadata.annotations.claim]
    (scheduled,) = [each for each in waiting.status.conditions if each.type == "PodScheduled"]
    assert (scheduled.status, scheduled.reason) == ("False", "Unschedulable")
    assert played.result.broken == ()


def test_nodes_without_a_report_lend_slots() -> None:
    played = Played(play([claim("pair", 2)], [kept("pair", 4)], islands=(), allocation="plugin"))
    assert sorted(played.bound.values()) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert played.lent == played.bound


def test_a_pod_of_higher_priority_displaces_the_pods_of_one_node_only() -> None:
    """Also in the moment when these pods are gone, and their Leases are not released yet."""
    low, high = kept("four", 4, priority=-10), kept("all", 1, begins=60)
    played = Played(play([claim("four", 4), claim("all", 8)], [low, high], nodes=2, faults=[SOLD_OUT]))
    assert sorted(played.bound.values()) == [(0, 1, 2, 3), (0, 1, 2, 3, 4, 5, 6, 7), (4, 5, 6, 7)]
    assert len({"four-00001", "four-00002", "four-00003", "four-00004"} & played.bound.keys()) == 2
    assert played.result.broken == ()
