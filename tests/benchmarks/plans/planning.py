"""Plans a fleet of a given size in a process of its own, and prints what that took: python -m ... NODES PODS."""

import gc
import json
import sys
import time
import tracemalloc
from typing import Any

import msgspec

from reconciler.controller.policies import check_bundle
from reconciler.fleet.fleet import Fleet
from reconciler.kube.decode import page
from reconciler.model import names
from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import ManagedFields, Unstructured, UnstructuredMetadata
from reconciler.model.desired import Desired, Manifest
from reconciler.model.instant import Instant
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.karpenter.template_hash import template_hash
from reconciler.plan.planner import plan
from tests.benchmarks.big_fleet import KINDS, BigFleet

ROUNDS = 20


def main(nodes: int, pods: int) -> dict[str, float]:
    fleet = BigFleet(nodes=nodes, pods=pods)
    desired = wished(fleet)
    inputs = Inputs(desired, observed(fleet, desired), Instant(1_793_613_600_000))
    started = time.perf_counter()
    what_if = Fleet(inputs.observed)
    decided = plan(inputs, what_if)
    first_ms = (time.perf_counter() - started) * 1000
    if decided.decisions:
        raise SystemExit(f"something was to be done, so this measures another thing: {decided.decisions[0]}")
    gc.collect()
    gc.freeze()
    again_ms = min(timed(inputs, what_if) for _ in range(ROUNDS))
    tracemalloc.start()
    plan(inputs, what_if)
    peak_kib = tracemalloc.get_traced_memory()[1] / 1024
    return {"first_ms": round(first_ms, 1), "again_ms": round(again_ms, 2), "peak_kib": round(peak_kib, 1)}


def timed(inputs: Inputs, fleet: Fleet) -> float:
    started = time.perf_counter()
    plan(inputs, fleet)
    return (time.perf_counter() - started) * 1000


def wished(fleet: BigFleet) -> Desired:
    """A GpuPool for each NodePool of the fleet, rendered."""
    policies = [
        {
            "apiVersion": "gpu.scheduling/v1",
            "kind": "GpuPool",
            "metadata": {"name": each["metadata"]["name"]},
            "spec": {
                "mode": "Enforce",
                "devices": {"model": "a100", "count": 8, "memory": "40Gi"},
                "instanceTypes": [{"name": "p4d.24xlarge", "pricePerHour": {"on-demand": "21.96"}}],
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
            },
        }
        for each in fleet.objects("NodePool")
    ]
    texts = [Text(f"policies/{number:03}.json", json.dumps(each).encode()) for number, each in enumerate(policies)]
    found = check_bundle(Bundle("r", tuple(texts))).resolved
    if found.problems:
        raise SystemExit(str(found.problems[0]))
    return found.wishes[0]


def observed(fleet: BigFleet, desired: Desired) -> Observed:
    """The fleet, its NodePools as they stand once ours were applied."""
    found: dict[str, list[Any]] = {}
    by_kind = {each.kind: each for each in reversed(RESOURCE_KINDS) if not each.selector}
    for kind in KINDS:
        if kind != "NodePool":
            for raw in fleet.pages(kind):
                found.setdefault(by_kind[kind].field, []).extend(page(by_kind[kind], raw).items)
    fields: dict[str, Any] = {field: tuple(objects) for field, objects in found.items()}
    ours = [applied(each, desired.environment) for each in desired.manifests]
    pools = tuple(each for each in ours if each.kind == "NodePool")
    return Observed(node_pools=pools, kept=tuple(each for each in ours if each.kind != "NodePool"), **fields)


def applied(manifest: Manifest, environment: str) -> Unstructured:
    """What templates yield, as it stands in the cluster."""
    body = msgspec.json.decode(manifest.body.encode())
    rest = {key: value for key, value in body.items() if key not in {"apiVersion", "kind", "metadata"}}
    annotations = {names.ENVIRONMENT: environment}
    if manifest.kind == "NodePool":
        annotations |= {names.POOL_HASH: template_hash(body["spec"]["template"]), names.POOL_HASH_VERSION: "v3"}
    metadata = UnstructuredMetadata(
        manifest.name,
        uid=f"uid-{manifest.name}",
        resource_version="1",
        labels={names.MANAGED: "true", **({names.POOL: manifest.pool} if manifest.pool else {})},
        annotations=annotations,
        managed_fields=(ManagedFields(names.FIELD_MANAGER, "Apply", fields=owned_fields(rest)),),
    )
    return Unstructured(body["apiVersion"], manifest.kind, metadata, rest)


def owned_fields(value: Any) -> Any:
    return {f"f:{key}": owned_fields(each) for key, each in value.items()} if isinstance(value, dict) else {}


if __name__ == "__main__":
    print(json.dumps(main(int(sys.argv[1]), int(sys.argv[2]))))
