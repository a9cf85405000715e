"""The gauge of decisions: by planner, action and code of the reason."""

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Decision, Delete, Hold, Reason, Ref
from reconciler.model.plan.inputs import CycleResult
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.plan.drain.codes.emptying import EmptiedNodeWaits
from reconciler.plan.guards.reasons import OverPlanLimit
from reconciler.plan.scaling.reasons import EmptyNodeDeleted
from reconciler.serve.metrics import Metrics

NOW = Instant(1_000)
WAITS = Reason(EmptiedNodeWaits(node="n", time=NOW))
DELETED = Reason(EmptyNodeDeleted(node="n", time=NOW))
OVER = Reason(OverPlanLimit(guard=Ref("ChangeGuard", "", "prod"), held=DELETED))


def held(planner: str, node: str, reason: Reason) -> Decision:
    return Decision(planner, Ref("Node", "", node), Hold(), reason)


def series(metrics: Metrics, *decisions: Decision) -> list[str]:
    """The series after a cycle with these decisions."""
    metrics.publish(CycleResult(NOW, plan=Plan("", decisions, (), Memory(), Hints(), None)))
    return _of_decisions(metrics)


def _of_decisions(metrics: Metrics) -> list[str]:
    return sorted(each for each in metrics.text().decode().splitlines() if each.startswith("reconciler_decisions{"))


def test_holds_count_by_planner_and_reason() -> None:
    found = series(
        Metrics(),
        held("drain", "a", WAITS),
        held("drain", "b", WAITS),
        held("drain", "c", OVER),
        held("scaling", "d", OVER),
    )
    assert found == [
        'reconciler_decisions{action="hold",planner="drain",reason="EmptiedNodeWaits"} 2.0',
        'reconciler_decisions{action="hold",planner="drain",reason="OverPlanLimit"} 1.0',
        'reconciler_decisions{action="hold",planner="scaling",reason="OverPlanLimit"} 1.0',
    ]


def test_an_action_and_an_action_in_observe_mode_are_no_holds() -> None:
    found = series(
        Metrics(),
        Decision("scaling", Ref("Node", "", "a"), Delete(), DELETED),
        Decision("scaling", Ref("Node", "", "b"), Delete(), DELETED, would=True),
    )
    assert found == [
        'reconciler_decisions{action="delete",planner="scaling",reason="EmptyNodeDeleted"} 1.0',
        'reconciler_decisions{action="would",planner="scaling",reason="EmptyNodeDeleted"} 1.0',
    ]


def test_a_reason_without_holds_becomes_zero_and_a_cycle_without_a_plan_keeps_the_values() -> None:
    metrics = Metrics()
    before = series(metrics, held("drain", "a", WAITS))
    metrics.publish(CycleResult(NOW, trouble="nobody answers"))
    assert _of_decisions(metrics) == before
    assert series(metrics) == ['reconciler_decisions{action="hold",planner="drain",reason="EmptiedNodeWaits"} 0.0']
