"""What becomes of nodes that Karpenter drifts or deletes: the table of cases, and what holds for every fleet."""

from collections import Counter
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.consequence import Consequence, summed
from reconciler.model.quantity import Money
from reconciler.plan.karpenter.disruption_forecast import Surroundings, fates
from reconciler.plan.sums import Tariff, machine_of, successor
from tests import folders
from tests.unit.plan.karpenter.stage import POOL, Words, drift_of, names_of, node_pool, observed, spec_of, surroundings

CASES = yaml.safe_load((folders.CASES / "karpenter" / "fates.yaml").read_text())


def told(case: Words, around: Surroundings | None = None) -> tuple[Consequence, ...]:
    live = node_pool(spec_of(case, "live_budgets" if "live_budgets" in case else "budgets") or {})
    return fates(live, spec_of(case, "budgets"), drift_of(case), around or surroundings(case))


def in_short(found: Consequence, wanted: Words) -> Words:
    """What a case says of it: all that is not zero, and what it asks for."""
    short: dict[str, Any] = {
        "nodes": len(found.nodes),
        "in_use": found.gpus_in_use,
        "pods": found.pods,
        "saves": _dollars(-found.micro_dollars_per_hour),
        "held": {each.title: count for each, count in found.held_by},
        "unpriced": found.unpriced,
    }
    asked = {"gpus": found.gpus, "wave": found.wave, "seconds": found.seconds}
    said = {key: value for key, value in short.items() if value not in (0, {}, "0.00")}
    return said | {key: value for key, value in asked.items() if key in wanted}


def _dollars(micro_dollars: int) -> str:
    return f"-{Money(-micro_dollars)}" if micro_dollars < 0 else str(Money(micro_dollars))


@pytest.mark.parametrize("name", CASES)
def test_case(name: str) -> None:
    case = CASES[name]
    found = {f"{each.cause} {each.fate}": each for each in told(case)}
    assert {key: in_short(each, case["expect"].get(key, {})) for key, each in found.items()} == case["expect"]
    assert all(each.pool == POOL and each.node_pool == POOL for each in found.values())


def test_what_would_happen_anyway_is_told_first() -> None:
    case = {"nodes": {name: {"pods": [1] * (name in "bd")} for name in "abcd"}, "already": ["c", "d"]}
    found = told(case | {"fresh": ["a", "b"]})
    assert [(each.cause, each.fate) for each in found] == [
        ("standing", "removed"),
        ("standing", "replaced"),
        ("change", "removed"),
        ("change", "replaced"),
    ]


POD_WORDS = some.fixed_dictionaries(
    {"gpus": some.integers(0, 8)},
    optional={
        "asks": some.sampled_from(["true", "2h", "nonsense"]),
        "ran": some.sampled_from(["1h", "3h"]),
        "owner": some.sampled_from(["DaemonSet", "Node", "StatefulSet", "Job"]),
        "phase": some.sampled_from(["Succeeded", "Failed", "Pending"]),
        "leaving": some.just(True),
        "labels": some.sampled_from([{"app": "web"}, {"app": "web", "tier": "a"}, {"tier": "a"}]),
    },
)
NODE_WORDS = some.fixed_dictionaries(
    {"pods": some.lists(POD_WORDS, max_size=3), "count": some.integers(1, 3)},
    optional={
        "asks": some.just("true"),
        "bound": some.sampled_from(["10m", "1h"]),
        "capacity": some.sampled_from(["reserved", "spot"]),
        "type": some.just("p5.48xlarge"),
        "leaving": some.just(True),
        "disrupted": some.just(True),
        "claim_leaving": some.just(True),
        "gpus": some.integers(0, 16),
        "bought": some.just(False),
        "node": some.just(False),
    },
)
BUDGETS = some.sampled_from([[], [{"nodes": "0"}], [{"nodes": "10%"}], [{"nodes": "2", "reasons": ["Drifted"]}]])


