"""The figures of smart pods and of machines that come, cycle by cycle; and alerts only name figures that there are."""

import re

import msgspec
import pytest

from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.metadata import Annotations, Condition
from reconciler.model.cluster.node import NodeClaim
from reconciler.model.cluster.observed import Observed, Unread
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import Annotate, Apply, Decision, Delete, Outcome, Ref, Result
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.policy.resolve import resolve
from reconciler.protocol.write_order import verb_of
from reconciler.serve.metrics import Metrics
from tests import builders
from tests.stages.alerting import rules
from tests.unit.plan.some_reasons import reason_of
from tests.unit.schema.rights.stage import POOL, WISHED

T0 = instant("2026-11-02T08:00:00Z")


def after(seconds: int) -> Instant:
    return Instant(T0 + seconds * 1000)


def made(name: str, planner: str = "smart_pods") -> Decision:
    return Decision(planner, Ref("Pod", "gpu-system", name), Apply(manifest="{}"), reason_of("Missing"), "a100")


def cleared(name: str, code: str) -> Decision:
    return Decision("smart_pods", Ref("Pod", "gpu-system", name, f"uid-{name}"), Delete(), reason_of(code), "a100")


def acted(seconds: int, *decisions: Decision, result: Result = "done") -> CycleResult:
    outcomes = tuple(Outcome(each.subject, verb_of(each), result) for each in decisions)
    return CycleResult(after(seconds), plan=Plan("", decisions, (), Memory(), Hints(), None), outcomes=outcomes)


def looked(seconds: int, *objects: Pod | NodeClaim, desired: Desired | None = None, unread: str = "") -> CycleResult:
    observed = Observed(
        pods=tuple(each for each in objects if isinstance(each, Pod)),
        node_claims=tuple(each for each in objects if isinstance(each, NodeClaim)),
        unread=(Unread(unread, "timed out"),) if unread else (),
    )
    return CycleResult(after(seconds), Inputs(desired or Desired("r", "prod"), observed, after(seconds)))


def pod(name: str, phase: str = "", made: int = 0, since: str = "", status: str = "Pending") -> Pod:
    """A smart pod that may live for 100 s."""
    labels = {"gpu.scheduling/component": "smart-scheduler", "gpu.scheduling/pool": "a100"}
    return builders.pod(
        name,
        namespace="gpu-system",
        creation_timestamp=timestamp(after(made)),
        labels=labels,
        annotations=Annotations(phase=phase, since=since),
        active_deadline_seconds=100,
        phase=status,
    )


def claim(name: str, made: int = 0, ready: int | None = None) -> NodeClaim:
    told = "" if ready is None else timestamp(after(ready))
    condition = Condition("Initialized", "Unknown" if ready is None else "True", last_transition_time=told)
    return builders.claim(name, creation_timestamp=timestamp(after(made)), conditions=(condition,))


def told(*cycles: CycleResult) -> dict[str, float]:
    """Each figure after these cycles."""
    metrics = Metrics()
    for each in cycles:
        metrics.publish(each)
    lines = (line for line in metrics.text().decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_before_anything_happens_all_figures_are_there() -> None:
    found = told()
    assert found["reconciler_scaling_success_rate"] == 1
    assert found["reconciler_smart_pods_created_total"] == 0
    for result in ("completed", "failed", "timeout", "orphaned", "duplicate", "unreadable", "lost"):
        assert found[f'reconciler_smart_pods_finished_total{{result="{result}"}}'] == 0
    for phase in ("Pending", "Scheduled", "NodeReady", "Completed", "Failed"):
        assert found[f'reconciler_smart_pods_active{{phase="{phase}"}}'] == 0
    assert found["reconciler_nodeclaim_provision_duration_seconds_count"] == 0
    assert found["reconciler_smart_pods_leftover"] == 0


def test_what_is_made_counts_when_it_is_done() -> None:
    found = told(
        acted(0, made("a"), made("b")),
        acted(60, made("c"), result="stale"),
        acted(60, made("d", planner="manifests")),
        acted(60, made("e")),
    )
    assert found["reconciler_smart_pods_created_total"] == 3


def test_what_is_decided_on_again_before_it_is_seen_counts_once() -> None:
    again = [acted(0, made("a")), acted(1, made("a")), acted(60, made("a"))]
    assert told(*again)["reconciler_smart_pods_created_total"] == 2
    gone = [acted(at, cleared("a", "SmartPodDone")) for at in (0, 1)]
    assert told(*gone)['reconciler_smart_pods_finished_total{result="completed"}'] == 1


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("SmartPodDone", "completed"),
        ("SmartPodWithoutMachine", "failed"),
        ("SmartPodTimedOut", "timeout"),
        ("SmartPodOrphaned", "orphaned"),
        ("SmartPodDuplicate", "duplicate"),
        ("SmartPodUnreadable", "unreadable"),
        ("SmartPodCleared", ""),
    ],
)
def test_what_became_of_one_is_told_by_why_it_is_deleted(code: str, result: str) -> None:
    found = told(acted(0, cleared("a", code)), acted(60, cleared("b", code), result="refused"))
    counted = {name: value for name, value in found.items() if "smart_pods_finished_total" in name and value}
    assert counted == ({f'reconciler_smart_pods_finished_total{{result="{result}"}}': 1} if result else {})
    assert found["reconciler_smart_pods_created_total"] == 0


