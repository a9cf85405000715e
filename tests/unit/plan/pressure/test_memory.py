"""Migrations in the memory: what is kept without new plans, in failed plans, and what invariants tell."""

from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Evict
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import BrokenInvariant, check
from reconciler.plan.planner import plan
from reconciler.plan.pressure import node_migrations
from reconciler.plan.pressure.memory import FailedMigration, MigrationMemory
from reconciler.plan.pressure.planner import pressure
from reconciler.plan.pressure.reasons import PLANNER
from tests.unit.plan.pressure.stage import World, migrations_after
from tests.unit.plan.scaling.stage import NOW, after

Json = dict[str, Any]
PODS = {"p": {"has": 4, "load": 1}, "q": {"has": 5, "load": 2}}
NODES = {"a": {"pods": PODS}, "b": {}}
SENT = {"p": {"to": "b", "since": 60, "evicted": 60}}
NOTIFIED = {"p": {"to": "b", "since": 60}}


def planned(inputs: Inputs) -> Plan:
    return plan(inputs, Fleet(inputs.observed), (pressure,))


@pytest.mark.parametrize("case", [{"state": "none"}, {"policy": "none"}, {"policy": {"suspend": True}}])
def test_without_new_plans_only_requested_evictions_are_remembered(case: Json) -> None:
    assert migrations_after(World({"nodes": NODES, "migrations": SENT, **case}).planned()) == {"p": "b"}
    assert migrations_after(World({"nodes": NODES, "migrations": NOTIFIED, **case}).planned()) == {}
    world = World({"nodes": NODES, "migrations": SENT, **case})
    later = msgspec.structs.replace(world.inputs, now=after(3_600))
    assert migrations_after(planned(later)) == {}


@pytest.mark.parametrize("how", [{"unread": ["pods"]}, {"quiet": ["pods"]}])
def test_while_the_cluster_is_not_seen_the_memory_stays(how: Json) -> None:
    for migrations in (SENT, NOTIFIED):
        world = World({"nodes": NODES, "migrations": migrations, "failed": {"q": {"at": 60}}, **how})
        assert world.planned().memory == world.inputs.memory


def test_a_pool_that_cannot_be_planned_keeps_its_migrations(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a bug")

    monkeypatch.setattr(node_migrations.NodeMigrations, "decide", broken)
    for migrations in (SENT, NOTIFIED):
        world = World({"nodes": NODES, "migrations": migrations})
        made = planned(world.inputs)
        assert [each.pool for each in made.troubles] == ["a100"]
        assert migrations_after(made) == {"p": "b"}


def test_a_back_off_doubles_up_to_a_day() -> None:
    minutes = [(FailedMigration("u", "team/p", Instant(0), times).until) // 60_000 for times in (1, 2, 3, 8, 9, 50)]
    assert minutes == [10, 20, 40, 1_280, 1_440, 1_440]


def test_a_failure_is_forgotten_with_its_pod_or_after_a_day() -> None:
    def failed(inputs: Inputs) -> list[str]:
        return [each.pod for each in planned(inputs).memory.section(PLANNER, MigrationMemory).failed]

    world = World({"nodes": NODES, "failed": {"p": {"at": 60}, "gone": {"at": 60}}})
    assert failed(world.inputs) == ["team/p"]
    assert failed(msgspec.structs.replace(world.inputs, now=after(2 * 86_400))) == []


def test_a_memory_that_cannot_be_read_is_an_empty_one() -> None:
    world = World({"nodes": NODES})
    memory = msgspec.structs.replace(world.inputs.memory, sections={PLANNER: {"migrations": "?"}})
    assert migrations_after(planned(msgspec.structs.replace(world.inputs, memory=memory))) == {"p": "b"}


def test_an_eviction_without_pressure_or_without_memory_breaks_an_invariant() -> None:
    world = World({"nodes": NODES})
    made = world.planned()
    assert any(isinstance(each.act, Evict) for each in made.decisions)
    forgotten = msgspec.structs.replace(made, memory=world.inputs.memory)
    with pytest.raises(BrokenInvariant, match="each migration is remembered before"):
        check(world.inputs, Fleet(world.inputs.observed), forgotten)
    calm = World({"nodes": {"a": {"cpu": 40, "pods": PODS}, "b": {}}}).inputs
    with pytest.raises(BrokenInvariant, match="only from nodes under pressure"):
        check(calm, Fleet(calm.observed), made)
    for case in ({"policy": "none"}, {"policy": {"migration": "None"}}):
        others = World({"nodes": NODES, **case}).inputs
        with pytest.raises(BrokenInvariant, match="only from nodes under pressure"):
            check(others, Fleet(others.observed), made)


def test_an_idle_plan_builds_no_snapshot() -> None:
    inputs = World({"nodes": {"a": {"pods": {"p": {"has": 4, "load": 1}}}, "b": {}}}).inputs
    fleet = Fleet(inputs.observed)
    plan(inputs, fleet, (pressure,))
    assert "snapshot" not in fleet.__dict__
    assert inputs.now == NOW
