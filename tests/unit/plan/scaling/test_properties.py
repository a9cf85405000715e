"""What holds of scaling for every pool, load and hour, plan after plan in a world that does what is decided."""

from collections.abc import Iterator
from itertools import pairwise
from random import Random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.filters.node import untolerated
from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Delete, Hold, Label, Taint
from reconciler.model.plan.evaluation import ScalingReport, Use
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.plan.check import check
from reconciler.plan.nodes.ownership import opt_out
from reconciler.plan.planner import plan
from reconciler.plan.scaling import marks
from reconciler.plan.scaling.planner import scaling
from reconciler.plan.scaling.size import decide_size
from tests.unit.plan.scaling.stage import Json, World, bound_pod
from tests.unit.plan.scaling.test_size import bounds, uses

MOST_PLANS = 200
EIGHT_HOURS_MS = 8 * 3_600_000


@some.composite
def loads(draw: some.DrawFn) -> Json:
    """A pool; some of its nodes are in use, some marked, some in a state that scaling must mind."""
    nodes = draw(some.integers(0, 14))
    each = some.sets(some.integers(0, max(nodes - 1, 0)), max_size=nodes)

    def which() -> str:
        return ",".join(map(str, sorted(draw(each))))

    least, most = sorted((draw(some.integers(0, 10)), draw(some.integers(0, 20))))
    found: Json = {
        "nodes": nodes,
        "busy": which(),
        "uses": {which(): draw(some.integers(1, 8))},
        "unready": which() if draw(some.booleans()) else "",
        "marked": {which(): f"{draw(some.sampled_from(['soft', 'hard']))} {draw(some.integers(-100, 700))}"},
        "keep": {
            "minSize": least,
            "maxSize": most,
            "minGPUUtilizationPercent": draw(some.integers(0, 100)),
            "minUnutilizedGPUNodes": draw(some.integers(0, 3)),
            "scaleDownDelay": f"{draw(some.integers(0, 900))}s",
        },
    }
    if draw(some.booleans()):
        found["gpus"] = {which(): draw(some.sampled_from([4, 16]))}
    if draw(some.booleans()):
        found |= {trait: which() for trait in ("cordoned", "opted_out", "draining", "disrupted")}
    return found


class Following:
    """Owner of a cluster in which all that is decided comes about, and of the hour."""

    def __init__(self, case: Json) -> None:
        self.inputs = World(case).inputs
        self.sizes: list[int] = []
        self.deleted: list[str] = []

    @property
    def observed(self) -> Observed:
        return self.inputs.observed

    @property
    def nodes(self) -> dict[str, Node]:
        return {each.name: each for each in self.observed.nodes}

    def decide(self) -> Plan:
        fleet = Fleet(self.observed)
        made = plan(self.inputs, fleet, (scaling,))
        check(self.inputs, fleet, made)
        return made

    def step(self) -> bool:
        """One plan, and what comes of it; whether anything is still to come."""
        made = self.decide()
        self.sizes.append(made.report(ScalingReport).sizes[0].target)
        nodes = self.nodes
        acted = [each for each in made.decisions if not isinstance(each.act, Hold)]
        for each in acted:
            if isinstance(each.act, Delete):
                self._look(each.subject.name)
                del nodes[each.subject.name]
                self.deleted.append(each.subject.name)
            elif isinstance(each.act, Taint):
                nodes[each.subject.name] = _tainted(nodes[each.subject.name], each.act)
            else:
                assert isinstance(each.act, Label)
        now = self.inputs.now if acted else made.wake_at
        if now is None:
            return False
        self.see(nodes=tuple(nodes.values()), now=now, memory=made.memory)
        return True

    def settle(self) -> None:
        for _ in range(MOST_PLANS):
            if not self.step():
                return
        raise AssertionError("it never comes to rest")

    def see(self, now: Instant | None = None, memory: Memory | None = None, **observed: object) -> None:
        after = msgspec.structs.replace(self.observed, **observed)
        later = self.inputs.now if now is None else now
        kept = self.inputs.memory if memory is None else memory
        self.inputs = msgspec.structs.replace(self.inputs, observed=after, now=later, memory=kept)

    def pods_on(self, node: str) -> list[Pod]:
        return [pod for pod in self.observed.pods if pod.node == node and pod.counts]

    def _look(self, name: str) -> None:
        """What must hold of each node that is deleted."""
        node = self.nodes[name]
        assert not self.pods_on(name)
        (mark,) = [each for each in node.spec.taints if each.key == marks.KEY]
        assert mark.effect == "NoSchedule"
        assert int(mark.value) * 1_000 <= self.inputs.now
        assert not node.spec.unschedulable
        assert opt_out(node, self.inputs.now) is None
        assert not {names.DRAINING, names.DISRUPTED} & {each.key for each in node.spec.taints}


def _tainted(node: Node, act: Taint) -> Node:
    gone = {act.effect, act.instead_of}
    kept = tuple(each for each in node.spec.taints if each.key != act.key or each.effect not in gone)
    more = () if act.value is None else (NodeTaint(act.key, act.effect, act.value),)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=kept + more))


def _marked(following: Following) -> Iterator[Node]:
    return (each for each in following.observed.nodes if each.taint(marks.KEY) is not None)