def noted(name: str, code: str) -> Decision:
    return Decision(
        "smart_pods", Ref("Pod", "gpu-system", name, f"uid-{name}"), Annotate(annotations=()), reason_of(code), "a100"
    )


def finished(found: dict[str, float]) -> dict[str, float]:
    prefix = 'reconciler_smart_pods_finished_total{result="'
    return {name[len(prefix) : -2]: value for name, value in found.items() if name.startswith(prefix) and value}


def test_the_last_way_that_failed_counts_when_it_is_noted_and_not_again_when_the_pod_is_cleared() -> None:
    story = [
        looked(0, pod("a")),
        acted(30, noted("a", "SmartPodFailed")),
        looked(31, pod("a", "Failed")),
        acted(60, cleared("a", "SmartPodCleared")),
        looked(61),
    ]
    found = told(*story)
    assert finished(found) == {"failed": 1}
    assert found["reconciler_scaling_success_rate"] == 0


def test_an_attempt_that_was_noted_as_failed_and_gets_its_node_after_all_has_one_result() -> None:
    story = [looked(0, pod("a")), acted(30, noted("a", "SmartPodFailed")), looked(31, pod("a", "Failed"))]
    assert finished(told(*story, acted(90, cleared("a", "SmartPodDone")), looked(91))) == {"failed": 1}


def test_a_smart_pod_that_somebody_else_deleted_is_lost() -> None:
    assert finished(told(looked(0, pod("a"), pod("b")), looked(5, pod("b")))) == {"lost": 1}
    assert finished(told(looked(0, pod("a")), acted(5, cleared("a", "SmartPodOrphaned")), looked(6))) == {"orphaned": 1}


def test_a_new_process_counts_nothing_of_an_attempt_that_failed_before() -> None:
    assert finished(told(looked(0, pod("a", "Failed")), acted(5, cleared("a", "SmartPodCleared")), looked(6))) == {}


def test_a_replica_that_leads_no_more_counts_no_attempt_as_lost() -> None:
    metrics = Metrics()
    metrics.publish(looked(0, pod("a")))
    metrics.lead(False)
    metrics.publish(looked(600))
    assert b'result="lost"} 0.0' in metrics.text()


def test_the_rate_of_success_is_of_those_that_got_their_machine_or_did_not() -> None:
    codes = ["SmartPodDone"] * 3 + ["SmartPodTimedOut", "SmartPodOrphaned", "SmartPodDuplicate", "SmartPodCleared"]
    decisions = [cleared(f"p{number}", code) for number, code in enumerate(codes)]
    assert told(acted(0, *decisions))["reconciler_scaling_success_rate"] == 0.75
    assert told(acted(0, cleared("a", "SmartPodWithoutMachine")))["reconciler_scaling_success_rate"] == 0
    assert told(acted(0, cleared("a", "SmartPodOrphaned")))["reconciler_scaling_success_rate"] == 1


def test_those_that_there_are_are_told_by_phase_and_those_that_went_as_none() -> None:
    stranger = builders.pod("other", namespace="gpu-system")
    seen = looked(50, pod("a"), pod("b", "Pending", made=20), pod("c", "NodeReady"), pod("d", "Odd"), stranger)
    found = told(seen)
    active = {name: value for name, value in found.items() if "smart_pods_active" in name and value}
    assert active == {
        'reconciler_smart_pods_active{phase="Pending"}': 2,
        'reconciler_smart_pods_active{phase="NodeReady"}': 1,
        'reconciler_smart_pods_active{phase="Odd"}': 1,
    }
    assert found["reconciler_smart_pods_pending_seconds"] == 50
    later = told(seen, looked(60))
    assert not any(value for name, value in later.items() if re.search("smart_pods_(active|pending)", name))


