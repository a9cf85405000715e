"""Which pods stay where they are, whoever would move them: those of which nobody here can tell where they would fit."""

from reconciler.fleet.filters.claims import ResourceClaimFilter
from reconciler.fleet.obstacles import HoldsDevices
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.storage.stored import StorageIndex
from reconciler.model.obstacle import Obstacle


def unmodelled(pod_class: PodClass, fleet: Snapshot) -> Obstacle | None:
    """Why it can't be told where such a pod fits; None where it can. Until then it fits nowhere."""
    return (
        pod_class.unmodelled
        or fleet.part(StorageIndex).wanted(pod_class, fleet).unmodelled
        or fleet.part(ResourceClaimFilter).claimed(pod_class, fleet).unmodelled
    )


def why_it_stays(pod_class: PodClass, fleet: Snapshot) -> Obstacle | None:
    """Why such a pod is not to be moved; None where it may be. Whoever gives devices back may find no others."""
    claimed = fleet.part(ResourceClaimFilter).claimed(pod_class, fleet)
    held = HoldsDevices(claimed.met[0][0]) if claimed.met else None
    return unmodelled(pod_class, fleet) or held
