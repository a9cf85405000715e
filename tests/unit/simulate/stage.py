"""A small imagined cluster with all actors but Karpenter; time is in seconds since it began."""

from typing import Any

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.builtin_controllers import Budgets, Collector, TaintEvictionController
from reconciler.simulate.actors.kubelets import Kubelets, NodeFailures
from reconciler.simulate.actors.scheduler import Scheduler
from reconciler.simulate.actors.workloads import Workloads
from reconciler.simulate.objects import RUN_SECONDS
from reconciler.simulate.stage import Engine, Stage
from reconciler.simulate.world import World

START = Instant(1_795_000_000_000)


class Small:
    """Owner of the stage."""

    def __init__(self, *nodes: Object, seed: int = 1) -> None:
        self.engine = Engine(seed, START)
        self.stage = Stage(self.engine, World(START))
        self.world = self.stage.world
        self.failures = NodeFailures()
        self.workloads, self.kubelets = Workloads(), Kubelets()
        for each in nodes:
            self.world.put(each)

    def start(self) -> "Small":
        kubernetes = (self.workloads, Scheduler(), self.kubelets, Budgets(), Collector(), TaintEvictionController())
        for each in (*kubernetes, self.failures):
            each.start(self.stage)
        return self

    def until(self, second: int) -> "Small":
        self.engine.run(Instant(START + second * 1_000))
        return self

    def pods(self) -> dict[str, tuple[str, str]]:
        """Where each pod is, and how."""
        return {
            each["metadata"]["name"]: (each["spec"].get("nodeName", ""), each["status"].get("phase", "Pending"))
            for each in self.world.of("Pod")
        }

    def get(self, kind: str, name: str) -> Object:
        found = self.world.get(Ref(kind, "" if kind == "Node" else "default", name))
        assert found is not None, f"there is no {kind} {name}"
        return found


def node(name: str, gpus: int = 8, taints: list[dict[str, str]] | None = None) -> Object:
    status = {
        "allocatable": {"cpu": "96", "memory": "1Ti", "pods": "110", names.NVIDIA_GPU: str(gpus)},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    head = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": {names.HOSTNAME: name}}}
    return {**head, "spec": {"taints": taints or []}, "status": status}


def template(gpus: int = 1, seconds: int = 0, **spec: Any) -> Object:
    annotations = {RUN_SECONDS: str(seconds)} if seconds else {}
    containers = [{"name": "main", "resources": {"requests": {"cpu": "1", names.NVIDIA_GPU: str(gpus)}}}]
    metadata = {"labels": {"app": "a"}, "annotations": annotations}
    return {"metadata": metadata, "spec": {"containers": containers, **spec}}


def workload(kind: str, name: str, of: Object, **spec: Any) -> Object:
    version = "batch/v1" if kind == "Job" else "apps/v1"
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": {"template": of, **spec}}


def pod(name: str, **spec: Any) -> Object:
    made = template(**spec)
    metadata = {"name": name, "namespace": "default", **made["metadata"]}
    head = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    return {**head, "spec": made["spec"], "status": {"phase": "Pending"}}


def budget(name: str, **spec: Any) -> Object:
    metadata = {"name": name, "namespace": "default"}
    spec = {"selector": {"matchLabels": {"app": "a"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
