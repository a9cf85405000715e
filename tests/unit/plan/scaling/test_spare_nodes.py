"""The spare nodes of a pool: neither scaling nor drains go below them, and nothing is bought above maxSize."""

from typing import Any

import hypothesis.strategies as some
from hypothesis import given, settings

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.plan.evaluation import ScalingReport
from reconciler.model.plan.plan import Plan
from reconciler.plan.draft import leaves_after
from reconciler.plan.nodes.ownership import untouchable
from tests.unit.plan.drain.stage import World as DrainWorld
from tests.unit.plan.scaling.stage import World

SIZES = {
    "minSize": some.integers(0, 3),
    "maxSize": some.integers(3, 12),
    "minGPUUtilizationPercent": some.sampled_from([50, 80, 100]),
    "minUnutilizedGPUNodes": some.integers(0, 3),
    "warmNodes": some.integers(0, 3),
    "schedules": some.sampled_from([[], [{"schedule": "0 8 * * *", "duration": "1h", "warmNodes": 3, "minSize": 2}]]),
}


def which(numbers: set[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


@some.composite
def pools(draw: some.DrawFn) -> dict[str, Any]:
    nodes = draw(some.integers(0, 10))
    sets = some.sets(some.integers(0, max(0, nodes - 1)), max_size=nodes)
    busy, marked, disrupted, cordoned = (draw(sets) if nodes else set() for _ in range(4))
    marks = {str(at): draw(some.sampled_from(["soft 300", "soft 20", "hard 0"])) for at in sorted(marked - disrupted)}
    return {
        "nodes": nodes,
        "busy": which(busy),
        "marked": marks,
        "disrupted": which(disrupted),
        "cordoned": which(cordoned),
        "arriving": draw(some.integers(0, 2)),
        "pending": [{"gpus": 8, "pods": draw(some.integers(0, 3))}],
        "keep": draw(some.fixed_dictionaries(SIZES)),
    }


def kept(nodes: tuple[Node, ...], made: Plan) -> list[Node]:
    """Nodes that stay once the plan is done."""
    acts = {each.subject.name: each.act for each in made.decisions if each.subject.kind == "Node"}
    return [each for each in nodes if not leaves_after(acts.get(each.name), each)]


def spare_of(keep: dict[str, Any]) -> int:
    scheduled = [each["warmNodes"] for each in keep["schedules"]]
    return int(min(max([keep["minUnutilizedGPUNodes"], keep["warmNodes"], *scheduled]), keep["maxSize"]))


@given(pools())
@settings(max_examples=80, deadline=None)
def test_scaling_leaves_the_spare_nodes_and_buys_nothing_above_the_largest_size(case: dict[str, Any]) -> None:
    world, keep = World(case), case["keep"]
    made = world.planned()
    nodes = world.inputs.observed.nodes
    in_use = {pod.node for pod in world.inputs.observed.pods if pod.node}
    # A node that others have cordoned takes no pods, and stays although it bears our mark.
    usable = tuple(each for each in nodes if untouchable(each) is None)
    cordoned = [each for each in nodes if each not in usable and each.taint(names.DISRUPTED) is None]
    free = [sum(each.name not in in_use for each in found) for found in (kept(usable, made), staying(usable))]
    left = len(kept(usable, made)) + len(cordoned)
    most_kept = left >= keep["maxSize"]  # what is above the largest size goes
    assert free[0] >= min(spare_of(keep), free[1]) or most_kept
    (size,) = made.report(ScalingReport).sizes
    there = size.size + size.arriving
    assert size.target <= keep["maxSize"]
    assert there + size.missing <= max(there, keep["maxSize"])


def staying(nodes: tuple[Node, ...]) -> list[Node]:
    return [each for each in nodes if not each.is_being_removed]


NODE = some.fixed_dictionaries(
    {"labelled": some.just(True)},
    optional={
        "pods": some.sampled_from([["web 1"], ["web 2"], ["web 5"], ["job 8"]]),
        "candidate": some.sampled_from([60, 600, 1200]),
    },
)


@given(some.lists(NODE, min_size=1, max_size=8), some.fixed_dictionaries(SIZES))
@settings(max_examples=80, deadline=None)
def test_drains_and_scaling_together_leave_what_is_in_use_and_the_spare_nodes(
    said: list[dict[str, Any]], keep: dict[str, Any]
) -> None:
    world = DrainWorld({"nodes": {f"n{at}": each for at, each in enumerate(said)}, "keep": keep, "scales": True})
    nodes, pods = world.inputs.observed.nodes, world.inputs.observed.pods
    left = len(kept(nodes, world.planned()))
    closely = -(-sum(pod.gpus for pod in pods) // 8) + spare_of(keep)
    assert left >= min(closely, keep["maxSize"], len(nodes))
