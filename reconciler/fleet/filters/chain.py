"""Owner of the predicates of one snapshot, and of cached results of static predicates."""

import numpy as np

from reconciler.fleet.filters import PREDICATES
from reconciler.fleet.filters.claims import GpuClaims, ResourceClaimFilter
from reconciler.fleet.filters.node import Ports, ResourceFilter
from reconciler.fleet.filters.pod_topology import SpreadFilter
from reconciler.fleet.filters.predicate import Predicate
from reconciler.fleet.filters.volumes import OnePodOnly, VolumeLimits, VolumePlaces
from reconciler.fleet.pod_classes import Needs, PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.rejections import Rejections, ruled_out
from reconciler.fleet.snapshot.row_indexes import NodeKinds
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.plan.decision import Obstacle

UNMODELLED = "not modelled"
_MOST_MASKS = 2_000

ActivePredicates = tuple[Predicate, ...]

# Predicates that pass every pod without ports, volumes, claims and inter-pod terms; most pods have none of these.
_NEVER_PLAIN = (Ports, OnePodOnly, VolumeLimits, VolumePlaces, SpreadFilter, ResourceClaimFilter, GpuClaims)


class FilterChain:
    """All predicates together; `fleet.part(FilterChain)` returns the instance of a snapshot."""

    def __init__(self, fleet: Snapshot) -> None:
        self.fleet = fleet
        self.predicates: ActivePredicates = tuple([fleet.part(each) for each in PREDICATES])
        self._static = tuple([each for each in self.predicates if each.static])
        self._dynamic = tuple([each for each in self.predicates if not each.static])
        self._of_plain = tuple([each for each in self._dynamic if not isinstance(each, _NEVER_PLAIN)])
        self._only_resources: ActivePredicates = (fleet.part(ResourceFilter),)
        self._masks: dict[Needs, Mask] = {}
        self._version = -1

    def active_predicates(self, pod_class: PodClass) -> ActivePredicates:
        """The predicates that could refuse such a pod, given the current bookings."""
        fleet = self.fleet
        predicates = self._of_plain if pod_class.is_plain else self._dynamic
        return tuple([each for each in predicates if each.concerns(pod_class, fleet)])

    def goes_in_bulk(self, predicates: ActivePredicates) -> bool:
        """Whether pods of a class only compete for resources, so that several can be booked at once."""
        return predicates == self._only_resources

    def mask(self, pod_class: PodClass, predicates: ActivePredicates | None = None) -> Mask:
        """The rows where such a pod fits; a new array."""
        result: Mask = self.static_mask(pod_class) & self.fleet.rows.alive
        if pod_class.unmodelled:
            result[:] = False
            return result
        for each in self.active_predicates(pod_class) if predicates is None else predicates:
            mask = each.mask(pod_class, self.fleet)
            if mask is not None:
                np.logical_and(result, mask, out=result)
        return result

    def static_mask(self, pod_class: PodClass) -> Mask:
        """The rows that labels, taints and names of nodes allow. Must not be modified."""
        if self._version != self.fleet.rows.version or len(self._masks) > _MOST_MASKS:
            self._version = self.fleet.rows.version
            self._masks.clear()
        result = self._masks.get(pod_class.needs)
        if result is None:
            result = np.ones(self.fleet.rows.capacity, bool)
            for each in self._static:
                mask = each.mask(pod_class, self.fleet)
                if mask is not None:
                    np.logical_and(result, mask, out=result)
            self._masks[pod_class.needs] = result
        return result

    def fits(self, pod_class: PodClass, row: int, predicates: ActivePredicates | None = None) -> bool:
        """Whether such a pod fits on one row."""
        if not self.may_be_on(pod_class, row):
            return False
        return all(
            each.fits(pod_class, row, self.fleet) for each in (self._dynamic if predicates is None else predicates)
        )

    def may_be_on(self, pod_class: PodClass, row: int) -> bool:
        """Whether such a pod could fit on one row if the row were empty."""
        return bool(not pod_class.unmodelled and self.fleet.rows.alive[row] and self.static_mask(pod_class)[row])

    def reasons(self, pod_class: PodClass, row: int) -> tuple[Obstacle, ...]:
        """All obstacles, in the order of predicates."""
        fleet = self.fleet
        obstacles = [
            each.why(pod_class, row, fleet) for each in self.predicates if not each.fits(pod_class, row, fleet)
        ]
        return (pod_class.unmodelled, *obstacles) if pod_class.unmodelled else tuple(obstacles)

    def first_reason(self, pod_class: PodClass, row: int) -> Obstacle | None:
        """The first obstacle; None if such a pod fits."""
        if pod_class.unmodelled:
            return pod_class.unmodelled
        fleet = self.fleet
        refusing = next((each for each in self.predicates if not each.fits(pod_class, row, fleet)), None)
        return refusing.why(pod_class, row, fleet) if refusing is not None else None

    def counted(self, pod_class: PodClass, allowed: Mask | None) -> Rejections:
        """Of the allowed nodes, how many each predicate refuses, and how many none refuses, by kind of node."""
        among: Mask = self.fleet.rows.alive if allowed is None else self.fleet.rows.alive & allowed
        count, free = self.fleet.part(NodeKinds).counted, among
        found = {UNMODELLED: count(among)} if pod_class.unmodelled and among.any() else {}
        for each in self.predicates:
            mask = each.mask(pod_class, self.fleet)
            if mask is not None and (out := among & ~mask).any():
                found[each.name] = count(out)
                free = free & mask
        return ruled_out(found, {} if pod_class.unmodelled else count(free))
