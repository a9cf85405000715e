"""How many nodes can go does not depend on what nodes and pods are called, nor on when they were made."""

from collections import Counter
from random import Random
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import LocalObjectReference, Pod
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.decision import Hold
from reconciler.model.plan.evaluation import DrainReport
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.draft import Draft
from reconciler.plan.drain.planner import drain
from reconciler.plan.planner import plan
from tests.unit.plan.drain.stage import World
from tests.unit.plan.scaling.stage import NOW

Json = dict[str, Any]
APPS: dict[str, Json] = {
    "web": {},
    "fat": {"cpu": 40},
    "zoned": {"selects": {"zone": "x"}},
    "bears": {"bears": ["shut"]},
    "kept": {"safe": "false"},
    "few": {"budget": 2},
    "agent": {"owner": "DaemonSet"},
}
PODS = some.lists(
    some.tuples(some.sampled_from([*APPS, "web", "web"]), some.integers(0, 4)).map(lambda pod: f"{pod[0]} {pod[1]}"),
    max_size=4,
)
NODES = some.fixed_dictionaries(
    {"pods": PODS, "labels": some.sampled_from([{"zone": "x"}, {"zone": "y"}])},
    optional={
        "opted_out": some.just(True),
        "unready": some.just(True),
        "cpu": some.sampled_from([64, 128]),
        "gpus": some.just(16),
        "pool": some.just("l4"),
        "bought": some.just("spot"),
        "taints": some.just(["shut"]),
    },
)


@some.composite
def fleets(draw: some.DrawFn) -> Json:
    """Several nodes of each sort, so that names decide between many that are alike."""
    sorts = draw(some.lists(NODES, min_size=1, max_size=4))
    found = [each for each in sorts for _ in range(draw(some.integers(1, 12)))]
    percent = draw(some.sampled_from([50, 70, 100]))
    return {
        "nodes": {f"n{number:02}": each for number, each in enumerate(found)},
        "apps": APPS,
        "policy": {"poolNames": ["*"], "utilizationThresholdPercent": percent},
    }


def renamed(inputs: Inputs, chance: Random) -> Inputs:
    """The same cluster: nodes, and pods, have swapped their names, uids and times."""
    observed = inputs.observed
    nodes = list(zip(observed.nodes, chance.sample(observed.nodes, len(observed.nodes)), strict=True))
    named = {each.name: other.name for each, other in nodes}
    pods = list(zip(observed.pods, chance.sample(observed.pods, len(observed.pods)), strict=True))
    seen = msgspec.structs.replace(
        observed,
        nodes=tuple(sorted((_node(each, other) for each, other in nodes), key=lambda each: each.name)),
        pods=tuple(_pod(each, other, named.get(each.node, ""), chance) for each, other in pods),
    )
    return msgspec.structs.replace(inputs, observed=seen)


def _node(node: Node, other: Node) -> Node:
    labels = {**node.metadata.labels, names.HOSTNAME: other.name}
    times = {"uid": other.metadata.uid, "creation_timestamp": other.metadata.creation_timestamp}
    return msgspec.structs.replace(
        node, metadata=msgspec.structs.replace(node.metadata, name=other.name, labels=labels, **times)
    )


def _pod(pod: Pod, other: Pod, node: str, chance: Random) -> Pod:
    began = timestamp(Instant(NOW - 1_000 * chance.randint(600, 90_000)))
    metadata = msgspec.structs.replace(pod.metadata, name=other.name, uid=other.metadata.uid, creation_timestamp=began)
    status = msgspec.structs.replace(pod.status, start_time=began)
    return msgspec.structs.replace(
        pod, metadata=metadata, status=status, spec=msgspec.structs.replace(pod.spec, node_name=node)
    )


def candidates(inputs: Inputs) -> int:
    verdict = drain(msgspec.structs.replace(inputs, budget=10**9), Draft(Fleet(inputs.observed), inputs.desired))
    return sum(each.is_candidate for each in verdict.report(DrainReport).weighed)


@settings(max_examples=150, deadline=None)
@given(fleets(), some.integers(0, 1_000))
def test_the_number_of_candidates_does_not_depend_on_names(case: Json, seed: int) -> None:
    inputs = World(case).inputs
    assert candidates(renamed(inputs, Random(seed))) == candidates(inputs)


@settings(max_examples=150, deadline=None)
@given(fleets(), PODS.filter(bool), some.sampled_from([True, False]), some.integers(0, 1_000))
def test_nor_while_pods_wait(case: Json, waiting: list[str], gated: bool, seed: int) -> None:
    """The places that waiting pods are let go to, or that the scheduler has for them, follow from what nodes are."""
    inputs = World({**case, "waiting": waiting, "keep": {"minGPUUtilizationPercent": 50}}).inputs
    if gated:
        inputs = behind_our_gate(inputs)
    assert decided(renamed(inputs, Random(seed))) == decided(inputs)


def behind_our_gate(inputs: Inputs) -> Inputs:
    pods = (each if each.node else _gated(each) for each in inputs.observed.pods)
    observed = msgspec.structs.replace(inputs.observed, pods=tuple(pods))
    return msgspec.structs.replace(inputs, observed=observed)


def _gated(pod: Pod) -> Pod:
    spec = msgspec.structs.replace(pod.spec, scheduling_gates=(LocalObjectReference(names.CAPACITY_GATE),))
    return msgspec.structs.replace(pod, spec=spec)


def decided(inputs: Inputs) -> Counter[tuple[str, str, str]]:
    """How many actions there are of each sort, and what pods are told, of the whole plan; and how many candidates."""
    inputs = msgspec.structs.replace(inputs, budget=10**9)
    made = plan(inputs, Fleet(inputs.observed))
    # Which opted-out nodes scaling passes over, and tells of, follows from its order of removal.
    found = Counter(
        (each.planner, type(each.act).__name__, each.reason.code)
        for each in made.decisions
        if not isinstance(each.act, Hold) or each.subject.kind == "Pod"
    )
    found["drain", "", "candidates"] = sum(each.is_candidate for each in made.report(DrainReport).weighed)
    return found


def test_pods_go_to_nodes_that_stay_before_they_go_to_nodes_that_could_go() -> None:
    """Six nodes have room for two pods each, and twelve have one pod: all twelve can go, whatever their names."""
    stays = {f"keep{number}": {"pods": ["web 1"] * 6} for number in range(6)}
    for name in ("low", "aaa"):
        goes = {f"{name}{number:02}": {"pods": ["web 1"]} for number in range(12)}
        world = World({"nodes": stays | goes})
        made = world.planned()
        assert {each.node for each in made.report(DrainReport).weighed if each.is_candidate} == goes.keys()
        taking = {to for of in made.hints.destinations.values() for places in of.values() for to in places}
        assert taking == stays.keys()