@some.composite
def fleets(draw: some.DrawFn) -> Words:
    groups = draw(some.dictionaries(some.sampled_from("abcdef"), NODE_WORDS, min_size=1))
    drifts: Words = {"already": [], "fresh": [], "undrifted": [], "": []}
    for group in groups:
        drifts[draw(some.sampled_from(sorted(drifts)))].append(group)
    return {
        "nodes": groups,
        "pdbs": {
            "web": {"labels": {"app": "web"}, "allows": draw(some.integers(0, 1))},
            "a": {"labels": {"tier": "a"}},
        },
        "budgets": draw(BUDGETS | some.just("deleted")),
        "live_budgets": draw(BUDGETS),
        "pool": {
            "committed": draw(some.integers(0, 6)),
            "capacity_types": draw(some.sampled_from([["on-demand"], ["reserved", "on-demand"], ["spot"]])),
        },
        **{field: drifts[field] for field in ("already", "fresh", "undrifted")},
    }


def concerned(case: Words) -> list[str]:
    """The names of all nodes that have a fate: a NodeClaim without a node goes by its own."""
    if case["budgets"] == "deleted":
        groups = list(case["nodes"])
    else:
        groups = [*case["already"], *case["fresh"], *case["undrifted"]]
    return [
        name if case["nodes"][group].get("node", True) else f"claim-{name}"
        for group in groups
        for name in names_of(group, case["nodes"][group])
    ]


@given(fleets())
def test_each_node_that_drifts_has_exactly_one_fate(case: Words) -> None:
    found = told(case)
    assert Counter(name for each in found for name in each.nodes) == Counter(concerned(case))
    assert len({(each.cause, each.fate) for each in found}) == len(found)
    assert all(list(each.nodes) == sorted(each.nodes) for each in found)


@given(fleets(), some.randoms(use_true_random=False))
def test_the_order_of_what_is_seen_never_matters(case: Words, random: Any) -> None:
    seen = observed(case)
    shuffled = {}
    for field in ("nodes", "pods", "node_claims", "budgets"):
        listed = list(getattr(seen, field))
        random.shuffle(listed)
        shuffled[field] = tuple(listed)
    around = surroundings(case)
    mixed = Fleet(msgspec.structs.replace(seen, **shuffled))
    assert told(case, msgspec.structs.replace(around, fleet=mixed)) == told(case, around)


@given(fleets())
def test_nothing_that_goes_costs_more_and_nothing_uses_more_than_there_is(case: Words) -> None:
    for each in told(case):
        assert each.micro_dollars_per_hour <= 0 or each.fate == "replaced"
        assert each.fate in {"removed", "deleted", "replaced"} or (each.micro_dollars_per_hour, each.unpriced) == (0, 0)
        assert 0 <= each.gpus_in_use <= each.gpus
        assert all(0 < count <= len(each.nodes) for _, count in each.held_by)
        assert each.fate not in {"removed", "replaced"} or each.seconds is not None
        assert each.fate != "blocked" or (each.seconds is None and each.held_by)


@given(fleets())
def test_what_all_fates_save_is_what_the_bill_is_less_by(case: Words) -> None:
    """Nodes only: the two bills are of Nodes, and a NodeClaim without one is in neither."""
    for words in case["nodes"].values():
        words.pop("node", None)
    around = surroundings(case)
    found = told(case, around)
    gone = {name for each in found if each.fate in {"removed", "deleted"} for name in each.nodes}
    replaced = {name for each in found if each.fate == "replaced" for name in each.nodes}
    assert around.declared is not None
    tariff = Tariff(around.declared.spec)
    machines = {node.name: machine_of(node.metadata.labels) for node in around.fleet.nodes_of(POOL)}
    kept = {name: machine for name, machine in machines.items() if name not in gone}
    for name in replaced & kept.keys():
        other = successor(around.declared.spec, kept[name])
        kept[name] = other if tariff.has(kept[name]) and tariff.has(other) else kept[name]
    before, after = tariff.bill(Counter(machines.values())), tariff.bill(Counter(kept.values()))
    change = sum(each.micro_dollars_per_hour for each in found)
    assert after.micro_dollars_per_hour == before.micro_dollars_per_hour + change
    unpriced = sum(each.unpriced for each in found if each.fate in {"removed", "deleted"})
    assert after.unpriced == before.unpriced - unpriced


@given(fleets())
def test_the_shares_of_its_nodes_add_up_to_each_consequence(case: Words) -> None:
    for each in told(case):
        assert summed(each, zip(each.nodes, each.shares, strict=True)) == each
        first = each.only(each.nodes[:1])
        rest = each.only(each.nodes[1:])
        assert first is not None
        assert first.gpus + (rest.gpus if rest else 0) == each.gpus
