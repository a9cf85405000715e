"""Which nodes are drained, when, and what becomes of their pods: the tables of cases, and what always holds."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import Evict, Facts, Reason
from reconciler.model.plan.drain_memory import DrainMemory
from reconciler.model.plan.evaluation import DrainReport
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.plan.drain.codes.blockers import GangActedOn, NotEvaluated
from reconciler.plan.drain.codes.emptying import PodLeaves
from reconciler.plan.drain.memory import remembered
from reconciler.plan.drain.reasons import PLANNER, REASONS
from reconciler.plan.reason_catalog import decoded
from reconciler.report.decision_line import decision_line
from reconciler.report.sentences import sentence
from tests.unit.plan.decision_lines import lines_of
from tests.unit.plan.drain.stage import World, homes, tables
from tests.unit.plan.scaling.stage import after

CASES = tables()


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    world = World(case)
    made, now = world.planned(), world.inputs.now
    own = [each for each in made.decisions if each.planner == PLANNER]
    weighed = {each.node: each.reason.code for each in made.report(DrainReport).weighed}
    sentences = [sentence(each) for each in reasons_of(made)]
    assert lines_of(own) == case.get("does", []), sentences
    assert {node: weighed.get(node) for node in case.get("weighs", {})} == case.get("weighs", {}), sentences
    for words in case.get("says", []):
        assert any(words in each for each in sentences), sentences
    for uid, node in case.get("homes", {}).items():
        assert homes(world, made).get(f"uid-{uid}") == node, made.hints
    if "keeps_in_mind" in case:
        found, expected = in_mind(made.memory.drained), case["keeps_in_mind"]
        assert {key: found[key] for key in found if key != "begun" or key in expected} == expected
    if "fails" in case:
        tried = made.hints.tried.items()
        assert {name: [(now - each.at) // 1_000, (now - each.since) // 1_000] for name, each in tried} == case["fails"]
    if "wakes" in case:
        assert made.wake_at is not None
        assert (made.wake_at - now) // 1_000 == case["wakes"]


def reasons_of(made: Plan) -> list[Reason]:
    """Of what is decided, and of what was looked at."""
    decided = [each.reason for each in made.decisions if each.planner == PLANNER]
    return decided + [each.reason for each in made.report(DrainReport).weighed]


def in_mind(drained: Any) -> dict[str, Any]:
    """What is remembered, as names."""
    found: dict[str, Any] = {
        "batch": [name for name, _ in drained.batch.nodes] if drained.batch else [],
        "evicted": [each.title.partition("/")[2] for each in drained.evicted],
        "emptied": [each.node for each in drained.emptied],
        "setbacks": {each.node: each.times for each in drained.setbacks},
        "moved": [each.owner.removeprefix("team/owner-") for each in drained.moved],
        "in_vain": {each.pool: each.times for each in drained.in_vain},
        "begun": {each.pool: list(msgspec.structs.astuple(each.load)) for each in drained.begun},
        "begin_at": drained.begin_at,
    }
    return {key: value for key, value in found.items() if value}


LLAMA = {"apps": {"web": {"claim": "one"}}, "claims": {"one": {"count": 2, "gangRef": "llama"}}}
# Why a gang waits, or a node is needed again, where nothing is decided that a table has not.
CAUSES: dict[str, tuple[dict[str, Any], str]] = {
    "a gang waits for a node of another batch": (
        {
            "nodes": {
                "a": {"pods": ["web 2"], "draining": 60},
                "b": {"pods": ["web 2"], "draining": 5},
                "c": {"pods": ["job 1"], "candidate": 900},
                "d": {"pods": ["job 4"]},
            },
            "remembers": {"batch": {"ago": 5, "nodes": ["b", "c"]}},
            **LLAMA,
        },
        "the taint has not been observed on all nodes of the gang yet",
    ),
    "who was not asked with the others of a gang waits for the rest": (
        {
            "nodes": {"a": {"pods": ["web 2", "web 2"], "draining": 30}, "b": {"pods": ["job 2"]}},
            "remembers": {"evicted": {"web-9 2": ["a", 20], "web-0 2": ["a", 20]}},
            **LLAMA,
        },
        "other pods of the gang are already leaving",
    ),
    "an emptied node stays where its pool keeps nodes warm": (
        {
            "nodes": {"a": {"draining": 60}, "b": {"pods": ["web 5"]}},
            "keep": {"warmNodes": 1},
            "scales": True,
            "remembers": {"emptied": {"a": 60}},
        },
        "the pool has too few warm nodes",
    ),
}


@pytest.mark.parametrize("name", CAUSES)
def test_the_cause_is_told(name: str) -> None:
    case, words = CAUSES[name]
    sentences = [sentence(each) for each in reasons_of(World(case).planned())]
    assert any(f"({words})" in each for each in sentences), sentences


def test_each_reason_is_shown_by_a_case() -> None:
    shown: set[type[Facts]] = {GangActedOn}  # no planner before drains acts on a pod of a gang
    for case in (*CASES.values(), *(case for case, _ in CAUSES.values())):
        made = World(case).planned()
        shown |= {type(facts) for each in reasons_of(made) for facts in with_causes(each)}
    assert set(REASONS) <= shown


@pytest.mark.parametrize("name", sorted(CASES)[::7])
def test_each_reason_is_read_as_it_was_written(name: str) -> None:
    for reason in reasons_of(World(CASES[name]).planned()):
        assert decoded(msgspec.json.encode(reason), Reason) == reason


def with_causes(reason: Reason) -> Iterator[Facts]:
    """Its facts, and those of the reasons that it gives as its cause."""
    yield reason.facts
    for fact in reason.facts.fields().values():
        if isinstance(fact, Reason):
            yield from with_causes(fact)


def test_where_an_evicted_pod_was_to_go_is_remembered_for_as_long_as_it_is_of_use() -> None:
    nodes = {"a": {"pods": ["web 1"], "draining": 60}, "b": {"pods": ["web 5"]}}
    first = World({"nodes": nodes})
    (evicted,) = first.planned().memory.drained.evicted
    assert (evicted.home, bool(evicted.pod)) == ("b", True)
    for seconds, home in ((60, "b"), (61, "")):
        later = World({"nodes": nodes, "policy": {"recentEvictionSeconds": 30}, "apps": {"web": {"budget": 0}}})
        memory = Memory(drained=DrainMemory(evicted=(evicted,)))
        later.inputs = msgspec.structs.replace(later.inputs, memory=memory, now=after(seconds))
        (kept,) = later.planned().memory.drained.evicted
        assert (kept.home, bool(kept.pod)) == (home, bool(home))


def test_what_is_remembered_of_evictions_follows_from_what_is_done() -> None:
    """Whatever reason is given for it."""
    world = World(CASES["a gang leaves at once, by one decision"])
    made, fleet = world.planned(), Fleet(world.inputs.observed)
    acted = [each for each in made.decisions if isinstance(each.act, Evict)]
    changed = [msgspec.structs.replace(each, reason=Reason(PodLeaves(pods=1, node="a"))) for each in acted]
    before, after_change = (remembered(world.inputs, fleet, each, DrainMemory()) for each in (acted, changed))
    assert before.evicted == after_change.evicted
    assert all(each.home and each.gang for each in before.evicted)


def test_pods_that_never_end_are_not_waited_for_for_ever() -> None:
    said = ("waits for the termination", "still exist")
    for seconds, done, why in zip(
        (719, 720),
        ("hold Node/a until +1s: PodLeaves", "untaint Node/a gpu.scheduling/draining:NoSchedule: GivenBack"),
        said,
        strict=True,
    ):
        world = World({"nodes": {"a": {"pods": ["web 1 leaving"], "draining": 60}, "b": {"pods": ["web 5"]}}})
        world.inputs = msgspec.structs.replace(world.inputs, now=after(seconds))
        (decision,) = world.planned().decisions
        assert decision_line(decision, world.inputs.now) == done
        assert why in sentence(decision.reason)


def test_what_is_forgotten_is_not_brought_back_by_a_policy_that_remembers_for_longer() -> None:
    nodes = {"a": {"draining": 60}, "b": {"pods": ["job 3"]}, "c": {"pods": ["job 3"]}}
    for seconds, is_candidate in ((599, False), (600, True)):
        case = {"nodes": nodes, "remembers": {"evicted": {"web-9 6": ["a", seconds]}}, "apps": {"web": {"replicas": 1}}}
        brief = World({**case, "policy": {"recentEvictionSeconds": 599}})
        longer = World({**case, "policy": {"recentEvictionSeconds": 3_600}})
        memory = brief.planned().memory
        longer.inputs = msgspec.structs.replace(longer.inputs, memory=memory, now=after(1))
        assert any(each.is_candidate for each in longer.planned().report(DrainReport).weighed) is is_candidate


def test_where_there_is_never_time_for_all_each_has_its_turn_however_many_are_candidates() -> None:
    names, timed, begin_at, looked_at = [f"n{number:02}" for number in range(15)], dict[str, int](), "", Counter[str]()
    takers = {f"z{number}": {"pods": ["web 5"]} for number in range(5)}
    for plan in range(12):
        nodes = {each: {"pods": ["web 1"], **({"candidate": timed[each]} if each in timed else {})} for each in names}
        closed = {"windows": [{"schedule": "0 20 * * *", "duration": "1h"}]}
        remembers = {"remembers": {"begin_at": begin_at}} if begin_at else {}
        made = World({"nodes": nodes | takers, "budget": 0, "policy": closed, **remembers}).planned()
        begin_at = made.memory.drained.begin_at
        looked_at.update(
            each.node for each in made.report(DrainReport).weighed if not isinstance(each.reason.facts, NotEvaluated)
        )
        timed |= {each.node: 10 * plan for each in made.report(DrainReport).weighed if each.is_candidate}
    assert min(looked_at[each] for each in names) >= 6


@pytest.mark.parametrize("name", sorted(CASES)[::7])
def test_what_is_written_down_and_read_again_gives_the_same_plan(name: str) -> None:
    world = World(CASES[name])
    read = msgspec.json.decode(msgspec.json.encode(world.inputs.memory), type=Memory)
    assert read == world.inputs.memory
    again = World(CASES[name])
    again.inputs = msgspec.structs.replace(again.inputs, memory=read)
    assert again.planned() == world.planned()
