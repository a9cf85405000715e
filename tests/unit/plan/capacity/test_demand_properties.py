"""What holds of every pod that waits, whatever the pools are like: it is served once, and a decision speaks of it."""

from collections import Counter
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.plan.decision import Apply, Delete
from reconciler.model.plan.plan import Plan
from reconciler.plan.capacity.demand import asks_for_gpus, waits
from reconciler.plan.capacity.requests import CapacityRequest, SmartPodIdentity
from reconciler.plan.draft import Draft
from reconciler.plan.scaling.planner import scaling
from tests.unit.plan.smart_pods.stage import SmartWorld

Json = dict[str, Any]

POOLS = ("a100", "b100", "c100")
# What is drawn first is what most examples have, and what they shrink to.
RARELY = some.sampled_from([False] * 4 + [True])
DEDICATED = {"key": "dedicated", "effect": "NoSchedule"}
# What a pool may be like; each is drawn by itself.
TRAITS: tuple[tuple[str, Json], ...] = (
    ("pool", {"mode": "Observe"}),
    ("pool", {"suspend": True}),
    ("pool", {"taints": [DEDICATED]}),
    ("pool", {"limits": {"nodes": "2"}}),
    ("pool", {"servesPodsWithoutGpus": True}),
    ("pool", {"smartPods": {"maxRetryAttempts": 0}}),
    ("keep", {"suspend": True}),
    ("keep", {"maxSize": 2}),
    ("keep", {"order": 1}),
)


@some.composite
def pools(draw: some.DrawFn) -> Json:
    nodes = draw(some.integers(0, 2))
    found: Json = {
        "nodes": nodes,
        "busy": ",".join(str(at) for at in range(nodes) if not draw(RARELY)),
        "marked": {at: "hard 10" for at in range(nodes) if draw(RARELY)},
        "arriving": int(draw(RARELY)),
        "ordered": int(draw(RARELY)),
        "no_node_pool": draw(RARELY),
    }
    for part, said in draw(some.sets(some.sampled_from(range(len(TRAITS))), max_size=2).map(_traits)):
        found[part] = found.get(part, {}) | said
    if draw(RARELY):
        found["frozen_pool"] = 600
    return found


def _traits(numbers: set[int]) -> list[tuple[str, Json]]:
    return [TRAITS[number] for number in sorted(numbers)]


@some.composite
def pods(draw: some.DrawFn) -> Json:
    found: Json = {"gpus": draw(some.sampled_from([8, 8, 2, 2, 0, 16])), "cpu": draw(some.sampled_from([96, 1]))}
    found["pods"] = draw(some.integers(1, 3))
    if draw(some.booleans()):
        found["seen"] = draw(some.sampled_from([5, 300]))
    if draw(some.booleans()):
        found["bears"] = ["dedicated"]
    claim = draw(some.sampled_from([""] * 6 + ["small", "model", "suspended", "missing"]))
    return found | ({"claim": claim} if claim else {})


@some.composite
def worlds(draw: some.DrawFn) -> Json:
    first, *others = (draw(pools()) for _ in POOLS)
    case = first | {"also": dict(zip(POOLS[1:], others, strict=True)), "lacks_since": draw(some.sampled_from([5, 300]))}
    case["pending"] = draw(some.lists(pods(), min_size=2, max_size=5))
    case["claims"] = {
        "small": {"devices": {"count": 1}},
        "model": {"devices": {"count": 1, "model": "b100"}},
        "suspended": {"suspend": True},
    }
    case["short"] = [
        {"pool": pool, "kind": kind, "since": draw(some.sampled_from([3, 60]))}
        for pool in POOLS
        for kind in ("on-demand", "spot")
        if draw(RARELY)
    ]
    if draw(some.booleans()):
        case["smart"] = [{"kind": "on-demand", "age": draw(some.sampled_from([5, 50]))}]
    if draw(some.booleans()):
        case["elsewhere"] = [{"pool": "theirs", "gpus": draw(some.sampled_from([0, 8]))}]
    return case


