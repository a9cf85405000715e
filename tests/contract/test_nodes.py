"""Taints and the end of nodes, on an imagined cluster and on a real one."""

from typing import Any

from reconciler.model import names
from reconciler.model.plan.decision import Delete, Preconditions, Ref, Taint
from tests.contract import objects
from tests.contract.ground import Ground, decision

FINALIZER = "karpenter.sh/termination"


def ours(ground: Ground, ref: Ref) -> list[tuple[str, str]]:
    """Value and effect of our taints; theirs is there all the time."""
    found = ground.get(ref)
    assert found
    taints: list[dict[str, Any]] = found["spec"].get("taints", [])
    assert objects.THEIR_TAINT in taints
    return sorted((each.get("value", ""), each["effect"]) for each in taints if each["key"] == names.DELETION_TIME)


def taint(ground: Ground, ref: Ref, value: str | None, effect: str) -> str:
    (outcome,) = ground.apply([decision(ref, Taint(key=names.DELETION_TIME, value=value, effect=effect))])
    return outcome.result


def test_taints_are_told_apart_by_key_and_effect(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node(name))
    assert taint(ground, ref, "100", "PreferNoSchedule") == "done"
    assert taint(ground, ref, "100", "NoSchedule") == "done"
    assert taint(ground, ref, "200", "NoSchedule") == "done"
    assert ours(ground, ref) == [("100", "PreferNoSchedule"), ("200", "NoSchedule")]
    assert taint(ground, ref, None, "PreferNoSchedule") == "done"
    assert ours(ground, ref) == [("200", "NoSchedule")]
    assert taint(ground, ref, None, "NoSchedule") == "done"
    assert ours(ground, ref) == []


def test_a_taint_that_is_not_there_need_not_be_taken_off(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node(name))
    written = ground.writes
    assert taint(ground, ref, None, "NoSchedule") == "done"
    assert ground.writes == written


def test_a_taint_without_a_value_is_one(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node(name))
    assert taint(ground, ref, "", "NoSchedule") == "done"
    written = ground.writes
    assert taint(ground, ref, "", "NoSchedule") == "done"
    assert (ours(ground, ref), ground.writes) == ([("", "NoSchedule")], written)


def test_what_others_put_on_between_two_of_ours_survives(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node(name))
    taint(ground, ref, "100", "NoSchedule")
    found = ground.get(ref)
    assert found
    later = {"key": "example.com/later", "effect": "PreferNoSchedule"}
    ground.edit(ref, {"spec": {"taints": [*found["spec"]["taints"], later]}})
    taint(ground, ref, "200", "NoSchedule")
    taint(ground, ref, None, "NoSchedule")
    found = ground.get(ref)
    assert found
    assert later in found["spec"]["taints"]
    assert ours(ground, ref) == []


def test_a_node_with_a_finalizer_goes_when_that_is_taken_off(ground: Ground, name: str) -> None:
    manifest = objects.node(name)
    manifest["metadata"]["finalizers"] = [FINALIZER]
    ref = ground.put(manifest)
    assert [each.result for each in ground.apply([decision(ref, Delete())])] == ["done"]
    found = ground.get(ref)
    assert found
    assert found["metadata"]["deletionTimestamp"]
    written = ground.writes
    assert [each.result for each in ground.apply([decision(ref, Delete())])] == ["done"]
    assert ground.writes == written
    ground.edit(ref, {"metadata": {"finalizers": None}})
    assert ground.get(ref) is None


def emptied(ground: Ground, ref: Ref) -> tuple[str, str]:
    (outcome,) = ground.apply([decision(ref, Delete(presumes=Preconditions(empty=True)))])
    return outcome.result, outcome.detail


def test_a_node_that_is_to_be_empty_is_not_deleted_while_a_pod_counts(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node(name))
    pods = [ground.put(objects.pod(f"{name}-{number}").on(name).manifest()) for number in range(2)]
    written = ground.writes
    title = f"Pod/{pods[0].namespace}/{name}-0"
    assert emptied(ground, ref) == ("stale", f"{ref.title} was expected to be empty, but has {title} and 1 more")
    assert ground.writes == written
    assert ground.get(ref)


def test_pods_that_come_with_a_node_or_are_done_leave_it_empty(ground: Ground, name: str) -> None:
    ref = ground.put(objects.node(name))
    ground.put(objects.daemon(f"{name}-exporter", name))
    ground.put(objects.finished(f"{name}-done", name))
    assert emptied(ground, ref) == ("done", "")
    assert ground.get(ref) is None
