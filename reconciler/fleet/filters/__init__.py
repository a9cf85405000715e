"""Scheduling predicates, in the order of their evaluation."""

from reconciler.fleet.filters.claims import GpuClaims, ResourceClaimFilter
from reconciler.fleet.filters.node import NodeName, Ports, ResourceFilter, Selection, TaintFilter, Unschedulable
from reconciler.fleet.filters.nominated import Nominated
from reconciler.fleet.filters.pod_topology import InterPod, SpreadFilter
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.filters.volumes import OnePodOnly, VolumeLimits, VolumePlaces

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
