"""Owner of what the pods of one node have reserved, and of the node's pressure.

Theory of operation. Resources are independent of each other. For each resource of a node,

    reservable = total - system                     watermark = floor(fraction * reservable)
    logical pressure  = max(0, reserved - buffer - watermark)
    capacity pressure = what agents asked for and did not get, because it was not there
    pressure left     = logical pressure + capacity pressure - what migrations account for, and at least 0.

The agent of an elastic pod uses at most its last permit. So the pod has reserved the larger of its permit and of what
it is seen to have: a permit for less frees nothing before the pod has become smaller. A pod whose agent has not been
heard since this ledger began is silent. Its agent may still use an earlier permit that this ledger does not know, at
most the upper bound of the pod: the bound is reserved, and what the pod does not have of it is `buffer`. With the first
ask, the agent returns its last permit. A permit with a valid signature is believed; otherwise the pod counts as having
been permitted what it has.

A grant never raises `reserved` above `reservable`. After a restart, or after `system` was raised, `reserved` may be
above it. Then pods only become smaller until it is not.

A pod that migrates accounts for all that it has reserved without its buffer, which is no pressure, and for what it
lacks. Its growth is refused, since its destination has been reserved for what it has now.

The sums are changed in one place, by the difference of an entry before and after. So they cannot drift.
"""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from reconciler.model.plan.pressure import Amounts, ElasticPod, LedgerPod, NodeBounds, PlainPod


class _Sums:
    """Of one resource."""

    __slots__ = ("accounted", "buffer", "elastic", "lacking", "plain")

    def __init__(self) -> None:
        self.elastic = self.plain = self.buffer = self.lacking = self.accounted = 0


class ResourcePressure(NamedTuple):
    """The figures of one resource of a node."""

    reserved: int
    buffer: int
    logical: int
    capacity: int
    accounted: int

    @property
    def left(self) -> int:
        """What further migrations should relieve."""
        return max(0, self.logical + self.capacity - self.accounted)


class NodeLedger:
    """Mutable; each method costs what it changes."""

    def __init__(self, bounds: NodeBounds) -> None:
        self.bounds = bounds
        self._pods: dict[str, LedgerPod] = {}
        self._sums: dict[str, _Sums] = {name: _Sums() for name in bounds}
        self.changes = 0  # so far

    # Changes

    def set_bounds(self, bounds: NodeBounds) -> None:
        """Changed definitions; the watermark, the reservable amounts and the slots follow."""
        pods = list(self._pods.values())
        self.changes += 1
        self.bounds, self._pods, self._sums = bounds, {}, {name: _Sums() for name in bounds}
        for pod in pods:
            self.put(pod)

    def put(self, pod: LedgerPod) -> None:
        """A new or changed pod; the same pod twice counts once."""
        before = self._pods.get(pod.uid)
        if before == pod:
            return
        self.changes += 1
        self._pods[pod.uid] = pod
        self._book(before, -1)
        self._book(pod, 1)

    def drop(self, uid: str) -> None:
        """A pod that is gone; an unknown one is ignored."""
        before = self._pods.pop(uid, None)
        self.changes += before is not None
        self._book(before, -1)

    def grant(self, pod: ElasticPod, asked: Amounts, believed: Amounts | None = None) -> ElasticPod:
        """The pod with a new permit. `believed`: the last permit that the agent of a silent pod has proved."""
        known = (believed or {}) if pod.is_silent else pod.permitted
        permits, lacks = dict[str, int](), dict[str, int]()
        for name, has in pod.has.items():
            before = known.get(name, has)
            wants = asked.get(name, before)
            permit = min(wants, before)
            if wants > before and name in self.bounds and not pod.is_migrating:
                room = self.bounds[name].reservable - (self.reserved(name) - pod.reserved(name))
                permit = max(before, min(wants, room))
            permits[name] = permit
            lacks[name] = pod.lacks.get(name, 0) if pod.is_migrating and wants > before else max(0, wants - permit)
        granted = msgspec.structs.replace(pod, permitted=permits, lacks=lacks, is_silent=False)
        self.put(granted)
        return granted

    def migrate(self, uid: str, *, is_migrating: bool) -> None:
        """A migration of the pod began, or ended without success."""
        pod = self._pods.get(uid)
        if isinstance(pod, ElasticPod) and pod.is_migrating != is_migrating:
            self.put(msgspec.structs.replace(pod, is_migrating=is_migrating))

    # Answers

    def get(self, uid: str) -> LedgerPod | None:
        return self._pods.get(uid)

    @property
    def pods(self) -> Iterator[LedgerPod]:
        """All pods, by uid."""
        return (pod for _, pod in sorted(self._pods.items()))

    @property
    def elastic_pods(self) -> Iterator[ElasticPod]:
        """All elastic pods, by uid."""
        return (pod for pod in self.pods if isinstance(pod, ElasticPod))

    def reserved(self, name: str) -> int:
        """What all pods have reserved of a resource."""
        return self._reserved_with(name, 0, is_elastic=True)

    def room(self, name: str) -> int:
        """What may still be reserved of a resource."""
        return max(0, self.bounds[name].reservable - self.reserved(name))

    def fits(self, requests: Amounts, *, is_elastic: bool = False) -> bool:
        """Whether a further pod may be placed here. Of a resource that the pod does not request, nothing is needed."""
        return self.lacking(requests, is_elastic=is_elastic) is None

    def lacking(self, requests: Amounts, *, is_elastic: bool) -> str | None:
        """The first resource of which too little is left for a further pod."""
        for name, bounds in self.bounds.items():
            wanted = requests.get(name, 0)
            if wanted > 0 and self._reserved_with(name, wanted, is_elastic=is_elastic) > bounds.reservable:
                return name
        return None

    def stays_below_watermark(self, requests: Amounts, *, is_elastic: bool) -> bool:
        """Whether the node is not under logical pressure with a further pod."""
        return all(
            self._reserved_with(name, requests.get(name, 0), is_elastic=is_elastic) - self._sums[name].buffer
            <= bounds.watermark
            for name, bounds in self.bounds.items()
        )

    def _reserved_with(self, name: str, more: int, *, is_elastic: bool) -> int:
        sums, slot = self._sums[name], self.bounds[name].slot
        plain = sums.plain + (0 if is_elastic else more)
        return sums.elastic + (more if is_elastic else 0) + -(-plain // slot) * slot

    def pressure(self, name: str) -> ResourcePressure:
        """The pressure on a resource."""
        sums, reserved = self._sums[name], self.reserved(name)
        logical = max(0, reserved - sums.buffer - self.bounds[name].watermark)
        return ResourcePressure(reserved, sums.buffer, logical, sums.lacking, sums.accounted)

    @property
    def is_pressed(self) -> bool:
        """Whether pressure is left on any resource."""
        return any(self.pressure(name).left for name in self.bounds)

    # The only method that changes sums

    def _book(self, pod: LedgerPod | None, sign: int) -> None:
        if isinstance(pod, PlainPod):
            for name, sums in self._sums.items():
                sums.plain += sign * pod.requests.get(name, 0)
        elif pod is not None:
            for name, sums in self._sums.items():
                reserved, buffer, lacks = pod.reserved(name), pod.buffer(name), pod.lacks.get(name, 0)
                sums.elastic += sign * reserved
                sums.buffer += sign * buffer
                sums.lacking += sign * lacks
                sums.accounted += sign * (reserved - buffer + lacks) if pod.is_migrating else 0
