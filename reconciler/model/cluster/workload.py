"""What makes pods, and what limits how many of them may be away."""

import msgspec

from reconciler.model.cluster.metadata import Condition, LabelSelector, Metadata
from reconciler.model.cluster.pod import PodSpec
from reconciler.model.parsers import Int32, Int64


class PodTemplate(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The pods that it makes."""

    spec: PodSpec = PodSpec()


class WorkloadSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How many pods are wanted; absent means one, and for a Job as many as run at once."""

    replicas: Int32 | None = None
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    template: PodTemplate | None = None


class WorkloadStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How many there are."""

    replicas: Int32 = 0
    ready_replicas: Int32 = 0
    succeeded: Int32 = 0
    conditions: tuple[Condition, ...] = ()


class Workload(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """A Deployment, ReplicaSet, StatefulSet, DaemonSet, Job or ReplicationController."""

    metadata: Metadata
    kind: str = ""
    spec: WorkloadSpec = WorkloadSpec()
    status: WorkloadStatus = WorkloadStatus()


class BudgetSpec(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How many pods must stay."""

    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str = ""


class BudgetStatus(msgspec.Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """How many may go now; before a controller has looked at it there is no status, and every eviction is refused."""

    disruptions_allowed: Int32 = 0
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0
    observed_generation: Int64 = 0
    disrupted_pods: dict[str, str] = {}


class PodDisruptionBudget(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """How many pods of a workload may be away at once."""

    metadata: Metadata
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()

    @property
    def title(self) -> str:
        return f"PodDisruptionBudget/{self.metadata.namespace}/{self.metadata.name}"
