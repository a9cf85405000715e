"""What can go wrong while a smart pod asks: nothing on offer, a machine or the pod taken away, a controller killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.identities import NAMESPACE
from tests.lab.lab import Lab
from tests.stages.smart import Demand, claims_touched, made

OFFERED = {"name": "p4d.24xlarge"}
NOT_OFFERED = {"name": "p9.96xlarge", "capacity": {"cpu": "96", "memory": "1152Gi"}}
SLOW = "12s"  # until a machine registers: time in which things go wrong


@pytest.fixture
def demand(cluster: Lab, tmp_path: Path) -> Iterator[Demand]:
    here = Demand(cluster, tmp_path)
    yield here
    here.site.clean()


def test_a_type_that_is_not_offered_falls_back_and_a_pool_without_any_recovers_when_it_is_changed(
    demand: Demand,
) -> None:
    demand.write(instanceTypes=[NOT_OFFERED, OFFERED])
    other = demand.of("b100")
    other.write(instanceTypes=[NOT_OFFERED], smartPods={"maxRetryAttempts": 0})
    audit = demand.lab.audit()
    with demand.site.replica() as replica:
        replica.wait_until_leading()
        (first,), (second,) = demand.comes(1), other.comes(1, prefix="other")
        (node,) = demand.runs([first])
        assert demand.retries(made(audit.entries())) == [0, 0, 1]
        waits = demand.admin.wait_for("pods", second, lambda pod: _waits_for(pod).endswith("none-to-be-had"), "default")
        assert not fleet.is_running(waits)
        assert "CapacityAttemptsSpent" in {each["reason"] for each in demand.events(second)}
        other.write(instanceTypes=[OFFERED])
        other.runs([second])
        demand.until(lambda: not demand.smart())
    assert demand.type_of(node) == OFFERED["name"]
    assert len(demand.claims()) == 2


def test_killed_at_each_phase_it_goes_on(demand: Demand) -> None:
    demand.slowly(SLOW)
    demand.write()
    audit = demand.lab.audit()
    with demand.site.replica() as replica:
        replica.wait_until_leading()
        demand.admin.wait_for("nodepools", "a100", bool)
        (pod,) = demand.comes(1)
        demand.until(demand.smart)  # Pending
    demand.site.end_term()
    with demand.site.replica():
        demand.until(demand.claims)
        demand.until(lambda: _annotated(demand.smart(), names.NODE_CLAIM))  # its machine is on its way
    demand.site.end_term()
    demand.until(lambda: any(each["spec"].get("nodeName") for each in demand.smart()))  # Scheduled, and nobody there
    with demand.site.replica():
        demand.runs([pod])
        demand.until(lambda: not demand.smart())
    entries = audit.entries()
    assert len(made(entries)) == 1
    assert len(demand.nodes()) == len(demand.claims()) == 1
    assert not claims_touched(entries)


def test_what_others_take_away_is_asked_for_again_and_never_twice(demand: Demand) -> None:
    demand.slowly(SLOW)
    demand.write()
    audit = demand.lab.audit()
    with demand.site.replica() as replica:
        replica.wait_until_leading()
        demand.admin.wait_for("nodepools", "a100", bool)
        first, second = demand.comes(2)
        demand.until(lambda: len(_annotated(demand.smart(), names.NODE_CLAIM)) == 2)
        taken, other = sorted(each["metadata"]["name"] for each in demand.smart())
        demand.admin.delete("nodeclaims", _annotated(demand.smart(), names.NODE_CLAIM)[taken])
        demand.admin.delete("pods", other, NAMESPACE, grace_seconds=0)
        demand.runs([first, second])
        demand.until(lambda: not demand.smart())
    assert len(demand.claims()) == 2  # and no more; KWOK brings up the node of a machine that was deleted before, too
    assert not claims_touched(audit.entries())


def test_without_smart_pods_nobody_buys_for_gated_pods(demand: Demand) -> None:
    demand.write()
    with demand.site.replica() as replica:
        replica.wait_until_leading()
        demand.admin.wait_for("nodepools", "a100", bool)
    demand.comes(3)
    demand.comes(1, gated=False, prefix="seen")
    demand.until(demand.nodes)  # Karpenter has looked at all that it sees by then, and nobody opens that node
    assert len(demand.claims()) == 1


def _waits_for(pod: Manifest | None) -> str:
    return str(((pod or {}).get("metadata", {}).get("annotations") or {}).get(names.WAITS_FOR, ""))


def _annotated(pods: list[Manifest], key: str) -> dict[str, str]:
    """By name, those that bear the annotation."""
    told = {each["metadata"]["name"]: each["metadata"].get("annotations", {}).get(key) for each in pods}
    return {name: value for name, value in told.items() if value}
