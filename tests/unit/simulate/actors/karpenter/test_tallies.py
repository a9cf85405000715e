"""What Karpenter keeps of its machines is what a walk over all of them would find."""

import random
from typing import Any

import pytest

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.simulate.actors.karpenter.cluster_state import Pods
from reconciler.simulate.actors.karpenter.machines import DISRUPTED, EXISTING, Machines
from reconciler.simulate.objects import ObjectWrite

POOLS = ("a", "b")


def claim(chance: random.Random, name: str, before: Any) -> Any:
    """In any state, of the pool that it is always of; what has a node keeps it."""
    status: Any = {}
    has_node = before is not None and "nodeName" in before["status"]
    if has_node or chance.random() < 0.8:
        conditions = [
            {"type": each, "status": "True"} for each in ("Initialized", "InstanceTerminating") if chance.random() < 0.6
        ]
        status = {"providerID": name, "capacity": {"cpu": str(chance.randrange(1, 9))}, "conditions": conditions}
        status |= {"nodeName": f"node-{name}"} if has_node or chance.random() < 0.8 else {}
    leaving = {"deletionTimestamp": "2026-11-16T08:00:00Z"} if chance.random() < 0.2 else {}
    labels = {names.KARPENTER_POOL: POOLS[int(name[1:]) % 2]}
    return {"kind": "NodeClaim", "metadata": {"name": name, "labels": labels, **leaving}, "status": status}


def node(chance: random.Random, name: str) -> Any:
    ready = {"type": "Ready", "status": chance.choice(["True", "Unknown"])}
    return {"kind": "Node", "metadata": {"name": name}, "spec": {}, "status": {"conditions": [ready]}}


def says(body: Any, name: str) -> bool:
    conditions = (body or {}).get("status", {}).get("conditions", ())
    return any(each["type"] == name and each["status"] == "True" for each in conditions)


def walked(machines: Machines, pool: str) -> tuple[int, int, dict[str, int]]:
    many = disrupted = 0
    used = {"nodes": 0, "cpu": 0}
    for body in machines.of_pool(pool):
        name = body["metadata"]["name"]
        if says(body, "Initialized") and not says(body, "InstanceTerminating"):
            many += 1
            disrupted += machines.is_leaving(name) or not says(machines.node_of(body), "Ready")
        if not machines.is_leaving(name) and body["status"].get("providerID"):
            used["nodes"] += 1
            used["cpu"] += 1_000 * int(body["status"]["capacity"]["cpu"])
    return many, disrupted, used


@pytest.mark.parametrize("seed", range(20))
def test_tallies_are_what_a_walk_finds(seed: int) -> None:
    chance = random.Random(seed)
    machines = Machines()
    for _ in range(200):
        name = f"c{chance.randrange(8)}"
        match chance.randrange(6):
            case 0 | 1:
                machines.take_claim(name, claim(chance, name, machines.claims.get(name)))
            case 2:
                machines.take_claim(name, None)
            case 3:
                machines.take_node(f"node-{name}", node(chance, f"node-{name}") if chance.random() < 0.8 else None)
            case 4 if name in machines.claims:
                machines.mark(name)
            case 5:
                machines.unmark(name)
        for pool in POOLS:
            used = {name: machines.total(pool, name) for name in ("nodes", "cpu")}
            told = machines.total(pool, EXISTING), machines.total(pool, DISRUPTED), used
            assert told == walked(machines, pool)
            bare = {each["metadata"]["name"] for each in machines.without({"node-c1"}, pool)}
            there = (each for each in machines.of_pool(pool) if each["status"].get("nodeName", "node-c1") != "node-c1")
            assert bare >= {each["metadata"]["name"] for each in there}


@pytest.mark.parametrize("seed", range(10))
def test_a_node_is_busy_while_a_pod_on_it_would_have_to_move(seed: int) -> None:
    chance = random.Random(seed)
    bodies = dict[str, Any]()
    pods = Pods(lambda _: None)
    for version in range(200):
        name = f"p{chance.randrange(6)}"
        before = bodies.pop(name, None)
        after = None
        if before is None or chance.random() < 0.7:
            after = body_of(chance, name, version, before)
            bodies[name] = after
        pods.take(ObjectWrite(("Pod", "default", name), before, after), Instant(version))
        moving = {each["spec"]["nodeName"] for each in bodies.values() if each["spec"]["nodeName"] and moves(each)}
        assert pods.busy.keys() == moving


def body_of(chance: random.Random, name: str, version: int, before: Any) -> Any:
    owner = (
        [{"kind": chance.choice(["DaemonSet", "Job"]), "name": "o"}]
        if before is None
        else before["metadata"]["ownerReferences"]
    )
    node_name = (
        before["spec"]["nodeName"]
        if before is not None and before["spec"]["nodeName"]
        else chance.choice(["", "n1", "n2"])
    )
    leaving = {"deletionTimestamp": "2026-11-16T08:00:00Z"} if chance.random() < 0.2 else {}
    metadata = {"name": name, "uid": name, "resourceVersion": str(version), "ownerReferences": owner, **leaving}
    phase = chance.choice(["Pending", "Running", "Succeeded"])
    return {"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node_name}, "status": {"phase": phase}}


def moves(body: Any) -> bool:
    metadata = body["metadata"]
    is_over = "deletionTimestamp" in metadata or body["status"]["phase"] == "Succeeded"
    return not is_over and metadata["ownerReferences"][0]["kind"] != "DaemonSet"
