"""Small clusters where pods ask about other pods, as tests/cases/fleet/{interpod,spread}.yaml describe them."""

from typing import Any

import msgspec
import yaml

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from tests import folders

Json = dict[str, Any]

FOLDER = folders.CASES / "fleet"
NODES: dict[str, Json] = {"a1": {"zone": "a"}, "a2": {"zone": "a"}, "b1": {"zone": "b"}}
ROOM = {"cpu": "100", "memory": "100Gi", "pods": "110"}


def table(name: str) -> dict[str, Json]:
    found: dict[str, Json] = yaml.safe_load((FOLDER / name).read_text())
    return found


def node_of(name: str, labels: Json, spec: Json | None = None) -> Json:
    return {
        "metadata": {"name": name, "labels": {"host": name, **labels}},
        "spec": spec or {},
        "status": {"allocatable": ROOM},
    }


def pod_of(case: Json, name: str = "new") -> Json:
    """A pod's manifest: `near`, `apart` and `spread` are its terms, `spec` what else it has."""
    metadata: Json = {"name": name, "namespace": case.get("namespace", "default"), "labels": case.get("labels", {})}
    if "made" in case:
        metadata["uid"] = "made-by-the-api-server"
    if case.get("leaving"):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    spec: Json = {"nodeName": case.get("at", ""), **case.get("spec", {})}
    affinity = dict(spec.get("affinity", {}))
    for field, terms in (("podAffinity", case.get("near")), ("podAntiAffinity", case.get("apart"))):
        if terms:
            affinity[field] = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    rules = [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **rule} for rule in case.get("spread", [])]
    status = {"phase": case["phase"]} if "phase" in case else {}
    spec |= {"affinity": affinity, "topologySpreadConstraints": rules}
    return {"metadata": metadata, "spec": spec, "status": status}


def world_of(case: Json) -> Json:
    """The objects of a case: nodes, pods, namespaces."""
    labels = {**NODES, **case.get("nodes", {})}
    specs = case.get("node_specs", {})
    nodes = [node_of(name, found, specs.get(name)) for name, found in labels.items() if found is not None]
    pods = [pod_of(each, f"p{number}") for number, each in enumerate(case.get("pods", []))]
    named = {"default": {}, **case.get("namespaces", {})}
    namespaces = [{"metadata": {"name": name, "labels": found}} for name, found in named.items()]
    return {"nodes": nodes, "pods": pods, "namespaces": namespaces}


def observed_of(world: Json, unread: list[Json] | None = None) -> Observed:
    return msgspec.convert({**world, "unread": unread or []}, Observed)


def what_if_of(world: Json) -> Snapshot:
    return Snapshot(observed_of(world))


def pod(manifest: Json) -> Pod:
    return msgspec.convert(manifest, Pod)
