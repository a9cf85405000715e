"""A pod of a tenant that bears all marks of a smart pod keeps nobody waiting, and nobody tries to delete it."""

import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from reconciler.model import names
from reconciler.plan.capacity.requests import CapacityRequest
from tests.lab import fleet
from tests.lab.api import Manifest
from tests.lab.audit import WRITES
from tests.lab.identities import RECONCILER
from tests.lab.lab import Lab
from tests.stages.smart import Demand, deleted, made

TENANT, CPU_NODE, DEADLINE_SECONDS = "default", "cpu-1", 20
TYPE = "p4d.24xlarge"


@pytest.fixture
def demand(cluster: Lab, tmp_path: Path) -> Iterator[Demand]:
    made_here = Demand(cluster, tmp_path)
    yield made_here
    made_here.site.clean()


def forged() -> Manifest:
    """On a node where no pool is. Taken for one of ours, it is as old as these may be, and got no machine."""
    request = CapacityRequest("k", "a100", "a100", 8, "demand", TYPE, "on-demand")
    labels = {names.COMPONENT: names.SMART_SCHEDULER, names.POOL: "a100", names.MANAGED: "true"}
    annotations = {names.ORIGINAL_REQUEST: msgspec.json.encode(request).decode(), names.PHASE: "Scheduled"}
    pod = fleet.Pod(request.name, TENANT, labels=labels, annotations=annotations).on(CPU_NODE)
    return pod.with_spec(tolerations=[{"operator": "Exists"}]).manifest()


def test_a_forged_smart_pod_keeps_nobody_waiting_and_is_left_alone(demand: Demand) -> None:
    demand.write(smartPods={"activeDeadlineSeconds": DEADLINE_SECONDS}, capacityTypes=["on-demand"])
    node = fleet.Shape(pool="", labels={"karpenter.sh/nodepool": "none"}).node(CPU_NODE, "zone-a")
    demand.admin.create(node)
    pod = demand.admin.create(forged())
    time.sleep(DEADLINE_SECONDS + 1)
    audit = demand.lab.audit()
    with demand.site.replica() as replica:
        replica.wait_until_leading()
        demand.admin.wait_for("nodepools", "a100", bool)
        assert len(demand.runs(demand.comes(1))) == 1
        demand.until(lambda: not demand.smart())
    entries = audit.entries()
    assert len(made(entries)) == len(deleted(entries)) == 1
    tried = [each for each in entries if each.write.user == RECONCILER and each.write.verb in WRITES]
    assert [
        each for each in tried if pod["metadata"]["name"] in each.write.object and TENANT in each.write.object
    ] == []
