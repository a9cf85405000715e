"""The objects of a workload, as somebody would have applied them."""

from collections.abc import Mapping
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.protocol.preconditions import Object
from reconciler.simulate.marks import GPU_MILLI, RUN_SECONDS, SAVE_SECONDS, WORKLOAD
from reconciler.simulate.scenario.workload import ScenarioWorkload, WorkloadToleration

_KEPT_SECONDS = 60  # a job that is done
_WHOLE_GPU_MILLI = 1_000


class Job(msgspec.Struct, frozen=True):
    """Pods that come together, run for a time and are done."""

    name: str
    seconds: int  # 0: it runs until it is deleted
    pods: int = 1
    gpus: int | None = None  # of one pod, where that is not the workload's
    gpu_milli: int = 1_000  # of one GPU: how much of it is used; it is given whole
    requests: Mapping[str, str] | None = None
    models: tuple[str, ...] = ()  # GPUs that will do; none named: all
    priority: int | None = None


def job_of(workload: ScenarioWorkload, job: Job) -> Object:
    """A batch/v1 Job; its pods run at once."""
    spec: Object = {
        "parallelism": job.pods,
        "completions": job.pods,
        "ttlSecondsAfterFinished": _KEPT_SECONDS,
        "template": _template(workload, job),
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": _metadata(workload, job.name), "spec": spec}


def replicas_of(workload: ScenarioWorkload, replicas: int) -> Object:
    """An apps/v1 ReplicaSet."""
    selector = {"matchLabels": {WORKLOAD: workload.name}}
    template = _template(workload, Job(workload.name, 0))
    spec: Object = {"replicas": replicas, "selector": selector, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": _metadata(workload, workload.name), "spec": spec}


def budget_of(workload: ScenarioWorkload) -> Object:
    """A PodDisruptionBudget of all its pods."""
    spec = {"maxUnavailable": workload.max_unavailable, "selector": {"matchLabels": {WORKLOAD: workload.name}}}
    metadata = _metadata(workload, workload.name)
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


def _metadata(workload: ScenarioWorkload, name: str) -> Object:
    return {"name": name, "namespace": workload.namespace, "labels": {WORKLOAD: workload.name}}


def _template(workload: ScenarioWorkload, job: Job) -> Object:
    annotations = {RUN_SECONDS: str(job.seconds)} if job.seconds else {}
    if job.gpu_milli < _WHOLE_GPU_MILLI:
        annotations[GPU_MILLI] = str(job.gpu_milli)
    if workload.do_not_disrupt:
        annotations[names.DO_NOT_DISRUPT] = "true"
    if workload.checkpoint is not None:
        annotations[names.CHECKPOINT] = str(workload.checkpoint)
    if workload.saves_within is not None:
        annotations[SAVE_SECONDS] = str(workload.saves_within.milliseconds // 1_000)
    if workload.waits_for_capacity:
        annotations[names.WAIT_FOR_CAPACITY] = "true"
    requests = {key: str(value) for key, value in sorted(workload.resources.items())} | dict(job.requests or {})
    gpus = workload.gpus if job.gpus is None else job.gpus
    if gpus:
        requests[names.NVIDIA_GPU] = str(gpus)
    limits = {names.NVIDIA_GPU: str(gpus)} if gpus else {}
    spec: Object = {
        "containers": [{"name": "main", "resources": {"requests": requests, "limits": limits}}],
        "terminationGracePeriodSeconds": workload.grace.milliseconds // 1_000,
        "priority": workload.priority if job.priority is None else job.priority,
        "tolerations": [_toleration(each) for each in workload.tolerations],
    }
    if gates := dict.fromkeys([names.CAPACITY_GATE] * workload.waits_for_capacity + workload.gates):
        spec["schedulingGates"] = [{"name": each} for each in gates]
    if workload.node_selector:
        spec["nodeSelector"] = dict(sorted(workload.node_selector.items()))
    if job.models:
        spec["affinity"] = {"nodeAffinity": _one_of(job.models)}
    return {"metadata": {"labels": {WORKLOAD: workload.name}, "annotations": annotations}, "spec": spec}


def _toleration(toleration: WorkloadToleration) -> dict[str, str]:
    result = {"operator": "Exists" if toleration.value is None else "Equal"}
    if toleration.key:
        result["key"] = toleration.key
    if toleration.value is not None:
        result["value"] = toleration.value
    if toleration.effect is not None:
        result["effect"] = toleration.effect
    return result


def _one_of(models: tuple[str, ...]) -> dict[str, Any]:
    expression = {"key": names.GPU_TYPE, "operator": "In", "values": list(models)}
    terms = [{"matchExpressions": [expression]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
