"""clusterMin: no plan takes more of the cluster than policies keep, whichever planner removes a node."""

import hypothesis.strategies as some
from hypothesis import given, settings

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.plan.decision import Action, Decision, Delete, Hold, Preconditions, Ref, Taint
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.draft import Draft, Verdict, leaves_after
from reconciler.plan.guards.tally import ClusterMinHolds
from reconciler.plan.planner import plan
from tests.unit.plan.drain.stage import World
from tests.unit.plan.some_reasons import some_reason

WHY = some_reason("Planted")

NODE = some.fixed_dictionaries(
    {"labelled": some.just(True)},
    optional={
        "pods": some.sampled_from([["web 1"], ["web 2"], ["web 5"], ["job 8"]]),
        "candidate": some.sampled_from([60, 600, 1200]),
        "marked": some.sampled_from([-60, 300]),
        "pool": some.just("l4"),
        "unready": some.just(True),
        "draining": some.just(60),
    },
)


def kept(nodes: dict[str, Node], acts: dict[str, Action | Hold]) -> int:
    """GPUs of the nodes that stay once the actions are done."""
    left = (node for name, node in nodes.items() if not leaves_after(acts.get(name), node))
    return sum(node.gpus for node in left)


def acts_of(made: Plan) -> dict[str, Action | Hold]:
    return {each.subject.name: each.act for each in made.decisions if each.subject.kind == "Node" and not each.would}


@given(some.lists(NODE, min_size=1, max_size=7), some.integers(0, 7), some.sampled_from(["drains", "more"]))
@settings(max_examples=80, deadline=None)
def test_no_plan_takes_the_cluster_below_cluster_min(said: list[dict[str, object]], least: int, policy: str) -> None:
    least_gpus = {"clusterMin": {names.NVIDIA_GPU: 8 * least}}
    others = {"more": {"poolNames": ["l4"], **least_gpus}}
    case = {"nodes": {f"n{at}": each for at, each in enumerate(said)}, "keep": {"minGPUUtilizationPercent": 100}}
    case |= {"policy": least_gpus} if policy == "drains" else {"others": others}
    world = World({**case, "scales": True})
    nodes = {each.name: each for each in world.inputs.observed.nodes}
    before, after = kept(nodes, {}), kept(nodes, acts_of(world.planned()))
    assert after >= min(before, 8 * least)


@given(some.integers(1, 6), some.integers(0, 7), some.booleans())
@settings(max_examples=30, deadline=None)
def test_a_planner_that_forgets_to_ask_is_held(count: int, least: int, deletes: bool) -> None:
    def forgets(inputs: Inputs, draft: Draft) -> Verdict:
        return Verdict(tuple(_goes(each, deletes) for each in draft.fleet.observed.nodes))

    case = {"nodes": {f"n{at}": {} for at in range(count)}, "policy": {"clusterMin": {names.NVIDIA_GPU: 8 * least}}}
    inputs = World(case).inputs
    made = plan(inputs, Fleet(inputs.observed), (forgets,))
    held = [each for each in made.decisions if isinstance(each.reason.facts, ClusterMinHolds)]
    assert len(held) == min(count, least)


def _goes(node: Node, deletes: bool) -> Decision:
    subject = Ref("Node", "", node.name, node.metadata.uid)
    presumes = Preconditions(resource_version="1")
    act: Action = Delete(presumes=presumes)
    if not deletes:
        act = Taint(key=names.DELETION_TIME, value="1", effect="NoSchedule", presumes=presumes)
    return Decision("forgets", subject, act, WHY, node.pool)
