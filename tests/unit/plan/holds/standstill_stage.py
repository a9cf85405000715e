"""Nodes that bear taints of ours, as tests/cases/holds/standstill.yaml describes them."""

from typing import Any

import msgspec
import yaml

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured, UnstructuredMetadata
from reconciler.model.instant import timestamp
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import check
from reconciler.plan.drain.planner import drain
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.planner import plan
from reconciler.plan.scaling.planner import scaling
from tests import folders
from tests.unit.plan.drain import stage as drain_stage
from tests.unit.plan.scaling.stage import after

FILE = folders.CASES / "holds" / "standstill.yaml"
HERE, THERE = "9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21", "2f54a17b-52d1-4c0a-9f5e-0d6f6a1c7e21"

Json = dict[str, Any]


def table() -> dict[str, Json]:
    found: dict[str, Json] = yaml.safe_load(FILE.read_text())
    return found


class World:
    """A small fleet with its NodePool, in a cluster that its guard may not be for."""

    def __init__(self, case: Json) -> None:
        guard = {"guard": {"poolNames": ["*"], "clusterUID": THERE}} if case.get("elsewhere") else {}
        nodes = {name: {"labelled": True, **(said or {})} for name, said in case["nodes"].items()}
        inputs = drain_stage.World({**case, **guard, "nodes": nodes}).inputs
        observed = msgspec.structs.replace(
            inputs.observed, cluster_uid=HERE, node_pools=(_node_pool(case.get("node_pool", {})),)
        )
        self.inputs = msgspec.structs.replace(inputs, observed=observed)

    def planned(self) -> Plan:
        """By scaling and drains; no invariant is broken by it."""
        fleet = Fleet(self.inputs.observed)
        made = plan(self.inputs, fleet, (scaling, drain))
        check(self.inputs, fleet, made)
        return made

    def scene(self) -> PlanningResult:
        return PlanningResult(self.inputs, Fleet(self.inputs.observed), self.planned())


def _node_pool(said: Json) -> Unstructured:
    labels = {} if said.get("theirs") else {names.MANAGED: "true", names.POOL: "a100"}
    annotations = {names.ENVIRONMENT: said["environment"]} if "environment" in said else {}
    if "frozen" in said:
        annotations[names.FROZEN_UNTIL] = timestamp(after(said["frozen"]))
    leaving = timestamp(after(-5)) if said.get("leaving") else ""
    metadata = UnstructuredMetadata("a100", labels=labels, annotations=annotations, deletion_timestamp=leaving)
    return Unstructured("karpenter.sh/v1", "NodePool", metadata)
