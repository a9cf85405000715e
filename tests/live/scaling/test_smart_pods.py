"""Demand that Karpenter can't see goes from refused to running, and the smart pods that asked for it are gone then."""

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
import yaml

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.lab.places import REPOSITORY
from tests.slow import long
from tests.stages.smart import Demand, chronicle, claims_touched, deleted, made, moment

SEVERAL, MANY = 6, 20
GATE_FILE = REPOSITORY / "deploy" / "core" / "gate.yaml"
PLURALS = {
    "MutatingAdmissionPolicy": "mutatingadmissionpolicies",
    "MutatingAdmissionPolicyBinding": "mutatingadmissionpolicybindings",
}
PROMPT_SECONDS = 5.0  # a second on a quiet machine; `make bench` tells


@pytest.fixture
def demand(cluster: Lab, tmp_path: Path) -> Iterator[Demand]:
    made_here = Demand(cluster, tmp_path)
    yield made_here
    made_here.site.clean()


def test_gated_demand_gets_its_node_and_the_smart_pod_goes(demand: Demand) -> None:
    demand.write()
    audit = demand.lab.audit()
    with demand.site.replica() as replica:
        replica.wait_until_leading()
        demand.admin.wait_for("nodepools", "a100", bool)
        (pod,) = demand.comes(1)
        (node,) = demand.runs([pod])
        demand.until(lambda: not demand.smart())
    entries = audit.entries()
    (asked,), (gone,) = made(entries), deleted(entries)
    assert (moment(asked) - created(demand, pod)).total_seconds() < PROMPT_SECONDS
    assert (moment(gone) - ready(demand, node)).total_seconds() < PROMPT_SECONDS
    assert [each["metadata"]["name"] for each in demand.nodes()] == [node]
    assert len(demand.claims()) == 1
    assert not claims_touched(entries)


@pytest.mark.parametrize("many", [SEVERAL, long(MANY)])
def test_so_many_at_once_get_exactly_as_many_nodes(demand: Demand, many: int) -> None:
    demand.write()
    demand.provision(maxSize=2 * many)
    audit = demand.lab.audit()
    with demand.site.replica() as replica:
        replica.wait_until_leading()
        demand.admin.wait_for("nodepools", "a100", bool)
        assert len(demand.runs(demand.comes(many))) == many
        demand.until(lambda: not demand.smart())
        assert len(demand.nodes()) == len(demand.claims()) == many, chronicle(audit.entries())
        ordinary = demand.comes(many, gated=False, prefix="plain")
        assert len(demand.runs(ordinary)) == many
    entries = audit.entries()
    assert len(made(entries)) == many  # for the gated ones, and none for those that Karpenter sees
    assert len(demand.nodes()) == len(demand.claims()) == 2 * many
    assert not claims_touched(entries)


def test_a_pod_that_asks_for_the_gate_gets_it(cluster: Lab) -> None:
    admin = cluster.admin
    policies = [each for each in yaml.safe_load_all(GATE_FILE.read_text()) if each]
    for each in policies:
        admin.apply(each)
    try:
        asks = fleet.Pod("asks", annotations={names.WAIT_FOR_CAPACITY: "true"})
        deadline = time.monotonic() + 60
        while gates(admin.create(asks.manifest())) != [names.CAPACITY_GATE]:  # it takes effect in a moment
            assert time.monotonic() < deadline
            admin.delete("pods", "asks", "default", grace_seconds=0)
            time.sleep(0.5)
        assert gates(admin.create(fleet.Pod("plain").manifest())) == []
    finally:
        for each in reversed(policies):
            admin.delete(PLURALS[each["kind"]], each["metadata"]["name"])


def gates(pod: Manifest) -> list[str]:
    return [each["name"] for each in pod["spec"].get("schedulingGates", ())]


def created(demand: Demand, pod: str) -> datetime:
    found = demand.admin.get("pods", pod, "default")
    assert found
    return datetime.fromisoformat(found["metadata"]["creationTimestamp"])


def ready(demand: Demand, node: str) -> datetime:
    found = demand.admin.get("nodes", node)
    assert found
    (condition,) = [each for each in found["status"]["conditions"] if each["type"] == "Ready"]
    return datetime.fromisoformat(condition["lastTransitionTime"])
