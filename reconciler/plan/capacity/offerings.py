"""Launch options of a pool's machines, the order in which they are tried, and the options that failed recently.

Options are ordered by instance type as in the policy, with the first capacity type; then by the other capacity
types; then zone by zone. A failed option is left out for a while, for all demand of the pool, unless the machine
fields of the pool have changed since. After the pool's maximum number of failures, no option is tried until failures
expire.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later
from reconciler.model.plan.capacity import Shortage
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.gpu import GpuPool

REMEMBERED_MS = 600_000
FIRST_BACKOFF_MS = 5_000
LONGEST_BACKOFF_MS = 60_000


class LaunchOption(msgspec.Struct, frozen=True, gc=False):
    """An empty field leaves the choice to Karpenter."""

    instance_type: str
    capacity_type: str = ""
    zone: str = ""

    @classmethod
    def of(cls, shortage: Shortage) -> "LaunchOption":
        """The option that a shortage is about."""
        return cls(shortage.instance_type, shortage.capacity_type, shortage.zone)


def choices(pool: GpuPool, zones: Sequence[str]) -> list[LaunchOption]:
    """All options, in the order in which they are tried."""
    types = [each.name for each in pool.instance_types]
    several = len(pool.capacity_types) > 1
    launch_options = [LaunchOption(each, kind if several else "") for kind in pool.capacity_types for each in types]
    if len(zones) > 1:
        launch_options += [
            LaunchOption(each.instance_type, each.capacity_type, zone)
            for zone in zones
            for each in tuple(launch_options)
        ]
    return launch_options


def digest_of(pool: GpuPool) -> str:
    """Digest of all fields of a pool that decide how its machines are bought."""
    said = (pool.instance_types, pool.capacity_types, pool.requirements, pool.node_class_ref, pool.labels, pool.taints)
    return sha256(msgspec.json.encode((*said, pool.limits), order="sorted")).hexdigest()[:12]


def live(shortages: Iterable[Shortage], pool: str, requested: str, now: Instant) -> tuple[Shortage, ...]:
    """Shortages of a pool that have not expired."""
    return tuple(each for each in shortages if each.pool == pool and each.asked == requested and each.until > now)


class LaunchOptions(msgspec.Struct, frozen=True):
    """Launch options that can be tried for a pool now."""

    left: tuple[LaunchOption, ...]
    failed: tuple[Shortage, ...]
    most: int  # most options that may fail

    @property
    def is_exhausted(self) -> bool:
        return not self.left or len(self.failed) >= self.most

    @property
    def is_limited(self) -> bool:
        """Whether options are left, but no further attempt is allowed."""
        return bool(self.left) and len(self.failed) >= self.most

    @property
    def again_at(self) -> Instant | None:
        """Time of the next attempt; None if the next attempt may start now, and if no option is left."""
        if not self.failed or self.is_exhausted:
            return None
        wait_ms = min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (len(self.failed) - 1))
        return later(max(each.since for each in self.failed), wait_ms)

    @property
    def forgotten_at(self) -> Instant | None:
        """Time when a failed option may be tried again."""
        return min((each.until for each in self.failed), default=None)

    @property
    def tried(self) -> tuple[LaunchOption, ...]:
        """The failed options."""
        return tuple(LaunchOption.of(each) for each in self.failed)

    @property
    def next_attempt(self) -> tuple[LaunchOption, Instant | None]:
        """Launch option of the next attempt, and its time. The option has no instance type if the pool declares
        none.
        """
        if not self.is_exhausted:
            return self.left[0], self.again_at
        forgotten = min(self.failed, key=lambda each: each.until, default=None)
        return (LaunchOption(""), None) if forgotten is None else (LaunchOption.of(forgotten), forgotten.until)

    def may_request(self, now: Instant) -> bool:
        """Whether a launch option may be tried now."""
        return not self.is_exhausted and (self.again_at or now) <= now


def launch_options(
    inputs: Inputs, fleet: Fleet, pool: Declared[GpuPool], further: Iterable[Shortage] = ()
) -> LaunchOptions:
    """Launch options of a pool by the remembered shortages, and by further shortages of this plan."""
    remembered = live(inputs.memory.shortages, pool.name, digest_of(pool.spec), inputs.now)
    gone = {LaunchOption.of(each): each for each in (*remembered, *further)}
    left = tuple(each for each in choices(pool.spec, zones_of(pool.spec, fleet)) if each not in gone)
    once = tuple(sorted(gone.values(), key=lambda each: each.since))
    return LaunchOptions(left, once, 1 + pool.spec.smart_pods.max_retry_attempts)


def zones_of(pool: GpuPool, fleet: Fleet) -> list[str]:
    """Zones for a new node: the zones that the pool requires, else all zones of the cluster's nodes; one empty name if
    nodes have no zone.
    """
    return demanded_zones(pool) or fleet.zones or [""]


def demanded_zones(pool: GpuPool) -> list[str]:
    """Zones that the pool requires; empty if the pool leaves the zone to Karpenter."""
    demanded = [each.values for each in pool.requirements if each.key == names.ZONE and each.operator == "In"]
    return sorted(demanded[0]) if demanded else []


def labels_of(choice: LaunchOption) -> Iterator[tuple[str, str]]:
    """Labels of a node that is launched with this option."""
    yield names.INSTANCE_TYPE, choice.instance_type
    if choice.capacity_type:
        yield names.CAPACITY_TYPE, choice.capacity_type
    if choice.zone:
        yield names.ZONE, choice.zone
