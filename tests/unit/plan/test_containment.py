"""A planner that raises stops neither other planners nor other pools, and is told with what it raised."""

from collections.abc import Callable
from importlib import import_module

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Decision, Hold, Label, Reason, Ref
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import BrokenInvariant, check
from reconciler.plan.containment import PlannerFailed, planning_for
from reconciler.plan.draft import Draft, Planner, Verdict
from reconciler.plan.drain.planner import drain
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.manifests.planner import manifests
from reconciler.plan.planner import PLANNERS, plan
from reconciler.plan.scaling.planner import scaling
from reconciler.plan.scaling.reasons import NodeOfProvisioner
from reconciler.plan.smart_pods.planner import smart_pods
from reconciler.report.applied import lines
from reconciler.report.sentences import sentence
from reconciler.serve.metrics import Metrics
from tests.unit.plan.drain.stage import World as DrainWorld
from tests.unit.plan.drawn_fleets import Drawn
from tests.unit.plan.scaling.stage import World

TWO_POOLS = {
    "nodes": 10,
    "busy": "0-6",
    "also": {"b100": {"nodes": 10, "busy": "0-6"}, "c100": {"nodes": 10, "busy": "0-6"}},
}

NOTHING: dict[str, object] = {}


WHY = Reason(NodeOfProvisioner("n", Ref("NodeProvisioner", "", "a100")))


def planned(inputs: Inputs, *planners: Planner) -> Plan:
    """No invariant is broken."""
    fleet = Fleet(inputs.observed)
    made = plan(inputs, fleet, planners or None)
    check(inputs, fleet, made)
    return made


def raising(*pools: str) -> Planner:
    """Labels a node of each pool, and raises at some; at the empty name as a whole."""

    def planted(inputs: Inputs, draft: Draft) -> Verdict:
        decisions = []
        if "" in pools:
            raise OverflowError("Python int too large to convert to C long")
        for pool in (each.name for each in inputs.desired.pools if each.name not in draft.left_out):
            with planning_for(pool):
                if pool in pools:
                    raise OverflowError("Python int too large to convert to C long")
                node = draft.fleet.nodes_of(pool)[0]
                label, subject = Label(labels=(("x", "1"),)), Ref("Node", "", node.name, node.metadata.uid)
                decisions.append(Decision("planted", subject, label, WHY, pool))
        return Verdict(tuple(decisions))

    return planted


def of(made: Plan, planner: str, pool: str) -> list[str]:
    """What a planner does in a pool."""
    acts = (each for each in made.decisions if each.planner == planner and each.pool == pool)
    return [type(each.act).__name__ for each in acts]


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("pools", [("a100",), ("b100", "c100"), ("",)])
def test_a_planner_that_raises_stops_no_other_planner_at_other_pools(place: int, pools: tuple[str, ...]) -> None:
    inputs = World(TWO_POOLS).inputs
    others: list[Planner] = [manifests, scaling, drain, smart_pods]
    without = planned(inputs, *others)
    made = planned(inputs, *others[:place], raising(*pools), *others[place:])
    assert [each.pool for each in made.troubles] == list(pools)
    for pool in ("a100", "b100", "c100"):
        if pool not in pools and "" not in pools:
            assert of(made, "scaling", pool) == of(without, "scaling", pool)
            assert of(made, "planted", pool) == ["Label"]


@pytest.mark.parametrize(("pool", "touched"), [("a100", {"b100", "c100"}), ("", set())])
def test_what_a_planner_that_raises_would_touch_is_held_with_the_trouble(pool: str, touched: set[str]) -> None:
    made = planned(World(TWO_POOLS).inputs, raising(pool), scaling)
    acts = [each for each in made.decisions if not isinstance(each.act, Hold)]
    assert {each.pool for each in acts} == touched
    held = next(each for each in made.decisions if isinstance(each.reason.facts, PlannerFailed))
    assert (held.planner, held.subject) == ("planted", Ref("GpuPool", "", "a100"))
    assert "OverflowError: Python int too large to convert to C long, at test_containment.py:" in sentence(held.reason)


def test_a_later_planner_takes_nothing_away_where_an_earlier_one_raised() -> None:
    world = {"nodes": {"a": {"pods": ["web 1"], "candidate": 900}, "b": {"pods": ["web 5"]}}}
    assert of(planned(DrainWorld(world).inputs, drain), "drain", "a100") == ["Taint"]
    assert of(planned(DrainWorld(world).inputs, raising("a100"), drain), "drain", "a100") == ["Hold"]


