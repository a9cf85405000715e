"""Memory of migrations: pods that were chosen to leave, so that the pressure is accounted for exactly once.

A migration begins with the eviction of its pod, or with the notice for a pod that saves its work first. The migration
ends when the pod is gone, when the pod is still there after a while (failed: the pod backs off), or when the pressure
is gone before the eviction was sent (cancelled). The room at the destination is kept a little longer than the pod:
its successor is not observed at once.
"""

from collections.abc import Iterable

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Decision, Evict, Hold
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.memory import Memory
from reconciler.plan.pressure.reasons import PLANNER

SUCCESSOR_MS = 30_000  # how long room is kept for the successor of a pod that is gone
_FIRST_BACKOFF_MS = 600_000
_LONGEST_BACKOFF_MS = 86_400_000
_MOST_DOUBLINGS = 8


class Migration(msgspec.Struct, frozen=True, gc=False):
    """A pod that leaves its node because of pressure."""

    uid: str
    pod: str  # namespace and name
    node: str
    pool: str  # of the node
    destination: str
    since: Instant
    amounts: dict[str, int] = {}  # reserved at the destination, in the units of kube-scheduler
    evicted_at: Instant | None = None  # first request of the eviction; None: the pod has a notice only
    gone_at: Instant | None = None  # when the pod was first observed to be gone


class FailedMigration(msgspec.Struct, frozen=True, gc=False):
    """A pod that did not leave."""

    uid: str
    pod: str
    at: Instant
    times: int = 1  # consecutive times

    @property
    def until(self) -> Instant:
        """End of the back-off."""
        doubled = _FIRST_BACKOFF_MS * 2 ** min(self.times - 1, _MOST_DOUBLINGS)
        return later(self.at, min(doubled, _LONGEST_BACKOFF_MS))


class MigrationMemory(msgspec.Struct, frozen=True):
    """The pressure planner's section of the memory; each tuple is sorted by uid."""

    migrations: tuple[Migration, ...] = ()
    failed: tuple[FailedMigration, ...] = ()


def memory_of(migrations: Iterable[Migration], failed: Iterable[FailedMigration]) -> MigrationMemory:
    return MigrationMemory(
        tuple(sorted(migrations, key=lambda each: each.uid)), tuple(sorted(failed, key=lambda each: each.uid))
    )


def without_new_plans(before: MigrationMemory, inputs: Inputs, longest_ms: int) -> MigrationMemory:
    """The memory while nobody knows the pressure, or no policy is in force: notices are cancelled, and evicted pods
    leave.
    """
    if before == MigrationMemory():
        return before
    there = {each.metadata.uid for each in inputs.observed.pods}
    migrations = (
        each
        for each in before.migrations
        if each.uid in there and each.evicted_at is not None and inputs.now - each.evicted_at < longest_ms
    )
    return memory_of(migrations, (each for each in before.failed if each.uid in there))


def settle(inputs: Inputs, fleet: Fleet, decisions: tuple[Decision, ...], memory: Memory) -> Memory:  # noqa: ARG001
    """The memory after the guards: a migration begins only if its eviction, or its notice, is carried out."""
    planned = memory.section(PLANNER, MigrationMemory)
    before = {each.uid for each in inputs.memory.section(PLANNER, MigrationMemory).migrations}
    acts = {
        each.subject.uid: each.act
        for each in decisions
        if each.planner == PLANNER and not each.would and not isinstance(each.act, Hold)
    }
    migrations = []
    for each in planned.migrations:
        act = acts.get(each.uid)
        if act is None and each.uid not in before:
            continue
        is_first = isinstance(act, Evict) and each.evicted_at is None
        migrations.append(msgspec.structs.replace(each, evicted_at=inputs.now) if is_first else each)
    return memory.with_section(PLANNER, memory_of(migrations, planned.failed))
