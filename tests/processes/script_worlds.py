"""The folders that transcripts run in: a repository of policies, and a cluster as kubectl prints it."""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.controller.policies import Origins, check
from reconciler.model import names
from reconciler.plan.karpenter.template_hash import template_hash
from tests.lab import capacity, fleet
from tests.lab.places import REPOSITORY

Manifest = dict[str, Any]

CLUSTER_UID = "9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21"  # that of the guard in policies/overlays/prod
CREATED = "2026-11-01T08:00:00Z"
AUTOSCALED = (
    "--max-empty-bulk-delete=25",
    "--scale-down-unneeded-time=5m0s",
    "--scale-down-utilization-threshold=0.65",
    "--scale-down-delay-after-add=15m",
    "--skip-nodes-with-local-storage=false",
    "--cores-total=96:4000",
    "--gpu-total=nvidia-tesla-a100:16:256",
)
TAINT = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}


def pull_request(folder: Path) -> None:
    """The example fleet in production, and a branch that edits a taint and a target."""
    shutil.copytree(REPOSITORY / "policies", folder / "policies")
    _git(folder, "init", "--quiet", "--initial-branch=main")
    _commit(folder, "The fleet as it is")
    (folder / "cluster.json").write_text(json.dumps(_listed(_fleet(folder)), indent=1))
    policy = folder / "policies" / "base" / "a100-training.yaml"
    edited = policy.read_text()
    edited = edited.replace(
        '"true", effect: NoSchedule}]',
        '"true", effect: NoSchedule}, {key: dedicated, value: training, effect: NoSchedule}]',
    )
    policy.write_text(edited.replace("minGPUUtilizationPercent: 70", "minGPUUtilizationPercent: 80"))


def production_cluster() -> str:
    """The cluster of the example policies, which examples/production shows."""
    return json.dumps(_listed(_fleet(REPOSITORY)), separators=(",", ":"), sort_keys=True).replace("},{", "},\n{") + "\n"


def foreign(folder: Path) -> None:
    """A cluster with NodePools that somebody made by hand, and no policies yet."""
    pools = [_foreign_pool("train"), _foreign_pool("web", capacity.CPU_ONLY)]
    nodes = [_Node("train-0", "train", capacity.P4D, pods=1), _Node("train-1", "train", capacity.P4D)]
    found = [*pools, *(each for node in nodes for each in node.manifests(pools[0]))]
    (folder / "cluster.json").write_text(json.dumps(_listed([_namespace(), *found, _kwok_class()]), indent=1))


def autoscaled(folder: Path) -> None:
    """The same, of which a Cluster Autoscaler took nodes away until now."""
    foreign(folder)
    container = {"name": "autoscaler", "image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.32.0"}
    command = ["./cluster-autoscaler", "--v=4", "--expander=least-waste", *AUTOSCALED]
    spec = {"template": {"spec": {"containers": [{**container, "command": command}]}}}
    metadata = {"name": "cluster-autoscaler", "namespace": "kube-system"}
    found = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
    (folder / "autoscaler.json").write_text(json.dumps(found, indent=1))


def examples(folder: Path) -> None:
    """The stories for the simulator."""
    shutil.copytree(REPOSITORY / "examples", folder / "examples")


def nowhere(_: Path) -> None:
    """Nothing at all: where somebody is who has just installed it."""


WORLDS: Mapping[str, Callable[[Path], None]] = {
    "pull-request": pull_request,
    "foreign": foreign,
    "autoscaled": autoscaled,
    "examples": examples,
    "nowhere": nowhere,
}


