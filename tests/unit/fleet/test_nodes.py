"""Where a pod may be for what a node is and has, and what pods ask for: the tables of cases."""

from typing import Any

import msgspec
import pytest
import yaml

from reconciler.fleet.amounts import pod_held, pod_request
from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.questions import fits
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.words import obstacle_words
from tests import folders
from tests.unit.fleet.stage import pod, what_if

FOLDER = folders.CASES / "fleet"
NODES: dict[str, Any] = yaml.safe_load((FOLDER / "nodes.yaml").read_text())
# Amounts are texts, as the API server sends them.
AMOUNTS: dict[str, Any] = yaml.load((FOLDER / "amounts.yaml").read_text(), yaml.BaseLoader)  # noqa: S506


@pytest.mark.parametrize("name", NODES)
def test_a_node_takes_a_pod(name: str) -> None:
    case = NODES[name]
    fleet = what_if(case)
    asking = pod("asking", case["pod"])
    assert list(map(obstacle_words, fits(fleet, asking, "n1"))) == case.get("why", [])
    if asking.node != "n2":
        assert bool(fleet.part(FilterChain).mask(fleet.classes.of(asking))[0]) == (not case.get("why"))


def numbers(amounts: dict[str, str]) -> dict[str, int]:
    return {name: int(amount) for name, amount in amounts.items()}


@pytest.mark.parametrize("name", AMOUNTS)
def test_what_a_pod_asks_for(name: str) -> None:
    case = AMOUNTS[name]
    manifest = {"metadata": {"name": "p"}, "spec": case["spec"], "status": case.get("status", {})}
    asking = msgspec.convert(manifest, Pod)
    assert pod_request(asking) == numbers(case["asks"])
    assert pod_held(asking) == numbers(case.get("holds", case["asks"]))
    fleet = what_if({})
    pod_class, columns = fleet.classes.of(asking), fleet.classes.columns
    before = {name: fleet.stock.free_at(0, at) for name, at in columns.items()}
    fleet.add(pod_class, 0)
    taken = {name: before[name] - fleet.stock.free_at(0, at) for name, at in columns.items()}
    assert {name: amount for name, amount in taken.items() if amount and name != "pods"} == pod_held(asking)
