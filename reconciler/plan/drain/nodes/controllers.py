"""Which controllers exist, by the workloads that are observed.

Only controllers of kinds that are watched can be known to be gone. The list of a kind that could not be read tells
nothing.
"""

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.metadata import OwnerReference
from reconciler.model.cluster.observed import Observed

# The controllers that make a pod anew, by API version and kind, and the resource whose list tells whether they exist.
WATCHED = {
    ("v1", "ReplicationController"): "replicationcontrollers",
    ("apps/v1", "ReplicaSet"): "replicasets.apps",
    ("apps/v1", "StatefulSet"): "statefulsets.apps",
    ("batch/v1", "Job"): "jobs.batch",
}
_RESOURCE_OF = WATCHED | {("", kind): resource for (_, kind), resource in WATCHED.items()}


class Controllers:
    """As one Observed has them."""

    def __init__(self, observed: Observed) -> None:
        # A controller that is being deleted makes no pods.
        there = [each for each in observed.workloads if not each.metadata.deletion_timestamp]
        self._uids = frozenset([each.metadata.uid for each in there])
        self._names = frozenset([(each.kind, each.metadata.namespace, each.metadata.name) for each in there])
        self._unread = frozenset([each.kind for each in observed.unread])

    def is_gone(self, namespace: str, owner: OwnerReference) -> bool:
        """Whether the owner of pods of a namespace is of a watched kind, and is not there."""
        resource = _RESOURCE_OF.get((owner.api_version, owner.kind))
        if resource is None or resource in self._unread:
            return False
        if owner.uid:
            return owner.uid not in self._uids
        return (owner.kind, namespace, owner.name) not in self._names


class ControllersSeen:
    """Owner of the controllers as they were observed last. `what_if.part(ControllersSeen)` is the one of a what-if."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._observed = snapshot.observed
        self._controllers = Controllers(self._observed)

    def of(self, observed: Observed) -> Controllers:
        """Read again when the workloads, or the kinds that could not be read, are others."""
        if observed.workloads is not self._observed.workloads or observed.unread != self._observed.unread:
            self._controllers = Controllers(observed)
        self._observed = observed
        return self._controllers