class _Node:
    """A node with its NodeClaim and its pods, `pods` of them, which ask for all of its GPUs together."""

    def __init__(self, name: str, pool: str, kind: capacity.InstanceType, pods: int = 0, **annotations: str) -> None:
        self.name, self.pool, self.kind, self.pods = name, pool, kind, pods
        self.annotations = {f"karpenter.sh/{key.replace('_', '-')}": value for key, value in annotations.items()}

    def manifests(self, node_pool: Manifest) -> Iterator[Manifest]:
        capacity_type = "spot" if "spot" in self.kind.prices and self.kind is capacity.G6 else "on-demand"
        memory = {"nvidia.com/gpu.memory": "40960"} if self.kind.gpus else {}
        shape = fleet.Shape(self.kind, self.pool, capacity_type, labels=memory, taints=[TAINT], alive=False)
        node = shape.node(self.name, "eu-1a")
        node["metadata"] |= _identity(f"node-{self.name}")
        node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        node["spec"]["providerID"] = f"kwok://{self.name}"
        yield node
        yield self._claim(node, node_pool)
        yield self._node_agent()
        for number in range(self.pods):
            pod = fleet.Pod(f"{self.name}-job-{number}", "team-a", gpus=self.kind.gpus // self.pods, cpu="8").on(
                self.name
            )
            made: Manifest = pod.tolerating(TAINT["key"]).manifest()
            made["metadata"] |= _identity(f"pod-{self.name}-{number}")
            made["metadata"]["annotations"] = self.annotations
            made["metadata"]["ownerReferences"] = [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "uid-job", "controller": True}
            ]
            made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            yield made

    def _node_agent(self) -> Manifest:
        made: Manifest = fleet.Pod(f"node-agent-{self.name}", "kube-system").on(self.name).manifest()
        made["metadata"] |= _identity(f"agent-{self.name}")
        owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "node-agent", "uid": "uid-agent"}
        made["metadata"]["ownerReferences"] = [owner | {"controller": True}]
        made["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        return made

    def _claim(self, node: Manifest, node_pool: Manifest) -> Manifest:
        hashes = {key: node_pool["metadata"]["annotations"][key] for key in (names.POOL_HASH, names.POOL_HASH_VERSION)}
        conditions = ("Launched", "Registered", "Initialized", "Ready")
        template = node_pool["spec"]["template"]["spec"]
        return {
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodeClaim",
            "metadata": {
                "name": self.name,
                "labels": node["metadata"]["labels"],
                "annotations": hashes,
                **_identity(f"claim-{self.name}"),
            },
            "spec": {key: template[key] for key in ("nodeClassRef", "expireAfter")},
            "status": {
                "nodeName": self.name,
                "providerID": f"kwok://{self.name}",
                "allocatable": node["status"]["allocatable"],
                "conditions": [{"type": each, "status": "True"} for each in conditions],
            },
        }


def _fleet(folder: Path) -> list[Manifest]:
    wish = check(Origins((folder / "policies",))).resolved.wish("prod")
    assert wish
    pools = {each.name: _applied(json.loads(each.body), each.pool) for each in wish.manifests}
    training = [
        *(_Node(f"train-{number:02}", "a100-training", capacity.P4D, pods=2) for number in range(6)),
        *(_Node(f"train-{number:02}", "a100-training", capacity.P4D, 1, do_not_disrupt="true") for number in (6, 7)),
        *(_Node(f"train-{number:02}", "a100-training", capacity.P4D) for number in range(8, 12)),
    ]
    inference = [_Node(f"infer-{number}", "l4-inference", capacity.G6, pods=4) for number in range(6)]
    found = [each for node in [*training, *inference] for each in node.manifests(pools[node.pool])]
    return [_namespace(), *map(_node_class, ("gpu-a100", "gpu-l4")), *pools.values(), *found]


def _node_class(name: str) -> Manifest:
    version, kind = "karpenter.k8s.aws/v1", "EC2NodeClass"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, **_identity(f"class-{name}")}, "spec": {}}


def _kwok_class() -> Manifest:
    made: Manifest = capacity.node_class()
    made["metadata"] |= _identity("class-lab")
    return made


def _applied(manifest: Manifest, pool: str) -> Manifest:
    """An object as it stands when we applied it; a NodePool when Karpenter has seen it, too."""
    is_seen = manifest["kind"] == "NodePool"
    manifest["metadata"] |= {
        "labels": {names.MANAGED: "true", **({names.POOL: pool} if pool else {})},
        "annotations": {names.ENVIRONMENT: "prod", **(_hashes(manifest) if is_seen else {})},
        **_identity(f"pool-{pool}" if pool else manifest["metadata"]["name"]),
    }
    return manifest


def _foreign_pool(name: str, kind: capacity.InstanceType = capacity.P4D) -> Manifest:
    pool = capacity.NodePool(name, [kind], taints=[TAINT], labels={"team": "research"})
    made: Manifest = pool.manifest()
    made["spec"] |= {"weight": 10}
    made["metadata"] |= {"annotations": _hashes(made), **_identity(f"pool-{name}")}
    return made


def _hashes(node_pool: Manifest) -> Manifest:
    return {names.POOL_HASH: template_hash(node_pool["spec"]["template"]), names.POOL_HASH_VERSION: "v3"}


def _namespace() -> Manifest:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": CLUSTER_UID}}


def _identity(uid: str) -> Manifest:
    return {"uid": f"uid-{uid}", "resourceVersion": "1000", "creationTimestamp": CREATED}


def _listed(items: Sequence[Manifest]) -> Manifest:
    """With the Job that made the pods, without which nothing would make them anew."""
    jobs = [each for each in items if each["kind"] == "Pod" and each["metadata"]["namespace"] == "team-a"]
    found = [*items, _job(len(jobs))]
    return {"apiVersion": "v1", "kind": "List", "items": found, "metadata": {"resourceVersion": ""}}


def _job(pods: int) -> Manifest:
    metadata = {"name": "job", "namespace": "team-a", "uid": "uid-job", "resourceVersion": "1"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"parallelism": pods, "completions": pods},
    }


def _commit(folder: Path, message: str) -> None:
    _git(folder, "add", "policies")
    _git(folder, "commit", "--quiet", "--message", message)


def _git(folder: Path, *arguments: str) -> None:
    """The same commit each time, so that its id can be recorded."""
    who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _WHO.items()}
    subprocess.run(
        ["git", *arguments], cwd=folder, check=True, env={"PATH": "/usr/bin:/bin", "HOME": str(folder), **who}
    )


_WHO = {"NAME": "platform", "EMAIL": "platform@example.com", "DATE": "2026-11-02T08:00:00Z"}
