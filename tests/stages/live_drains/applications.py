"""Applications on the lab: pods alike of one GPU that take a while to go, with a PodDisruptionBudget; and an agent."""

from collections.abc import Mapping
from typing import NamedTuple

from reconciler.model import names
from tests.lab import fleet
from tests.lab.api import Manifest

LABEL = "app"


class Application(NamedTuple):
    """How many pods, and how many of them must be ready at every instant."""

    name: str
    replicas: int
    least_ready: int
    by: str = "maxUnavailable"  # or minAvailable: how its budget says so
    kind: str = "Deployment"  # or StatefulSet
    cpu: str = "1"
    starts_after: str = "0s"
    dies_after_seconds: int = 1
    annotations: Mapping[str, str] = {}

    def of(self, pool: str) -> list[Manifest]:
        """Its objects, in the namespace that is called like the pool on which its pods run."""
        return [self._workload(pool), self.budget(pool, self.least_ready)]

    def budget(self, pool: str, least_ready: int) -> Manifest:
        said = least_ready if self.by == "minAvailable" else self.replicas - least_ready
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": self.name, "namespace": pool},
            "spec": {"selector": {"matchLabels": {LABEL: self.name}}, self.by: said},
        }

    @property
    def plural(self) -> str:
        return f"{self.kind.lower()}s"

    def _workload(self, pool: str) -> Manifest:
        pod = fleet.Pod(self.name, gpus=1, cpu=self.cpu, annotations=self.annotations).starting_after(self.starts_after)
        at_once = {"podManagementPolicy": "Parallel", "serviceName": self.name} if self.kind == "StatefulSet" else {}
        spec = {"replicas": self.replicas, **at_once}
        return _controlled(self.kind, pool, pod.dying_slowly(self.dies_after_seconds), spec)


def agent(pool: str) -> Manifest:
    """A DaemonSet with a pod on each node."""
    return _controlled("DaemonSet", pool, fleet.Pod("agent").dying_slowly(1), {})


def is_agent(pod: Manifest) -> bool:
    """Whether it comes with its node."""
    return any(each["kind"] == "DaemonSet" for each in pod["metadata"].get("ownerReferences", ()))


def is_whole(workload: Manifest | None) -> bool:
    """Whether all its pods are ready, and seen to be by its controller."""
    status, spec = (workload or {}).get("status", {}), (workload or {}).get("spec", {})
    return bool(workload) and status.get("readyReplicas", 0) == status.get("replicas", 0) == spec["replicas"]


def _controlled(kind: str, pool: str, pod: fleet.Pod, spec: Manifest) -> Manifest:
    labels = {LABEL: pod.name}
    made = pod.with_spec(nodeSelector={names.KARPENTER_POOL: pool}).manifest()
    template = {"metadata": {"labels": labels, "annotations": made["metadata"]["annotations"]}, "spec": made["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": pod.name, "namespace": pool},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }
