"""What holds of migrations in any fleet."""

from collections import Counter
from random import Random
from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import Evict, Hold
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.pressure import ElasticPod, LedgerPod
from reconciler.plan.check import check
from reconciler.plan.planner import plan
from reconciler.plan.pressure.memory import MigrationMemory
from reconciler.plan.pressure.planner import pressure
from reconciler.plan.pressure.reasons import PLANNER
from tests.unit.plan.pressure.stage import World, migrations_after
from tests.unit.plan.scaling.stage import after

Json = dict[str, Any]
APPS = ("web", "api")
NODES: list[Json] = [{}, {}, {}, {"cordoned": True}, {"draining": 60}, {"without": True}]
TRAITS: list[Json] = [
    *({}, {}, {}),
    {"leaving": True},
    {"do_not_disrupt": "true"},
    {"checkpoint": "5m"},
    {"unobserved": True},
    {"safe": "false"},
]


def drawn(seed: int) -> Json:
    random = Random(seed)
    nodes: dict[str, Json] = {}
    number = 0
    for name in "abcde"[: random.randint(2, 5)]:
        pods: dict[str, Json] = {}
        for _ in range(random.choice([0, 1, 2, 4])):
            number += 1
            pods[f"p{number}"] = _pod(random)
        nodes[name] = {
            "pods": pods,
            **random.choice([{}, {}, {}, {"cordoned": True}, {"draining": 60}, {"without": True}]),
        }
    return {"nodes": nodes, "budgets": {app: random.choice([0, 1, 2]) for app in APPS if random.random() < 0.5}}


def _pod(random: Random) -> Json:
    words: Json = {"has": random.choice([1, 2, 3, 5]), "app": random.choice(APPS)}
    if random.random() < 0.8:
        words["load"] = random.choice([0, 0.5, 1])
    words |= random.choice([{}, {}, {"lacks": 2}, {"lacks": 0.25}, {"plain": True}, {"silent": True}])
    return words | random.choice(TRAITS)


@pytest.mark.parametrize("part", range(6))
def test_migrations_keep_all_limits(part: int) -> None:
    for seed in range(part * 60, part * 60 + 60):
        case = drawn(seed)
        world = World(case)
        made = world.planned()
        said = {pod: words for node in case["nodes"].values() for pod, words in node["pods"].items()}
        evicted = [each for each in made.decisions if isinstance(each.act, Evict)]
        spent = Counter(said[each.subject.name]["app"] for each in evicted)
        assert all(spent[app] <= allowed for app, allowed in case["budgets"].items()), seed
        for each in evicted:
            words = said[each.subject.name]
            assert not {"plain", "leaving", "do_not_disrupt", "checkpoint", "unobserved", "safe"} & words.keys(), seed
        moves = migrations_after(made)
        assert {each.subject.name for each in made.decisions if not isinstance(each.act, Hold)} <= moves.keys()
        for name, node in case["nodes"].items():
            arrivals = [said[pod]["has"] for pod, to in moves.items() if to == name]
            there = sum(words["has"] for words in node["pods"].values())
            assert not arrivals or there + sum(arrivals) <= 8, seed
            assert not arrivals or not {"cordoned", "draining", "without"} & node.keys(), seed


@pytest.mark.parametrize("part", range(3))
def test_the_next_plan_accounts_for_migrations_once(part: int) -> None:
    for seed in range(part * 60, part * 60 + 60):
        world = World(drawn(seed))
        first = world.planned()
        inputs = msgspec.structs.replace(world.inputs, memory=first.memory, now=after(1))
        second = planned(inputs)
        assert migrations_after(second) == migrations_after(first), seed


def test_the_order_of_objects_changes_nothing() -> None:
    for seed in range(80):
        inputs = World(drawn(seed)).inputs
        expected = planned(inputs)
        random, state, observed = Random(seed), inputs.pressure, inputs.observed
        assert state is not None
        shuffled = [msgspec.structs.replace(each, pods=mixed(random, each.pods)) for each in state.nodes]
        again = msgspec.structs.replace(
            inputs,
            pressure=msgspec.structs.replace(state, nodes=mixed(random, shuffled)),
            observed=msgspec.structs.replace(
                observed, nodes=mixed(random, observed.nodes), pods=mixed(random, observed.pods)
            ),
        )
        assert planned(again).digest == expected.digest, seed


def test_a_pod_that_is_gone_gives_its_pressure_back_once() -> None:
    """Pods leave one plan after the other, until nothing is left to do; no pod is chosen twice."""
    for seed in range(60):
        world = World(drawn(seed) | {"budgets": {}})
        inputs, seen = world.inputs, Counter[str]()
        for step in range(12):
            made = planned(msgspec.structs.replace(inputs, now=after(step)))
            gone = {each.subject.uid for each in made.decisions if isinstance(each.act, Evict)}
            seen.update(gone)
            inputs = without(inputs, gone)
            inputs = msgspec.structs.replace(inputs, memory=made.memory)
        assert not seen or max(seen.values()) == 1
        section = inputs.memory.section(PLANNER, MigrationMemory)
        assert all(each.gone_at is not None for each in section.migrations if each.evicted_at is not None)


def planned(inputs: Inputs) -> Any:
    fleet = Fleet(inputs.observed)
    made = plan(inputs, fleet, (pressure,))
    check(inputs, fleet, made)
    return made


def mixed(random: Random, objects: Any) -> Any:
    return tuple(random.sample(list(objects), len(objects)))


def without(inputs: Inputs, gone: set[str]) -> Inputs:
    """As if these pods had ended."""
    state = inputs.pressure
    assert state is not None

    def stay(pods: tuple[LedgerPod, ...]) -> tuple[LedgerPod, ...]:
        return tuple(each for each in pods if each.uid not in gone or not isinstance(each, ElasticPod))

    nodes = tuple(msgspec.structs.replace(each, pods=stay(each.pods)) for each in state.nodes)
    pods = tuple(each for each in inputs.observed.pods if each.metadata.uid not in gone)
    return msgspec.structs.replace(
        inputs,
        pressure=msgspec.structs.replace(state, nodes=nodes),
        observed=msgspec.structs.replace(inputs.observed, pods=pods),
    )
