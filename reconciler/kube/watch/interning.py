"""Shares equal values between pods, so that a hundred thousand pods fit into memory.

The pods of a workload differ only in name, node and times. Each new pod is pointed at the equal values of the last pod
of its owner. Only pods that were just decoded, and are not yet shared with other code, are modified. Tables may be
emptied at any time: later pods then share less.
"""

from copy import copy
from sys import intern

from msgspec.structs import force_setattr

from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.pod import Pod, PodSpec, PodStatus
from reconciler.model.cluster.workload import Workload

_MOST = 5_000  # owners; each keeps one pod in memory, even a deleted one


class Interning:
    """The last pod of each owner, and the last template of each workload's owner."""

    def __init__(self) -> None:
        self._pods: dict[str, Pod] = {}
        self._templates: dict[str, PodSpec] = {}

    def pod(self, pod: Pod) -> Pod:
        metadata, spec, status = pod.metadata, pod.spec, pod.status
        if spec.volumes:
            # Only volumes that restrict placement are of use.
            force_setattr(spec, "volumes", tuple([each for each in spec.volumes if each.ties]))
        owners = metadata.owner_references
        # Pods without an owner may still be alike within their namespace.
        owner = owners[0].uid if owners else metadata.namespace
        kin = self._pods.get(owner)
        if kin is None:
            if len(self._pods) >= _MOST:
                self._pods.clear()
        else:
            _share_metadata(metadata, kin.metadata)
            if spec.containers:
                force_setattr(pod, "spec", _shared_spec(spec, kin.spec))
            if status.container_statuses and status.container_statuses == kin.status.container_statuses:
                force_setattr(status, "container_statuses", kin.status.container_statuses)
        if status.phase:
            _share_words(status)
        self._pods[owner] = pod
        return pod

    def workload(self, workload: Workload) -> None:
        """Old ReplicaSets are kept by the thousand, each with a template."""
        owners, template = workload.metadata.owner_references, workload.spec.template
        if not owners or template is None or not template.spec.containers:
            return
        kin = self._templates.get(owners[0].uid)
        if kin is not None:
            force_setattr(template, "spec", _shared_spec(template.spec, kin))
        elif len(self._templates) >= _MOST:
            self._templates.clear()
        self._templates[owners[0].uid] = template.spec


def _share_metadata(metadata: Metadata, kin: Metadata) -> None:
    # Pods of one owner may be in several namespaces: the owner may be a Node, or another cluster-scoped object.
    force_setattr(metadata, "namespace", intern(metadata.namespace))
    if metadata.labels and metadata.labels == kin.labels:
        force_setattr(metadata, "labels", kin.labels)
    if metadata.annotations == kin.annotations:
        force_setattr(metadata, "annotations", kin.annotations)
    if metadata.owner_references == kin.owner_references:
        force_setattr(metadata, "owner_references", kin.owner_references)


def _shared_spec(spec: PodSpec, kin: PodSpec) -> PodSpec:
    """Individual fields are excluded from the comparison: node, affinity to the node, volumes."""
    node, affinity, volumes = spec.node_name, spec.affinity, spec.volumes
    force_setattr(spec, "node_name", kin.node_name)
    force_setattr(spec, "affinity", kin.affinity)
    force_setattr(spec, "volumes", kin.volumes)
    pod_spec: PodSpec = copy(kin) if spec == kin else spec
    if node != kin.node_name:
        force_setattr(pod_spec, "node_name", intern(node))
    if affinity != kin.affinity:
        force_setattr(pod_spec, "affinity", affinity)
    if volumes != kin.volumes:
        force_setattr(pod_spec, "volumes", volumes)
    return pod_spec


def _share_words(status: PodStatus) -> None:
    """Most conditions of a pod changed in the same second as the previous one."""
    force_setattr(status, "phase", intern(status.phase))
    time = status.start_time
    for each in status.conditions:
        force_setattr(each, "type", intern(each.type))
        force_setattr(each, "status", intern(each.status))
        if each.last_transition_time == time:
            force_setattr(each, "last_transition_time", time)
        else:
            time = each.last_transition_time
