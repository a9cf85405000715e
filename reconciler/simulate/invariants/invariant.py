"""The interface of checkers: a safety invariant that is checked on each write."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Protocol
from zoneinfo import ZoneInfo

import msgspec
from cronsim import CronSim

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model import names
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant
from reconciler.model.plan.memory import Memory
from reconciler.model.policy.guards import Window
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.protocol.preconditions import Object
from reconciler.simulate.objects import ObjectWrite
from reconciler.simulate.results.totals import PoolTotalsTracker
from reconciler.simulate.world import World

OUR_TAINTS = (names.DELETION_TIME, names.DRAINING)


class InvariantContext(msgspec.Struct, frozen=True):
    """What a checker may read. The totals already include the write."""

    world: World
    where: PoolTotalsTracker
    now: Callable[[], Instant]
    desired: Callable[[], Desired]  # the policies in force
    snapshot: Callable[[], Snapshot]  # of the current world
    presence_ms: Callable[[], int]  # total time with a running, up-to-date controller
    memory: Callable[[], Memory]  # the stored memory


class Checker(Protocol):
    """One invariant. Its state is limited to about an hour of history."""

    rule: str

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds that it checks."""
        ...

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        """The violations by this write, as sentences; called for these kinds, whoever the writer is."""
        ...


def policy_of(pool: str, context: InvariantContext) -> Declared[DrainPolicy] | None:
    """The DrainPolicy in force for the pool."""
    drains = (each for each in context.desired().drains if not each.spec.suspend)
    return next((each for each in drains if {"*", pool} & set(each.spec.pool_names)), None)


def is_ours(written: ObjectWrite) -> bool:
    """Whether reconciler's controller wrote it."""
    return written.by == names.FIELD_MANAGER


def goes(written: ObjectWrite) -> bool:
    """Whether this write deletes the object."""
    if written.before is None or written.before["metadata"].get("deletionTimestamp"):
        return False
    return written.after is None or bool(written.after["metadata"].get("deletionTimestamp"))


def taints_of(node: Object | None) -> frozenset[str]:
    """Keys of reconciler's removal taints."""
    taints = ((node or {}).get("spec") or {}).get("taints") or ()
    return frozenset(each["key"] for each in taints) & frozenset(OUR_TAINTS)


def is_marked(written: ObjectWrite) -> bool:
    """Whether a node gets one of reconciler's removal taints by this write."""
    return bool(taints_of(written.after) - taints_of(written.before))


def pool_of(body: Object) -> str:
    """From the labels of a node, or of an object rendered for a pool."""
    labels = body["metadata"].get("labels") or {}
    return str(labels.get(names.KARPENTER_POOL) or labels.get(names.POOL, ""))


# --- Windows and schedules at an instant, computed independently of the planners.


def spare_at(wish: NodeProvisioner, now: Instant) -> int:
    """Free nodes that a pool keeps."""
    warm = [each.warm_nodes or 0 for each in wish.schedules if is_open(each, now)]
    return min(max([wish.warm_nodes, wish.min_unutilized_gpu_nodes, *warm]), wish.max_size)


def min_size_at(wish: NodeProvisioner, now: Instant) -> int:
    """Minimum nodes that a pool keeps."""
    least = [each.min_size or 0 for each in wish.schedules if is_open(each, now)]
    return min(max([wish.min_size, *least]), wish.max_size)


def is_open(window: Window, now: Instant) -> bool:
    """Whether a schedule time lies at most one duration ago, by iteration."""
    here = datetime.fromtimestamp(now / 1_000, UTC).astimezone(ZoneInfo(window.time_zone))
    strikes = CronSim(window.schedule, here - timedelta(days=2))
    last = None
    for each in strikes:
        if each > here:
            break
        last = each
    return last is not None and now - round(last.timestamp() * 1_000) < window.duration.milliseconds
