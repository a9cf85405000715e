"""What the attempts are tried on: objects of others, each of which somebody would miss; and some of ours."""

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

import yaml

from reconciler.controller.policies import check_bundle
from reconciler.model import names
from reconciler.model.bundle import Bundle, Text
from tests.lab import capacity, fleet
from tests.lab.api import Manifest
from tests.lab.lab import Lab
from tests.stages.controlled import POOL

TENANT = "team-a"
ROLE = "node-role.kubernetes.io/control-plane"
THEIR_TAINT = {"key": "example.com/maintenance", "value": "true", "effect": "NoSchedule"}
FROZEN = {names.FROZEN_UNTIL: "2030-01-01T00:00:00Z"}
OURS = {names.MANAGED: "true"}
SMART_PODS = names.SMART_PODS_NAMESPACE


@cache
def _smart_pod() -> str:
    policy = {"apiVersion": "gpu.scheduling/v1", "kind": "GpuPool", "metadata": {"name": "a100"}, "spec": POOL}
    bundle = Bundle("r", (Text("pool.yaml", yaml.safe_dump(policy).encode()),), ())
    resolved = check_bundle(bundle).resolved
    assert not resolved.problems, resolved.problems
    return resolved.wishes[0].smart_pods[0].body


def smart_pod(name: str = "smart-gpu-scheduler-a100-x", **spec: Any) -> Manifest:
    """As the default template yields it, with other fields in its spec."""
    found: Manifest = json.loads(_smart_pod())
    found["metadata"]["name"] = name
    found["spec"] |= {"priorityClassName": "", **spec}
    return found


def container(**fields: Any) -> list[Manifest]:
    """That of a smart pod, with other fields."""
    (found,) = smart_pod()["spec"]["containers"]
    return [{**found, **fields}]


def secured(**fields: Any) -> list[Manifest]:
    """That of a smart pod, with other fields in its security context."""
    (found,) = smart_pod()["spec"]["containers"]
    return [{**found, "securityContext": {**found["securityContext"], **fields}}]


def priority_class(name: str, value: int, **fields: Any) -> Manifest:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**head, "metadata": {"name": name, "labels": OURS}, "value": value, **fields}


def config_map(name: str, namespace: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "b"}}


def lease(name: str, namespace: str) -> Manifest:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": {}}


def event(source: str) -> Manifest:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "told", "namespace": "default"},
        "eventTime": "2026-11-02T08:00:00.000000Z",
        "reportingController": source,
        "reportingInstance": "x",
        "action": "Tell",
        "reason": "Told",
        "type": "Normal",
        "note": "it is so",
        "regarding": {"kind": "Node", "name": "gpu-0"},
    }


def node_pool(name: str, **labels: str) -> Manifest:
    found = capacity.NodePool(name, [capacity.P4D]).manifest()
    found["metadata"]["labels"] = labels
    return found


def _budget() -> Manifest:
    head = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "x", "namespace": TENANT}}
    return {**head, "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "x"}}}}


def _claim() -> Manifest:
    requirement = {"key": names.CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}
    spec = {"nodeClassRef": POOL["nodeClassRef"], "requirements": [requirement]}
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "theirs"}, "spec": spec}


def set_up(lab: Lab) -> None:
    """Nobody else writes: neither a scheduler nor a kubelet."""
    lab.stop_parts()
    lab.admin.apply(capacity.node_class())
    for each in (*_nodes(), *_pods(), *_others()):
        lab.admin.apply(each)


def _nodes() -> Iterator[Manifest]:
    gpu = fleet.Shape(labels={"example.com/team": "search"}, annotations=FROZEN, taints=[THEIR_TAINT], alive=False)
    yield gpu.node("gpu-0", "eu-1a")
    plain = fleet.Shape(labels={ROLE: ""}, taints=[{"key": ROLE, "effect": "NoSchedule"}], alive=False)
    control_plane = plain.node("control-plane-0", "eu-1a")
    for label in (names.KARPENTER_POOL, names.CAPACITY_TYPE):
        del control_plane["metadata"]["labels"][label]
    yield control_plane


def _pods() -> Iterator[Manifest]:
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "other", "namespace": SMART_PODS}}
    running = fleet.Pod("running", TENANT, labels={"app": "train"}, annotations={"example.com/a": "b"})
    yield running.on("gpu-0").manifest()
    yield fleet.Pod("gated", TENANT).gated("example.com/quota", names.CAPACITY_GATE).manifest()
    yield fleet.Pod("theirs", "kube-system").manifest()
    yield {**smart_pod(), "metadata": {"name": "reconciler-0", "namespace": names.OWN_NAMESPACE}}
    old = smart_pod("smart-gpu-scheduler-a100-old")
    old["metadata"]["namespace"] = names.OWN_NAMESPACE
    yield old
    yield smart_pod("smart-gpu-scheduler-a100-made")


def _others() -> tuple[Manifest, ...]:
    secret = {"apiVersion": "v1", "kind": "Secret", "stringData": {"token": "x"}}
    return (
        _budget(),
        _claim(),
        node_pool("theirs"),
        node_pool("ours", **OURS),
        {**priority_class("theirs", 7), "metadata": {"name": "theirs"}},
        priority_class("ours", -7),
        config_map("theirs", names.OWN_NAMESPACE),
        config_map("reconciler-memory", names.OWN_NAMESPACE),
        lease("reconciler", names.OWN_NAMESPACE),
        lease("others", names.OWN_NAMESPACE),
        {**secret, "metadata": {"name": "reconciler-git", "namespace": names.OWN_NAMESPACE}},
    )
