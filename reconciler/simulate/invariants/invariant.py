"""The interface of checkers: a safety invariant that is checked on each write; and what several checkers ask."""

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
from reconciler.simulate.objects import ObjectWrite, is_leaving, taints_of
from reconciler.simulate.results.totals import PoolTotalsTracker
from reconciler.simulate.world import World

OUR_TAINTS = frozenset({names.DELETION_TIME, names.DRAINING})
OBSERVED_WITHIN_MS = 60_000  # later writes may not be observed by the writer yet
LONG_AGO = Instant(-OBSERVED_WITHIN_MS)


class InvariantContext(msgspec.Struct, frozen=True):
    """What a checker may read. The totals already include the write."""

    world: World
    where: PoolTotalsTracker
    now: Callable[[], Instant]
    desired: Callable[[], Desired]  # the policies in force
    snapshot: Callable[[], Snapshot]  # of the current world
    presence_ms: Callable[[], int]  # total time with a running, up-to-date controller
    memory: Callable[[], Memory]  # the stored memory

    def node(self, name: str) -> Object | None:
        return self.world.at(("Node", "", name))

    def policy(self, pool: str) -> Declared[DrainPolicy] | None:
        """The DrainPolicy in force for the pool."""
        drains = (each for each in self.desired().drains if not each.spec.suspend)
        return next((each for each in drains if {"*", pool} & set(each.spec.pool_names)), None)

    def policy_on(self, node: str) -> Declared[DrainPolicy] | None:
        """The DrainPolicy in force for the node."""
        observed = self.where.nodes.get(node)
        return self.policy(observed.pool) if observed is not None else None

    def provisioner(self, pool: str) -> NodeProvisioner | None:
        """The NodeProvisioner in force for the pool."""
        provisioners = (each.spec for each in self.desired().provisioners if each.spec.pool_name == pool)
        return next((each for each in provisioners if not each.suspend), None)

    def lasts_since(self, since: Instant | None) -> bool:
        """Whether that time is known and long enough ago for reconciler to have observed the change."""
        return since is not None and self.now() - since >= OBSERVED_WITHIN_MS

    def gpus_known(self, node: str) -> int:
        """GPUs in use on the node by pods that reconciler has observed there."""
        where = self.where
        known = [key for key in where.pods_on(node) if self.lasts_since(where.placed.get(key))]
        return min(where.nodes[node].gpus, sum(where.pods[key].gpus for key in known))


Wrote = Callable[[ObjectWrite, InvariantContext], Iterator[str]]


class Checker(Protocol):
    """One invariant. Its state is limited to about an hour of history."""

    rule: str

    @property
    def kinds(self) -> tuple[str, ...]: ...

    @property
    def wrote(self) -> Wrote:
        """The violations by a write, as sentences; called for these kinds, whoever the writer is."""
        ...


class StatelessChecker(msgspec.Struct):
    """An invariant that is one function."""

    rule: str
    kinds: tuple[str, ...]
    wrote: Wrote

    def __call__(self) -> "StatelessChecker":
        return self


def checks(rule: str, *kinds: str) -> Callable[[Wrote], StatelessChecker]:
    """Makes a function the checker of the rule."""
    return lambda wrote: StatelessChecker(rule, kinds, wrote)


def is_ours(written: ObjectWrite) -> bool:
    """Whether reconciler's controller wrote it."""
    return written.by == names.FIELD_MANAGER


def goes(written: ObjectWrite) -> bool:
    """Whether this write deletes the object."""
    if written.before is None or is_leaving(written.before):
        return False
    return written.after is None or is_leaving(written.after)


def deleted_by_us(written: ObjectWrite) -> Object | None:
    """The object that reconciler deletes with this write, as it was before."""
    return written.before if is_ours(written) and goes(written) else None


def removal_taints(node: Object | None) -> frozenset[str]:
    """Keys of reconciler's removal taints."""
    return OUR_TAINTS & {each["key"] for each in taints_of(node)}


def marks(written: ObjectWrite) -> frozenset[str]:
    """Keys of reconciler's removal taints that a node gets by this write."""
    return removal_taints(written.after) - removal_taints(written.before)


def begins(written: ObjectWrite) -> bool:
    """Whether one of reconciler's drains begins with this write."""
    return is_ours(written) and names.DRAINING in marks(written)


def removed_by_us(written: ObjectWrite) -> Object | None:
    """The node that reconciler taints for removal or deletes with this write, as it was before."""
    return written.before if is_ours(written) and (marks(written) or goes(written)) else None


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
