"""What must hold of guards for whatever fleet, plans and interruptions come: plans follow one another, and remember."""

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.memory import Memory
from reconciler.plan.guards.ledger import HOUR_MS
from tests.unit.plan.guards.stage import GPUS, MINUTE_MS, World

NODES = 12
VERBS = ("scale-down", "drain", "evict", "throw-out", "delete")
SIGNS = {"scale-down": "deletion-time", "drain": "draining", "delete": "disrupted"}

steps = st.lists(
    st.tuples(
        st.sampled_from(VERBS),
        st.sets(st.integers(0, NODES - 1), min_size=1, max_size=6),
        st.integers(1, 50),  # minutes to the next
        st.booleans(),  # whether what is decided shows before the next
    ),
    min_size=1,
    max_size=6,
)
limits = st.fixed_dictionaries(
    {
        "maxRemovedNodes": st.integers(0, 6),
        "maxDisruptedGPUs": st.integers(0, 6).map(lambda nodes: nodes * GPUS),
        "maxRemovedPercent": st.integers(0, 100),
    }
)


def case(busy: int, verb: str, nodes: set[int], **more: Any) -> dict[str, Any]:
    which = ",".join(map(str, sorted(nodes)))
    return {"pools": {"a100": {"nodes": NODES, "busy": busy}}, "does": [f"{verb} a100 {which}"], **more}


def later(world: World, memory: Memory, minutes: int) -> None:
    moved = Instant(world.inputs.now + minutes * MINUTE_MS)
    world.inputs = msgspec.structs.replace(world.inputs, memory=memory, now=moved)


@settings(max_examples=60, deadline=None)
@given(steps, limits, limits, st.integers(0, NODES))
def test_no_hour_and_no_plan_holds_more_than_is_allowed(
    planned: list[tuple[str, set[int], int, bool]], per_plan: dict[str, int], per_hour: dict[str, int], busy: int
) -> None:
    memory, minutes = Memory(), 0
    signs: dict[str, set[int]] = {}
    for verb, nodes, pause, shows in planned:
        given_case = case(busy, verb, nodes, guards={"fleet": {"perPlan": per_plan, "perHour": per_hour}})
        given_case["pools"]["a100"] |= {sign: ",".join(map(str, sorted(which))) for sign, which in signs.items()}
        world = World(given_case)
        later(world, memory, minutes)
        # What is written outlives the process; what is not, does not.
        made = world.planned()
        memory = msgspec.json.decode(msgspec.json.encode(made.memory), type=Memory)
        hour = [each for each in memory.marks if each.at > world.inputs.now - HOUR_MS]
        assert sum(each.goes and not each.gpus for each in hour) <= per_hour["maxRemovedNodes"]
        assert sum(each.gpus for each in hour) <= per_hour["maxDisruptedGPUs"]
        percent = per_hour["maxRemovedPercent"]
        assert sum(each.goes for each in hour) <= (max(1, percent * NODES // 100) if percent else 0)
        fresh = [each for each in memory.marks if each.at == world.inputs.now]
        assert sum(each.goes and not each.gpus for each in fresh) <= per_plan["maxRemovedNodes"]
        assert sum(each.gpus for each in fresh) <= per_plan["maxDisruptedGPUs"]
        if shows and verb in {"scale-down", "drain"}:
            went = {int(each.subject.name[5:]) for each in made.decisions if not isinstance(each.act, Hold)}
            signs[SIGNS[verb]] = signs.get(SIGNS[verb], set()) | went
        minutes += pause


@settings(max_examples=40, deadline=None)
@given(st.sampled_from(VERBS), st.sets(st.integers(0, NODES - 1), min_size=1), limits, st.integers(0, NODES))
def test_what_an_approval_covers_passes_however_the_fleet_is(
    verb: str, nodes: set[int], per_plan: dict[str, int], busy: int
) -> None:
    guards = {"fleet": {"perPlan": per_plan}}
    blocked = World(case(busy, verb, nodes, guards=guards)).planned()
    (said,) = blocked.guarded
    ceilings = {
        "maxRemovedNodes": said.needed.removed_nodes,
        "maxRemovedPercent": said.needed.removed_percent,
        "maxDisruptedGPUs": said.needed.disrupted_gpus,
    }
    given_ceilings = {key: value for key, value in ceilings.items() if value is not None}
    approvals = {"granted": {"ceilings": given_ceilings}}
    passed = World(case(busy, verb, nodes, guards=guards, approvals=approvals)).planned()
    assert not any(isinstance(each.act, Hold) for each in passed.decisions)
    other = World(case(busy, verb, nodes, guards=guards, approvals=approvals, revision="another")).planned()
    assert other.decisions == blocked.decisions


@settings(max_examples=30, deadline=None)
@given(
    st.sets(st.integers(0, NODES - 1), min_size=1),
    st.sets(st.integers(0, NODES - 1), min_size=1),
    st.integers(0, NODES),
    st.integers(0, NODES),
    st.booleans(),
)
def test_an_approval_of_objects_adds_no_more_than_its_ceilings_for_these_objects(
    edited: set[int], scaled: set[int], limit: int, ceiling: int, is_current: bool
) -> None:
    scaled = scaled - edited
    which = [",".join(map(str, sorted(each))) for each in (edited, scaled)]
    does = [f"edit a100 removed {which[0]}", *([f"scale-down a100 {which[1]} by scaling"] if scaled else [])]
    given_case: dict[str, Any] = {
        "pools": {"a100": {"nodes": NODES, "scaled": True}},
        "guards": {"fleet": {"perPlan": {"maxRemovedNodes": limit}}},
        "does": does,
    }
    digest = "now" if is_current else "0"
    granted = {"objects": {"GpuPool/a100": digest}, "ceilings": {"maxRemovedNodes": ceiling}}
    made = World({**given_case, "approvals": {"granted": granted}}).planned()
    went = not any(isinstance(each.act, Hold) for each in made.decisions)
    is_within = len(edited) + len(scaled) <= limit
    is_covered = is_current and len(edited) <= ceiling and len(scaled) <= limit
    assert went == (is_within or is_covered)


@settings(max_examples=40, deadline=None)
@given(
    st.sets(st.integers(0, NODES - 1), min_size=1),
    st.integers(0, 59),
    st.sets(st.sampled_from(["nodes", "pods", "nodeclaims.karpenter.sh"])),
)
def test_a_partial_read_never_lowers_a_count(marked: set[int], minutes: int, unread: set[str]) -> None:
    before = [{"pool": "a100", "nodes": ",".join(map(str, marked)), "minutes": minutes}]
    guards = {"fleet": {"perHour": {"maxRemovedNodes": 3, "maxDisruptedGPUs": 3}}}
    pools = {"a100": {"nodes": NODES, "busy": 3, "disrupted": "0, 5"}}
    whole = World({"pools": pools, "guards": guards, "before": before}).planned()
    partly = World({"pools": pools, "guards": guards, "before": before, "unread": sorted(unread)})
    later(partly, whole.memory, 0)
    (first,), (second,) = whole.guarded, partly.planned().guarded
    for before_read, after_read in zip(first.counts, second.counts, strict=True):
        assert after_read.counted >= before_read.counted