@pytest.mark.parametrize(
    ("planner", "target"),
    [
        ("scaling", "reconciler.plan.scaling.planner.evaluate"),
        ("scaling", "reconciler.plan.scaling.planner.PoolView"),
        ("scaling", "reconciler.plan.scaling.demand.demands.shapes_of"),
        ("smart_pods", "reconciler.plan.smart_pods.planner.request_nodes"),
        ("drain", "reconciler.plan.drain.context._looked_at"),
        ("drain", "reconciler.plan.drain.candidates.untouchable"),
    ],
)
def test_each_planner_goes_on_at_other_pools_when_it_raises_at_one(
    planner: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = 0
    for seed in range(30):
        inputs = Drawn(seed).inputs()
        with monkeypatch.context() as patched:
            _break_at(patched, target, "a")
            made = planned(inputs)
        troubled = {(each.planner, each.pool) for each in made.troubles}
        assert troubled <= {(planner, "a")}, (seed, made.troubles)
        raised += bool(troubled)
        if troubled:
            acts = [each for each in made.decisions if (each.planner, each.pool) == (planner, "a")]
            assert all(isinstance(each.act, Hold) for each in acts)
    assert raised


def _break_at(patched: pytest.MonkeyPatch, target: str, pool: str) -> None:
    """Raises wherever one of the arguments is of the pool."""
    module, _, name = target.rpartition(".")
    real: Callable[..., object] = import_module(module).__dict__[name]

    def broken(*arguments: object, **named: object) -> object:
        if any(_is_of(each, pool) for each in arguments):
            raise ZeroDivisionError("planted")
        return real(*arguments, **named)

    patched.setattr(target, broken)


def _is_of(argument: object, pool: str) -> bool:
    found = argument if isinstance(argument, Declared) else getattr(argument, "pool", "")
    return bool(found == pool or getattr(found, "name", "") == pool)


def test_the_same_trouble_gives_the_same_plan_and_is_logged_once_and_counted_each_time() -> None:
    inputs = World(TWO_POOLS).inputs
    made = planned(inputs, raising("b100"), scaling)
    assert made == planned(inputs, raising("b100"), scaling)
    (trouble,) = made.troubles
    cycled = CycleResult(inputs.now, inputs, plan=made)
    (line,) = [each for each in lines(None, cycled) if each.event == "planner-failed"]
    assert (line.level, dict(line.fields)["pool"], dict(line.fields)["error"]) == ("error", "b100", trouble.error)
    assert [each for each in lines(cycled, cycled) if each.event == "planner-failed"] == []
    metrics = Metrics()
    metrics.publish(cycled)
    metrics.publish(cycled)
    assert b'reconciler_planner_failures_total{planner="planted",pool="b100"} 2.0' in metrics.text()


def test_a_planner_that_raises_for_ever_more_pools_ends() -> None:
    inputs = World(TWO_POOLS).inputs
    pools = tuple(msgspec.structs.replace(inputs.desired.pools[0], name=f"p{each:03}") for each in range(40))
    many = msgspec.structs.replace(inputs, desired=msgspec.structs.replace(inputs.desired, pools=pools))
    made = planned(many, raising(*(each.name for each in pools)))
    assert made.troubles[-1].pool == ""


def test_all_planners_are_contained() -> None:
    found = {each.__name__ for each in PLANNERS}  # type: ignore[attr-defined]
    assert found == {"manifests", "gpu", "pressure", "scaling", "drain", "smart_pods"}


@pytest.mark.parametrize(
    ("part", "target"),
    [
        ("guards", "reconciler.plan.planner.judge"),
        ("memory", "reconciler.plan.drain.feature.remembered"),
        ("memory", "reconciler.plan.planner.one_action_each"),
        ("memory", "reconciler.plan.planner.imagined_after"),
    ],
)
def test_where_a_part_raises_that_all_planners_share_nothing_is_done_and_nothing_forgotten(
    part: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = World(TWO_POOLS).inputs
    assert any(not isinstance(each.act, Hold) for each in planned(inputs).decisions)
    monkeypatch.setattr(target, lambda *_: NOTHING["x"])
    made = planned(inputs)
    assert [each.planner for each in made.troubles] == [part]
    assert all(isinstance(each.act, Hold) for each in made.decisions)
    assert made.memory == inputs.memory
    assert any(isinstance(each.reason.facts, PlannerFailed) for each in made.decisions)


def test_a_decision_at_which_the_guards_raise_is_held_and_other_pools_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs, before = World(TWO_POOLS).inputs, Freezes.why_still
    acted = [each.subject for each in planned(inputs).decisions if not isinstance(each.act, Hold)]
    assert acted[0].name.startswith("a100")

    def why_still(self: Freezes, decision: Decision, nodes: frozenset[str]) -> object:
        return NOTHING["x"] if decision.subject == acted[0] else before(self, decision, nodes)

    monkeypatch.setattr("reconciler.plan.guards.admission.Freezes.why_still", why_still)
    made = plan(inputs, Fleet(inputs.observed))
    left = [each for each in made.decisions if not isinstance(each.act, Hold)]
    assert acted[0] not in {each.subject for each in left}
    assert {each.pool for each in left} == {"b100", "c100"}
    assert [(each.planner, each.error) for each in made.troubles] == [("guards", "KeyError: 'x'")]


def test_an_invariant_that_can_not_be_judged_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = World(TWO_POOLS).inputs
    fleet = Fleet(inputs.observed)
    made = plan(inputs, fleet)
    monkeypatch.setattr("reconciler.plan.check.why_untouchable", lambda *_: NOTHING["x"])
    with pytest.raises(BrokenInvariant, match="the check raised KeyError: 'x'"):
        check(inputs, fleet, made)
