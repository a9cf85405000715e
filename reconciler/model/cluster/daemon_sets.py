"""Pods of which each new node has one like it: those of DaemonSets, and static pods.

A pod may also say by an annotation, or by an owner reference, that it counts as one of a DaemonSet. That says something
of its own node alone. Whoever may make pods could else have all new nodes taken for too small, and so keep the pods of
others waiting.
"""

from collections.abc import Set as AbstractSet

from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod

DaemonSets = AbstractSet[tuple[str, str]]  # namespace and name

_TITLE = "daemonsets.apps"


def daemon_sets(observed: Observed) -> DaemonSets | None:
    """Those that are observed; None where they could not be read."""
    if observed.why_unread(_TITLE):
        return None
    metadatas = (each.metadata for each in observed.workloads if each.kind == "DaemonSet")
    return frozenset((each.namespace, each.name) for each in metadatas)


def comes_with_each_node(pod: Pod, known: DaemonSets | None) -> bool:
    """Whether each new node has such a pod. Where DaemonSets could not be read the pod is believed."""
    owner = pod.metadata.controller
    if owner is None or pod.is_finished:
        return False
    if owner.kind == "Node":
        return bool(pod.metadata.annotations.mirror_pod) and owner.name == pod.node
    return owner.kind == "DaemonSet" and (known is None or (pod.metadata.namespace, owner.name) in known)
