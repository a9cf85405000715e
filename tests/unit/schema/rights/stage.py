"""Policies that ask for rights, and what a page of rights grants."""

from typing import Any

import msgspec
import yaml

from reconciler.model.bundle import Bundle, Text
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.desired import Declared, Desired, Manifest
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner, Pressure, PressurePolicy
from reconciler.model.problem import Origin
from reconciler.model.quantity import Percent, Quantity
from reconciler.policy.resolve import resolve
from reconciler.policy.rules.kinds import POLICY_KINDS

POOL = """\
apiVersion: gpu.scheduling/v1
kind: GpuPool
metadata: {{name: {name}}}
spec:
  mode: {mode}
  adopt: {adopt}
  suspend: {suspend}
  smartPods: {{namespace: {namespace}}}
  devices: {{model: a100, count: 8, memory: 40Gi}}
  instanceTypes: [{{name: p4d.24xlarge}}]
  nodeClassRef: {{group: {group}, kind: {kind}, name: gpu}}
"""
WISHED = {
    "name": "a100",
    "mode": "Enforce",
    "adopt": "false",
    "suspend": "false",
    "namespace": "gpu-smart-pods",
    "group": "karpenter.k8s.aws",
    "kind": "EC2NodeClass",
}
Rules = set[tuple[str, str, str, str]]  # namespace, group, resource, verb
YIELDS = (("NodePool", ""), ("PriorityClass", ""))
LOOKS = ("get", "list", "watch")


def wish(yields: tuple[tuple[str, str], ...] = (("NodePool", ""),), **changed: str) -> Desired:
    """A pool, and the kinds and namespaces of what its template yields."""
    text = POOL.format_map(WISHED | changed)
    (found,) = resolve(Bundle("r", (Text("a.yaml", text.encode()),))).wishes
    assert found.pools
    here = Origin("t", 1)
    manifests = (Manifest(kind, namespace, "x", "{}", found.pools[0].name, here, here) for kind, namespace in yields)
    return msgspec.structs.replace(found, manifests=tuple(manifests))


def scaled(wish: Desired, **changed: str) -> Desired:
    """With a NodeProvisioner for the pool a100."""
    spec = {"pool_name": "a100", "min_size": 0, "max_size": 9, "min_gpu_utilization_percent": 80}
    provisioner = NodeProvisioner(**spec, suspend=changed.get("suspend") == "true")  # type: ignore[arg-type]
    here = (("", Origin("p", 1)),)
    return msgspec.structs.replace(wish, provisioners=(Declared("NodeProvisioner", "a100", provisioner, here),))


def drained(wish: Desired, **changed: Any) -> Desired:
    """With a DrainPolicy for the pool a100."""
    policy = DrainPolicy(**{"pool_names": ["a100"], **changed})
    here = (("", Origin("p", 1)),)
    return msgspec.structs.replace(wish, drains=(Declared("DrainPolicy", "a100", policy, here),))


def pressed(wish: Desired, **changed: Any) -> Desired:
    """With a PressurePolicy for the pool a100."""
    bounds = Pressure(system=Quantity(0), watermark=Percent.parse("80%"))
    fields = {"pool_names": ["a100"], "resources": {"cpu": bounds}, "compute_unit": {"cpu": Quantity(1_000)}}
    here = (("", Origin("p", 1)),)
    policy = Declared("PressurePolicy", "a100", PressurePolicy(**{**fields, **changed}), here)
    return msgspec.structs.replace(wish, pressures=(policy,))


def granted(page: str) -> Rules:
    """What a page's roles grant; each is bound to the reconciler in the same place."""
    documents = [each for each in yaml.safe_load_all(page) if each]
    roles = [each for each in documents if each["kind"] in {"Role", "ClusterRole"}]
    bound = [(each["kind"], each["metadata"]) for each in documents if each["kind"].endswith("Binding")]
    assert [(f"{each['kind']}Binding", each["metadata"]) for each in roles] == bound
    return {
        (role["metadata"].get("namespace", ""), group, resource, verb)
        for role in roles
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def looked_at(*node_classes: str, namespace: str = "gpu-system") -> Rules:
    """What an Observed takes; of node classes only these kinds."""
    kinds = [seen for seen in RESOURCE_KINDS if seen.field != "node_classes" or seen.kind in node_classes]
    return {(seen.namespace_for(namespace), seen.group, seen.plural, verb) for seen in kinds for verb in LOOKS}


def written(*resources: tuple[str, str, str]) -> Rules:
    return {
        (namespace, group, resource, verb)
        for namespace, group, resource in resources
        for verb in ("create", "delete", "patch")
    }


def left_behind(namespace: str = "gpu-system") -> Rules:
    """What an older version made in the namespace of the controller."""
    return {(namespace, "", "pods", "delete"), (namespace, "policy", "poddisruptionbudgets", "delete")}


def waited_for(*namespaces: str) -> Rules:
    """For who waits: smart pods in these namespaces, gates and startup taints that come off, lent GPUs; Events."""
    pods = {(namespace, "", "pods", verb) for namespace in namespaces for verb in ("create", "delete")}
    return pods | TOLD | LENT | {("", "", "pods", "patch"), ("", "", "nodes", "patch")} | left_behind()


# GPUs that are lent to pods with a claim, the Bindings of these pods, and the statuses of the claims.
LENT: Rules = written(("gpu-leases", "coordination.k8s.io", "leases")) | {
    ("", "", "pods/binding", "create"),
    ("", "gpu.scheduling", "gpuclaims/status", "patch"),
}
# Events, of whatever was written.
TOLD: Rules = {("", "events.k8s.io", "events", verb) for verb in ("create", "patch")}


def kept(namespace: str = "gpu-system") -> Rules:
    """What anybody needs who acts at all: the Lease and the memory."""
    leases = {(namespace, "coordination.k8s.io", "leases", verb) for verb in ("create", "update")}
    memory = {(namespace, "", "configmaps", verb) for verb in ("create", "delete", "get", "list", "update")}
    return leases | memory


def told_where(namespace: str = "gpu-system") -> Rules:
    return {(namespace, "", "configmaps", "patch")}


STATUSES = {("", "gpu.scheduling", f"{kind.plural}/status", "patch") for kind in POLICY_KINDS}


# What one pool in mode Enforce asks for that yields a NodePool.
NODE_POOLS = written(("", "karpenter.sh", "nodepools")) | waited_for("gpu-smart-pods")


def acted(page: str) -> Rules:
    """What a page grants beside what is kept."""
    found = granted(page)
    assert kept() | told_where() <= found
    return found - kept() - told_where()
