"""In which ways machines of a pool can be bought, one tried after the other, and which of them failed lately.

The instance types come first, in the order of the policy, by its first capacity type; then the other capacity types;
then zone by zone. A way that failed is left out for a while, for all demand of the pool, unless the pool has changed
what it says of its machines. After so many failures as the pool allows, nothing more is tried until they are forgotten.
"""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.instant import Instant, later
from reconciler.model.plan.capacity import Shortage
from reconciler.model.policy.gpu import GpuPool

REMEMBERED_MS = 600_000
FIRST_BACKOFF_MS = 5_000
LONGEST_BACKOFF_MS = 60_000


class LaunchOption(msgspec.Struct, frozen=True, gc=False):
    """What is empty is left to Karpenter."""

    instance_type: str
    capacity_type: str = ""
    zone: str = ""

    @classmethod
    def of(cls, shortage: Shortage) -> "LaunchOption":
        """The way that failed."""
        return cls(shortage.instance_type, shortage.capacity_type, shortage.zone)


def choices(pool: GpuPool, zones: Sequence[str]) -> list[LaunchOption]:
    """All ways, in the order in which they are tried."""
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
    """Of all that a pool says of how its machines are bought."""
    said = (pool.instance_types, pool.capacity_types, pool.requirements, pool.node_class_ref, pool.labels, pool.taints)
    return sha256(msgspec.json.encode((*said, pool.limits), order="sorted")).hexdigest()[:12]


def live(shortages: Iterable[Shortage], pool: str, requested: str, now: Instant) -> tuple[Shortage, ...]:
    """Those of a pool that still count."""
    return tuple(each for each in shortages if each.pool == pool and each.asked == requested and each.until > now)


class LaunchOptions(msgspec.Struct, frozen=True):
    """What can be tried for a pool now."""

    left: tuple[LaunchOption, ...]
    failed: tuple[Shortage, ...]
    most: int  # ways that may fail

    @property
    def is_exhausted(self) -> bool:
        return not self.left or len(self.failed) >= self.most

    @property
    def is_limited(self) -> bool:
        """Whether ways to buy are left, and no more attempts are allowed."""
        return bool(self.left) and len(self.failed) >= self.most

    @property
    def again_at(self) -> Instant | None:
        """When the next way may be tried; None where that is at once, and where none is left."""
        if not self.failed or self.is_exhausted:
            return None
        wait_ms = min(LONGEST_BACKOFF_MS, FIRST_BACKOFF_MS * 2 ** (len(self.failed) - 1))
        return later(max(each.since for each in self.failed), wait_ms)

    @property
    def forgotten_at(self) -> Instant | None:
        """When a way is tried again that failed."""
        return min((each.until for each in self.failed), default=None)

    @property
    def tried(self) -> tuple[LaunchOption, ...]:
        """The ways that failed."""
        return tuple(LaunchOption.of(each) for each in self.failed)


def outlook_of(pool: GpuPool, zones: Sequence[str], failed: Sequence[Shortage]) -> LaunchOptions:
    """`failed`: of this pool, those that count."""
    gone = {LaunchOption.of(each): each for each in failed}
    left = tuple(each for each in choices(pool, zones) if each not in gone)
    once = tuple(sorted(gone.values(), key=lambda each: each.since))
    return LaunchOptions(left, once, 1 + pool.smart_pods.max_retry_attempts)


def zones_of(pool: GpuPool, fleet: Fleet) -> list[str]:
    """Where a new node may come: in any zone that the cluster has nodes in, unless the pool demands some; nothing where
    nodes do not say where they are."""
    return demanded_zones(pool) or fleet.zones or [""]


def demanded_zones(pool: GpuPool) -> list[str]:
    """Nothing where the pool leaves the zone to Karpenter."""
    demanded = [each.values for each in pool.requirements if each.key == names.ZONE and each.operator == "In"]
    return sorted(demanded[0]) if demanded else []


def labels_of(choice: LaunchOption) -> Iterator[tuple[str, str]]:
    """What a node must bear that is bought so."""
    yield names.INSTANCE_TYPE, choice.instance_type
    if choice.capacity_type:
        yield names.CAPACITY_TYPE, choice.capacity_type
    if choice.zone:
        yield names.ZONE, choice.zone
