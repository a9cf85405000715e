"""What NodeClaims and Nodes look like, from the purchase until pods can run there."""

from collections.abc import Mapping
from typing import Any

from reconciler.fleet.amounts import CPU
from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.plan.karpenter.template_hash import HASH_VERSION, template_hash
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cloud import matches_demands
from reconciler.simulate.actors.karpenter.conditions import (
    INITIALIZED,
    LAUNCHED,
    REGISTERED,
    new_condition,
    with_condition,
)
from reconciler.simulate.actors.karpenter.instance_types import KarpenterInstanceType, instance_types
from reconciler.simulate.actors.karpenter.provisioning.new_claim import NewNodeClaim
from reconciler.simulate.actors.karpenter.requirements import WELL_KNOWN, joined, one_of, some_value, written
from reconciler.simulate.market import MarketOffering

FINALIZER = "karpenter.sh/termination"
REGISTERED_LABEL = "karpenter.sh/registered"
INITIALIZED_LABEL = "karpenter.sh/initialized"
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}

_FROM_TEMPLATE = ("taints", "startupTaints", "nodeClassRef", "expireAfter", "terminationGracePeriod")


def claim_of(opened: NewNodeClaim, name: str, now: Instant) -> Object:
    """What is asked of the cloud: not how its node is to be called, which only mattered while pods were looked at."""
    pool, template = opened.pool, opened.pool.spec.get("template") or {}
    types = one_of(each.machine.name for each in opened.sold)
    sold = [each for one in opened.sold for each in one.offerings if matches_demands(each, opened.demands)]
    capacity_types = one_of(each.capacity_type for each in sold)
    settled = {key: allowed for key, allowed in opened.demands.items() if key != names.HOSTNAME}
    demands = joined(settled, {names.INSTANCE_TYPE: types, names.CAPACITY_TYPE: capacity_types})
    custom = {key: some_value(allowed) for key, allowed in demands.items() if key not in WELL_KNOWN}
    labels = {key: value for key, value in sorted(custom.items()) if value} | pool.labels
    requests = {resource: _quantity(resource, amount) for resource, amount in sorted(opened.used.items()) if amount}
    claim = _claim(name, labels, template, pool.uid)
    spec = {**claim["spec"], "requirements": written(demands), "resources": {"requests": requests}}
    awaited = [
        new_condition(each, now, "Unknown", "AwaitingReconciliation") for each in (LAUNCHED, REGISTERED, INITIALIZED)
    ]
    return {**claim, "spec": spec, "status": {"conditions": awaited}}


def launched(claim: Object, machine: KarpenterInstanceType, offering: MarketOffering, now: Instant) -> Object:
    """A patch: what the cloud answered."""
    name = claim["metadata"]["name"]
    labels = machine.labels | dict(offering.labels) | _where(offering)
    status = {
        "providerID": f"imagined:///{name}",
        "capacity": machine.capacity,
        "allocatable": machine.allocatable,
        "conditions": with_condition(claim, new_condition(LAUNCHED, now)),
    }
    return {"metadata": {"labels": labels | claim["metadata"]["labels"]}, "status": status}


def node_of(claim: Object, now: Instant) -> Object:
    """The Node when it has just joined: its devices are not published yet."""
    metadata, spec, status = claim["metadata"], claim.get("spec") or {}, claim["status"]
    devices = {name: "0" for name in status["capacity"] if "/" in name}
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "name": metadata["name"], "uid": metadata["uid"]}
    joined_labels = {names.HOSTNAME: metadata["name"], REGISTERED_LABEL: "true"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": metadata["name"],
            "labels": metadata["labels"] | joined_labels,
            "annotations": dict(metadata.get("annotations") or {}),
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {
            "providerID": status["providerID"],
            "taints": [*(spec.get("taints") or ()), *(spec.get("startupTaints") or ()), NOT_READY],
        },
        "status": {
            "capacity": status["capacity"] | devices,
            "allocatable": status["allocatable"] | devices,
            "conditions": [new_condition("Ready", now, "False", "KubeletNotReady")],
        },
    }


def born(node_pool: Object, offering: MarketOffering, name: str, now: Instant) -> tuple[Object, Object]:
    """A NodeClaim and its Node as they are once pods can run there, of a NodePool as it stands."""
    (machine,) = instance_types((offering,), {})
    metadata, template = node_pool["metadata"], (node_pool.get("spec") or {}).get("template") or {}
    labels = (template.get("metadata") or {}).get("labels") or {}
    claim = _claim(name, labels | {names.KARPENTER_POOL: metadata["name"]}, template, metadata.get("uid", ""))
    patch = launched(claim, machine, offering, now)
    conditions = [new_condition(each, now) for each in (LAUNCHED, REGISTERED, INITIALIZED)]
    status = {**patch["status"], "nodeName": name, "conditions": conditions}
    full = {**claim, "metadata": {**claim["metadata"], "labels": patch["metadata"]["labels"]}, "status": status}
    node = node_of({**full, "metadata": {"uid": "", **full["metadata"]}}, now)
    node["metadata"]["labels"][INITIALIZED_LABEL] = "true"
    node["metadata"].pop("ownerReferences")  # the claim has no uid before it is stored
    node["spec"]["taints"] = list((template.get("spec") or {}).get("taints") or ())
    node["status"] = {
        "capacity": machine.capacity,
        "allocatable": machine.allocatable,
        "conditions": [new_condition("Ready", now, reason="KubeletReady")],
    }
    return full, node


def _claim(name: str, labels: Mapping[str, str], template: Mapping[str, Any], pool_uid: str) -> Object:
    spec = template.get("spec") or {}
    hashed = {names.POOL_HASH: template_hash(template), names.POOL_HASH_VERSION: HASH_VERSION}
    annotations = dict((template.get("metadata") or {}).get("annotations") or {}) | hashed
    pool = labels[names.KARPENTER_POOL]
    owner = {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "name": pool, "uid": pool_uid}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {
            "name": name,
            "labels": dict(labels),
            "annotations": annotations,
            "finalizers": [FINALIZER],
            "ownerReferences": [owner],
        },
        "spec": {key: spec[key] for key in _FROM_TEMPLATE if key in spec},
    }


def _where(offering: MarketOffering) -> dict[str, str]:
    found = {names.ZONE: offering.zone, names.CAPACITY_TYPE: offering.capacity_type}
    return {key: value for key, value in found.items() if value}


def _quantity(resource: str, amount: int) -> str:
    return f"{amount}m" if resource == CPU else str(amount)
