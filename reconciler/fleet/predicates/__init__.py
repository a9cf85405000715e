"""What can be in a pod's way, one predicate a module, in the order in which they are asked."""

from reconciler.fleet.predicates.claims import Claims
from reconciler.fleet.predicates.gpu_claims import GpuClaims
from reconciler.fleet.predicates.interpod import InterPod
from reconciler.fleet.predicates.node_name import NodeName
from reconciler.fleet.predicates.nominated import Nominated
from reconciler.fleet.predicates.one_pod_only import OnePodOnly
from reconciler.fleet.predicates.ports import Ports
from reconciler.fleet.predicates.predicate import Predicate
from reconciler.fleet.predicates.resources import Resources
from reconciler.fleet.predicates.selection import Selection
from reconciler.fleet.predicates.spread import Spread
from reconciler.fleet.predicates.taints import Taints
from reconciler.fleet.predicates.unschedulable import Unschedulable
from reconciler.fleet.predicates.volume_limits import VolumeLimits
from reconciler.fleet.predicates.volumes import VolumePlaces

PREDICATES: tuple[type[Predicate], ...] = (
    Unschedulable,
    NodeName,
    Taints,
    Selection,
    Resources,
    Ports,
    OnePodOnly,
    VolumeLimits,
    VolumePlaces,
    Spread,
    InterPod,
    Claims,
    GpuClaims,
    Nominated,
)