def test_pods_that_could_not_be_read_are_not_gone() -> None:
    found = told(looked(50, pod("a")), looked(60, unread="pods"))
    assert found['reconciler_smart_pods_active{phase="Pending"}'] == 1


def test_who_tries_another_way_waits_anew() -> None:
    again = pod("a", since=str(after(200) // 1000))
    assert told(looked(230, again))["reconciler_smart_pods_pending_seconds"] == 30
    assert told(looked(230, again))["reconciler_smart_pods_leftover"] == 0


@pytest.mark.parametrize(
    ("cycles", "left"),
    [
        pytest.param([looked(160, pod("a"))], 0, id="within its deadline and twice the interval of 30 s"),
        pytest.param([looked(161, pod("a"))], 1, id="past both"),
        pytest.param([looked(0, pod("a", "Completed")), looked(60, pod("a", "Completed"))], 0, id="ended lately"),
        pytest.param([looked(0, pod("a", "Completed")), looked(61, pod("a", "Completed"))], 1, id="ended long ago"),
        pytest.param([looked(0, pod("a", status="Failed")), looked(61, pod("a", status="Failed"))], 1, id="by itself"),
        pytest.param([looked(0, pod("a", "Failed")), looked(61)], 0, id="and gone"),
    ],
)
def test_those_are_left_over_that_nobody_cleared_away_in_time(cycles: list[CycleResult], left: int) -> None:
    assert told(*cycles)["reconciler_smart_pods_leftover"] == left


def test_how_long_is_in_time_is_for_the_pool_to_say() -> None:
    policy = POOL.format_map(WISHED).replace(
        "namespace: gpu-smart-pods}", "namespace: gpu-smart-pods, cleanupInterval: 5m}"
    )
    (desired,) = resolve(Bundle("r", (Text("a.yaml", policy.encode()),))).wishes
    assert told(looked(700, pod("a"), desired=desired))["reconciler_smart_pods_leftover"] == 0
    assert told(looked(701, pod("a"), desired=desired))["reconciler_smart_pods_leftover"] == 1


def test_a_machine_counts_once_when_it_is_first_seen_ready() -> None:
    cycles = [
        looked(0, claim("before", ready=5), claim("a"), claim("b")),
        looked(100, claim("before", ready=5), claim("a", ready=95), claim("b")),
        looked(110, unread="nodeclaims.karpenter.sh"),
        looked(120, claim("before", ready=5), claim("a", ready=95), claim("b", ready=115), claim("c", 60, 119)),
    ]
    found = told(*cycles)
    name = "reconciler_nodeclaim_provision_duration_seconds"
    assert (found[f"{name}_count"], found[f"{name}_sum"]) == (3, 95 + 115 + 59)
    assert (found[f'{name}_bucket{{le="60.0"}}'], found[f'{name}_bucket{{le="120.0"}}']) == (1, 3)


def test_alerts_name_only_figures_that_there_are() -> None:
    families = {each.name for each in Metrics().registry.collect()}
    for rule in rules():
        named = {
            re.sub(r"_(total|bucket|sum|count)$", "", each) for each in re.findall(r"\breconciler_\w+", rule["expr"])
        }
        assert named, rule["alert"]
        assert named <= families, rule["alert"]


def test_alerts_name_only_results_and_phases_that_there_are() -> None:
    metrics = Metrics()
    metrics.publish(looked(0))
    metrics.publish(msgspec.structs.replace(looked(0), trouble="x"))
    known = set(re.findall(r'="(\w+)"', metrics.text().decode()))
    for rule in rules():
        for values in re.findall(r'(?:result|phase)=~?"([^"]+)"', rule["expr"]):
            assert set(values.split("|")) <= known, rule["alert"]


def test_there_is_an_alert_for_each_thing_that_goes_wrong_and_it_says_what_to_do() -> None:
    assert len(rules()) == 8
    for rule in rules():
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
        assert rule["labels"]["severity"] in {"warning", "critical"}
