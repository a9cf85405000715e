"""Gauges of pressure: what is leaving, and what is not known."""

import msgspec

from reconciler.model.plan.inputs import CycleResult
from reconciler.plan.pressure.gauges import GAUGES
from tests.unit.plan.pressure.stage import World
from tests.unit.plan.scaling.stage import NOW

NODES = {"a": {"pods": {"p": {"has": 4, "load": 1}, "q": {"has": 5, "load": 2}}}, "b": {}}


def values(cycled: CycleResult) -> list[object]:
    return [each.values(cycled) for each in GAUGES]


def test_nodes_and_migrations_are_counted_by_pool() -> None:
    world = World({"nodes": NODES})
    made = world.planned()
    assert values(CycleResult(NOW, world.inputs, made)) == [{("a100",): 1}, {("a100",): 1}]
    world = World({"nodes": NODES, "pool": {"mode": "Observe"}})
    assert values(CycleResult(NOW, world.inputs, world.planned())) == [{("a100",): 1}, {}]


def test_without_a_plan_or_a_state_the_gauges_keep_their_values() -> None:
    world = World({"nodes": NODES})
    assert values(CycleResult(NOW)) == [None, None]
    unknown = msgspec.structs.replace(world.inputs, pressure=None)
    assert values(CycleResult(NOW, unknown, world.planned())) == [None, {("a100",): 1}]


def test_a_pod_that_is_gone_is_not_leaving() -> None:
    world = World({"nodes": {"a": {}, "b": {}}, "migrations": {"p": {"to": "b", "evicted": 40, "gone": 10}}})
    assert values(CycleResult(NOW, world.inputs, world.planned())) == [{}, {}]