@given(case=worlds())
@settings(max_examples=100)
def test_each_waiting_pod_is_served_once_and_has_a_decision(case: Json) -> None:
    world = SmartWorld(case)
    made, draft = world.planned(), scaled(world)
    is_ours = SmartPodIdentity(world.inputs.desired)
    waiting = {pod.metadata.uid: pod for pod in world.inputs.observed.pods if not pod.node and waits(pod, is_ours)}
    served = [uid for each in (*new_requests(made), *kept_requests(world, made)) for uid in each.pods]
    # What is wanted becomes a request for pods behind our gate at once, and for those that Karpenter sees in a while.
    wanted = {pod.metadata.uid for each in draft.capacity.requests for pod in each.pods}
    for uid, count in Counter(served).items():
        assert count == 1, waiting[uid].name
    assert not wanted & draft.capacity.places.keys()
    assert not wanted & {uid for each in kept_requests(world, made) for uid in each.pods}
    decided = {each.subject.uid for each in made.decisions if each.subject.kind == "Pod"}
    assert [pod.name for uid, pod in waiting.items() if uid not in decided] == []


@given(case=worlds())
@settings(max_examples=50)
def test_nothing_is_bought_for_a_pod_without_gpus_unless_its_pool_serves_such_pods(case: Json) -> None:
    world = SmartWorld(case)
    serving = {pool.name for pool in world.inputs.desired.pools if pool.spec.serves_pods_without_gpus}
    for each in scaled(world).capacity.requests:
        assert each.pool in serving or all(map(asks_for_gpus, each.pods))


@given(case=worlds())
@settings(max_examples=50)
def test_only_pools_that_may_be_asked_are_asked_and_for_no_more_than_their_largest_size(case: Json) -> None:
    world = SmartWorld(case)
    made, observed = world.planned(), world.inputs.observed
    new = Counter(each.pool for each in new_requests(made))
    kept = Counter(each.pool for each in kept_requests(world, made))
    for name, count in new.items():
        pool = world.inputs.desired.pool(name)
        assert pool is not None
        assert (pool.spec.mode, pool.spec.suspend) == ("Enforce", False)
        assert name in {each.name for each in observed.node_pools}
        (keep,) = [each.spec for each in world.inputs.desired.provisioners if each.spec.pool_name == name]
        assert not keep.suspend
        nodes = sum(each.pool == name for each in observed.nodes)
        claims = sum(
            each.metadata.labels.get(names.KARPENTER_POOL) == name and each.status.node_name == ""
            for each in observed.node_claims
        )
        assert nodes + claims + kept[name] + count <= keep.max_size


def scaled(world: SmartWorld) -> Draft:
    """What scaling leaves for the planner of smart pods."""
    draft = Draft(Fleet(world.inputs.observed), world.inputs.desired)
    scaling(world.inputs, draft)
    return draft


def new_requests(made: Plan) -> list[CapacityRequest]:
    """What smart pods that are made in this plan ask for."""
    acts = [each.act for each in made.decisions if each.subject.kind == "Pod" and not each.would]
    bodies = [msgspec.json.decode(each.manifest) for each in acts if isinstance(each, Apply)]
    written = [each["metadata"]["annotations"][names.ORIGINAL_REQUEST] for each in bodies]
    return [msgspec.json.decode(each, type=CapacityRequest) for each in written]


def kept_requests(world: SmartWorld, made: Plan) -> list[CapacityRequest]:
    """What smart pods ask for that are there, are needed, and stay: without pods that don't fit their pool any more."""
    gone = {each.subject.uid for each in made.decisions if isinstance(each.act, Delete)}
    answered = scaled(world).capacity
    kept = (pod for pod in world.inputs.observed.pods if pod.metadata.uid not in gone and pod.name in answered.used)
    return [
        msgspec.structs.replace(request, pods=tuple(uid for uid in request.pods if uid in answered.asked))
        for pod in kept
        if (request := SmartPodIdentity(world.inputs.desired).request_of(pod)) is not None
    ]
