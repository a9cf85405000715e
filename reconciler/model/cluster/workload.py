"""Workload controllers, and PodDisruptionBudgets."""

import msgspec

from reconciler.model.cluster.metadata import Condition, LabelSelector, Metadata
from reconciler.model.cluster.pod import PodSpec
from reconciler.model.parsers import Int32, Int64


class PodTemplate(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    spec: PodSpec = PodSpec()


class WorkloadSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Desired number of pods; absent means one, and for a Job the parallelism."""

    replicas: Int32 | None = None
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    template: PodTemplate | None = None


class WorkloadStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    replicas: Int32 = 0
    succeeded: Int32 = 0
    conditions: tuple[Condition, ...] = ()


class Workload(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or ReplicationController."""

    metadata: Metadata
    kind: str = ""
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class BudgetSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """Allowed disruptions. Before the disruption controller sets the status, every eviction is refused."""

    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    observed_generation: Int64 = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    metadata: Metadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    @property
    def title(self) -> str:
        return f"PodDisruptionBudget/{self.metadata.namespace}/{self.metadata.name}"
