"""What a pool's nodes cost an hour: the table of cases, and what holds for every pool."""

from collections import Counter

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.model.cluster.node import Node
from reconciler.model.desired import Declared
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.quantity import Money
from reconciler.plan.sums import MachineType, bill, machine_of, micro_dollars_per_hour
from tests import builders, folders
from tests.unit.plan.karpenter.stage import Words, gpu_pool

CASES = yaml.safe_load((folders.CASES / "cost" / "bills.yaml").read_text())
SORTS = ("reserved", "on-demand", "spot")


def node(name: str, instance_type: str, capacity_type: str) -> Node:
    labels = {"node.kubernetes.io/instance-type": instance_type, "karpenter.sh/capacity-type": capacity_type}
    return builders.node(name, labels=labels)


def nodes_of(case: Words) -> list[Node]:
    sorts = [(f"p4d.24xlarge {key}".split()[-2:], count) for key, count in case["nodes"].items()]
    return [node(f"n{n}", *sort) for sort, count in sorts for n in range(count)]


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case: Words = CASES[name]
    words = {key: case[key] for key in ("types", "capacity_types") if key in case}
    if "prices" in case:
        words["types"] = {"p4d.24xlarge": case["prices"]}
    pool = Declared("GpuPool", "p", gpu_pool(words | {"committed": case.get("committed_nodes", 0)}), ())
    found = micro_dollars_per_hour(pool, nodes_of(case))
    assert Money(found.micro_dollars_per_hour) == Money.parse(case["bill"])
    assert Money(found.committed_micro_dollars_per_hour) == Money.parse(case["committed"])
    assert found.unpriced == case.get("unpriced", 0)


def test_a_node_that_does_not_say_how_it_was_bought_was_bought_on_demand() -> None:
    assert machine_of({"node.kubernetes.io/instance-type": "a"}) == MachineType("a", "on-demand")


PRICES = some.dictionaries(some.sampled_from(SORTS), some.integers(0, 99).map(str))
POOLS = some.fixed_dictionaries(
    {
        "types": some.dictionaries(some.sampled_from("ab"), PRICES, min_size=1),
        "capacity_types": some.lists(some.sampled_from(SORTS), unique=True, min_size=1),
        "committed": some.integers(0, 8),
    }
).map(gpu_pool)
MACHINES = some.lists(some.builds(MachineType, some.sampled_from("abc"), some.sampled_from(SORTS)), max_size=12)


@given(POOLS, MACHINES, MACHINES)
def test_a_machine_fewer_never_costs_more(pool: GpuPool, kept: list[MachineType], gone: list[MachineType]) -> None:
    before, after = bill(pool, Counter(kept + gone)), bill(pool, Counter(kept))
    assert 0 <= after.committed_micro_dollars_per_hour <= after.micro_dollars_per_hour <= before.micro_dollars_per_hour
    assert after.unpriced <= before.unpriced


@given(POOLS, MACHINES)
def test_without_a_commitment_a_bill_is_the_sum_of_its_machines(pool: GpuPool, machines: list[MachineType]) -> None:
    free = gpu_pool({"types": {}, "committed": 0})
    free = type(free)(
        devices=pool.devices,
        instance_types=pool.instance_types,
        capacity_types=pool.capacity_types,
        node_class_ref=pool.node_class_ref,
    )
    alone = [bill(free, {machine: 1}) for machine in machines]
    together = bill(free, Counter(machines))
    assert together.micro_dollars_per_hour == sum(each.micro_dollars_per_hour for each in alone)
    assert together.unpriced == sum(each.unpriced for each in alone)
