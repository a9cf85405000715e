"""Which of the candidates begin where limits let only some: never worse than any others, by trying all."""

from collections import Counter
from collections.abc import Iterable
from itertools import combinations
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as some

from reconciler.model.plan.evaluation import DrainReport
from reconciler.model.plan.plan import Plan
from reconciler.plan.drain.codes.emptying import Drained
from tests.unit.plan.drain.stage import World

PRICES = {"on-demand": 2196, "spot": 900, "reserved": 1200}  # cents an hour
POOLS = ("a100", "l4")

Node = tuple[str, str, int, int]  # pool, how it was bought, seconds since its work was saved, GPUs in use
NODES = some.lists(
    some.tuples(some.sampled_from(POOLS), some.sampled_from(sorted(PRICES)), some.integers(0, 5), some.integers(1, 2)),
    min_size=1,
    max_size=6,
)


def world(nodes: list[Node], committed: dict[str, int], **more: Any) -> World:
    """Each node has a pod of its own, and all of them fit on those that take; all are due."""
    said: dict[str, Any] = {
        f"n{at}": {"pods": [f"web{at} {gpus}"], "pool": pool, "bought": bought, "candidate": 900 + 7 * at}
        for at, (pool, bought, _, gpus) in enumerate(nodes)
    }
    takers: dict[str, Any] = {f"z{at}": {"pods": ["job 4"], "pool": "takers"} for at in range(4)}
    apps = {f"web{at}": {"saved": -10 * saved} for at, (_, _, saved, _) in enumerate(nodes)}
    prices = {key: f"{cents // 100}.{cents % 100:02}" for key, cents in PRICES.items()}
    pools = {
        name: {
            "committedNodes": committed[name],
            "instanceTypes": [{"name": "p4d.24xlarge", "pricePerHour": prices}],
        }
        for name in POOLS
    }
    case = {"nodes": said | takers, "apps": apps, "pools": pools, "policy": {"poolNames": list(POOLS)}}
    return World(case | more)


def saved(nodes: list[Node], committed: dict[str, int], gone: Iterable[int]) -> int:
    """Cents an hour: of each pool what is not reserved is paid for, but for the dearest that run on the commitment."""
    return paid(nodes, committed, set()) - paid(nodes, committed, set(gone))


def paid(nodes: list[Node], committed: dict[str, int], gone: set[int]) -> int:
    found = 0
    for pool in POOLS:
        there = Counter(bought for at, (of, bought, _, _) in enumerate(nodes) if of == pool and at not in gone)
        found += PRICES["spot"] * there["spot"]
        found += PRICES["on-demand"] * max(0, there["on-demand"] - committed[pool])
    return found


def lost(nodes: list[Node], gone: Iterable[int]) -> int:
    return sum(nodes[at][2] * nodes[at][3] for at in gone)


def begun(made: Plan) -> set[int]:
    return {int(each.subject.name[1:]) for each in made.decisions if isinstance(each.reason.facts, Drained)}


def due(made: Plan) -> list[int]:
    return [int(each.node[1:]) for each in made.report(DrainReport).weighed if each.is_candidate]


COMMITTED = some.fixed_dictionaries({pool: some.integers(0, 3) for pool in POOLS})


@given(NODES, COMMITTED, some.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_no_other_nodes_would_save_more_or_the_same_for_less_loss(
    nodes: list[Node], committed: dict[str, int], most: int
) -> None:
    limits = {"poolNames": list(POOLS), "maxDrainParallelism": most, "maxScaleDownParallelism": 10}
    made = world(nodes, committed, policy=limits).planned()
    took = begun(made)
    assert len(took) == min(most, len(due(made)))
    best = max((saved(nodes, committed, each), -lost(nodes, each)) for each in combinations(due(made), len(took)))
    assert (saved(nodes, committed, took), -lost(nodes, took)) == best


@given(NODES, COMMITTED, some.integers(1, 3), some.integers(1, 3), some.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_nor_where_each_policy_has_a_limit_and_all_have_another(
    nodes: list[Node], committed: dict[str, int], one: int, other: int, least: int
) -> None:
    """And where a pool keeps some of its nodes."""
    policy = {"poolNames": ["a100"], "maxDrainParallelism": one, "utilizationThresholdPercent": 50}
    others = {"second": {"poolNames": ["l4"], "maxDrainParallelism": other, "utilizationThresholdPercent": 50}}
    keep = {"minSize": least, "minGPUUtilizationPercent": 100}
    made = world(nodes, committed, policy=policy, others=others, keep=keep).planned()
    took = begun(made)

    def permitted(gone: Iterable[int]) -> bool:
        of = Counter(nodes[at][0] for at in gone)
        return (
            of["a100"] <= one and of["l4"] <= other and sum(of.values()) <= max(one, other) and of["a100"] <= keepable
        )

    size = sum(pool == "a100" for pool, *_ in nodes)
    gpus = sum(gpus for pool, _, _, gpus in nodes if pool == "a100")
    keepable = max(0, size - max(gpus * 100 // (100 * 8), -(-gpus // 8), least))
    found = [each for each in combinations(due(made), len(took)) if permitted(each)]
    assert permitted(took)
    assert not any(permitted(took | {each}) for each in set(due(made)) - took)
    best = max((saved(nodes, committed, each), -lost(nodes, each)) for each in found)
    assert (saved(nodes, committed, took), -lost(nodes, took)) == best


@given(NODES, COMMITTED, some.integers(1, 6))
@settings(max_examples=60, deadline=None)
def test_where_the_cluster_keeps_some_no_exchange_of_two_would_better_it(
    nodes: list[Node], committed: dict[str, int], most: int
) -> None:
    keeps = {"clusterMin": {"nvidia.com/gpu": 8 * most}}
    made = world(nodes, committed, policy={"poolNames": list(POOLS), **keeps}).planned()
    took = begun(made)
    mine = saved(nodes, committed, took), -lost(nodes, took)
    for gone in took:
        for waiting in set(due(made)) - took:
            other = took - {gone} | {waiting}
            assert (saved(nodes, committed, other), -lost(nodes, other)) <= mine


@given(NODES, COMMITTED)
@settings(max_examples=30, deadline=None)
def test_who_is_a_candidate_and_since_when_does_not_depend_on_what_it_is_worth(
    nodes: list[Node], committed: dict[str, int]
) -> None:
    """Another price in the policies takes no timer away."""
    cheap = world(nodes, committed).planned()
    free = world(nodes, dict.fromkeys(POOLS, 100)).planned()
    assert cheap.report(DrainReport).weighed == free.report(DrainReport).weighed
