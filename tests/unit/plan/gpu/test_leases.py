"""What becomes of lent GPUs: the table of cases, and what always holds."""

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.devices.device_lease import read_allocation
from reconciler.model.plan.decision import Delete
from reconciler.plan.gpu.reasons import LeaseNotUsed, LeaseOfGonePod
from reconciler.report.sentences import sentence
from tests.folders import CASES as FOLDER
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.gpu.stage import World
from tests.unit.plan.scaling.stage import NOW

CASES: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / "gpu" / "leases.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    verdict = World(case).verdict()
    decisions, wake_at = verdict.decisions, verdict.wake_at
    assert lines_of(decisions) == case["does"]
    assert (None if wake_at is None else (wake_at - NOW) / 1_000) == case.get("wakes")
    sentences = [sentence(each.reason) for each in decisions]
    for words in case.get("says", []):
        assert any(words in each for each in sentences), sentences


@some.composite
def cases(draw: some.DrawFn) -> dict[str, Any]:
    pods = {
        name: {
            **({"at": node} if (node := draw(some.sampled_from(["", "a", "b"]))) else {}),
            "phase": draw(some.sampled_from(["Pending", "Running", "Succeeded", "Failed"])),
            "allocated": draw(some.sampled_from(["", "a:0", "a:0,1", "b:1", "a:x"])),
            "releasing": draw(some.sampled_from(["", "a@100", "b@5", "a@100000", "@", "a@x"])),
            "claim": draw(some.booleans()),
        }
        for name in draw(some.sets(some.sampled_from(["p", "q", "r"])))
    }
    leases = {
        place: {
            "pod": draw(some.sampled_from(["p", "q", "r", ""])),
            "age": draw(some.sampled_from([-5, 0, 59, 60, 400])),
            "version": draw(some.sampled_from([1, 100, 101, 10**9])),
        }
        for place in draw(some.sets(some.sampled_from(["a/0", "a/1", "b/0", "c/7"])))
    }
    nodes = {
        name: {"down": draw(some.sampled_from([0, 299, 300]))} for name in draw(some.sets(some.sampled_from("ab")))
    }
    return {"pods": pods, "leases": leases, "nodes": nodes}


@given(cases())
@settings(max_examples=200)
def test_no_gpu_of_a_pod_that_may_run_on_a_node_that_is_up_is_released(case: dict[str, Any]) -> None:
    world = World(case)
    pods = {each.metadata.uid: each for each in world.inputs.observed.pods}
    nodes = {each.name: each for each in world.inputs.observed.nodes}
    leases = {each.metadata.name: each for each in world.inputs.observed.leases}
    for decision in world.verdict().decisions:
        if not isinstance(decision.act, Delete):
            continue
        lease = leases[decision.subject.name]
        assert decision.act.presumes.resource_version == lease.metadata.resource_version
        pod = pods.get(lease.spec.holder_identity)
        node = lease.metadata.owner_references[0].name
        if pod is None:
            assert isinstance(decision.reason.facts, LeaseOfGonePod) or node not in nodes
        elif pod.node == node and not pod.is_finished and isinstance(decision.reason.facts, LeaseNotUsed):
            assert decision.reason.facts.device not in read_allocation(pod.metadata.annotations.allocated, node)
            assert pod.metadata.annotations.allocated.startswith(f"{node}:")
        elif pod.node == node and not pod.is_finished:
            assert node not in nodes or not nodes[node].is_ready
        elif not pod.node and not pod.is_finished and node in nodes and nodes[node].is_ready:
            assert pod.metadata.annotations.releasing.startswith(f"{node}@")