@settings(max_examples=150)
@given(loads())
def test_under_a_constant_load_it_comes_to_rest_and_turns_at_most_once(case: Json) -> None:
    following = Following(case)
    following.settle()
    steps = [after - before for before, after in pairwise(following.sizes)]
    turns = [step > 0 for step in steps if step]
    assert sum(one != other for one, other in pairwise(turns)) <= 1


@settings(max_examples=150)
@given(loads())
def test_at_rest_the_size_is_what_the_formula_says_as_far_as_nodes_may_go(case: Json) -> None:
    following = Following(case)
    following.settle()
    (size,) = following.decide().report(ScalingReport).sizes
    wish = following.inputs.desired.provisioners[0].spec
    assert size.target == decide_size(size.use, wish).target
    free = [
        node
        for node in following.observed.nodes
        if not following.pods_on(node.name) and not node.spec.unschedulable and not node.spec.taints
        if opt_out(node, following.inputs.now) is None
    ]
    braked = any(each.kind == "ScaleDownHeld" for each in size.limits)
    left = size.size - size.leaving_otherwise
    assert braked or not free or left <= size.target
    assert not following.deleted or left >= size.target, "more went than had to"


@settings(max_examples=150)
@given(loads())
def test_no_pool_is_brought_below_its_least_size_and_no_busy_node_goes(case: Json) -> None:
    following = Following(case)
    wish = following.inputs.desired.provisioners[0].spec
    before = len(following.nodes)
    following.settle()
    assert len(following.nodes) >= min(before, wish.min_size)
    assert len(following.deleted) == before - len(following.nodes)
    if any(following.pods_on(name) for name in following.nodes):
        assert following.nodes


@settings(max_examples=150)
@given(loads(), some.integers(0, 4))
def test_after_eight_hours_away_every_marked_node_takes_pods_and_none_is_deleted_unseen(case: Json, steps: int) -> None:
    case["marked"] = {}
    following = Following(case)
    for _ in range(steps):
        following.step()
    marked = list(_marked(following))
    soft = [each.name for each in marked if _is_soft(each)]
    assert all(untolerated(each.spec.taints, ()) is None for each in marked if _is_soft(each))
    hard = [mark.at for each in marked if (mark := marks.mark_of(each)) is not None and mark.is_hard]
    assert all(at is not None and at - following.inputs.now <= 60_000 for at in hard)
    following.see(now=Instant(following.inputs.now + EIGHT_HOURS_MS))
    woken = following.decide()
    gone = {each.subject.name for each in woken.decisions if isinstance(each.act, Delete)}
    assert gone.isdisjoint(soft)
    hardened = [each.act for each in woken.decisions if isinstance(each.act, Taint) and each.act.effect == "NoSchedule"]
    assert all(int(act.value or 0) * 1_000 >= following.inputs.now + 30_000 for act in hardened)


def _is_soft(node: Node) -> bool:
    mark = node.taint(marks.KEY)
    return mark is not None and mark.effect == "PreferNoSchedule"


@settings(max_examples=150)
@given(loads(), some.integers(0, 6), some.data())
def test_a_pod_that_lands_on_a_marked_node_keeps_it(case: Json, steps: int, data: some.DataObject) -> None:
    case["cordoned"] = case["draining"] = case["disrupted"] = ""
    following = Following(case)
    for _ in range(steps):
        following.step()
    marked = sorted(each.name for each in _marked(following))
    if not marked:
        return
    name = data.draw(some.sampled_from(marked))
    following.see(pods=(*following.observed.pods, bound_pod("late", name)))
    following.settle()
    assert name in following.nodes
    assert following.nodes[name].taint(marks.KEY) is None


@settings(max_examples=60)
@given(loads(), some.randoms(use_true_random=False))
def test_the_order_in_which_things_are_seen_does_not_matter(case: Json, random: Random) -> None:
    inputs = World(case).inputs
    mixed = {
        field: tuple(random.sample(getattr(inputs.observed, field), len(getattr(inputs.observed, field))))
        for field in ("nodes", "pods", "node_claims")
    }
    other = msgspec.structs.replace(inputs, observed=msgspec.structs.replace(inputs.observed, **mixed))
    assert _told(other) == _told(inputs)


@settings(max_examples=60)
@given(loads(), loads())
def test_a_fleet_that_followed_plans_as_one_that_was_made_afresh(before: Json, after: Json) -> None:
    first, then = World(before).inputs, World(after).inputs
    fleet = Fleet(first.observed)
    plan(first, fleet, (scaling,))
    fleet.advance(then.observed)
    assert plan(then, fleet, (scaling,)) == plan(then, Fleet(then.observed), (scaling,))


def _told(inputs: Inputs) -> Plan:
    return plan(inputs, Fleet(inputs.observed), (scaling,))


@given(uses(), bounds())
def test_where_nodes_are_alike_the_walk_and_the_formula_agree(alike: Use, wish: NodeProvisioner) -> None:
    walked = msgspec.structs.replace(alike, spare=(alike.gpus_per_node,) * (alike.nodes - alike.busy_nodes))
    assert decide_size(walked, wish).target == decide_size(alike, wish).target
