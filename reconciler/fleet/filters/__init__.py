"""What can be in a pod's way, one predicate a module, in the order in which they are asked."""

from reconciler.fleet.filters.claims import ResourceClaimFilter
from reconciler.fleet.filters.gpu_claims import GpuClaims
from reconciler.fleet.filters.interpod import InterPod
from reconciler.fleet.filters.node_name import NodeName
from reconciler.fleet.filters.nominated import Nominated
from reconciler.fleet.filters.one_pod_only import OnePodOnly
from reconciler.fleet.filters.ports import Ports
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.filters.resources import ResourceFilter
from reconciler.fleet.filters.selection import Selection
from reconciler.fleet.filters.spread import SpreadFilter
from reconciler.fleet.filters.taints import TaintFilter
from reconciler.fleet.filters.unschedulable import Unschedulable
from reconciler.fleet.filters.volume_limits import VolumeLimits
from reconciler.fleet.filters.volumes import VolumePlaces

PREDICATES: tuple[type[Predicate], ...] = (
    Unschedulable,
    NodeName,
    TaintFilter,
    Selection,
    ResourceFilter,
    Ports,
    OnePodOnly,
    VolumeLimits,
    VolumePlaces,
    SpreadFilter,
    InterPod,
    ResourceClaimFilter,
    GpuClaims,
    Nominated,
)
