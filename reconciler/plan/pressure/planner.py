"""The pressure planner: moves elastic pods away from nodes where more is reserved than the watermark allows.

Theory of operation. A migration is one of a pod: its room at a destination is reserved first, then the pod is
evicted, and its controller makes another one that the scheduler places. Migrations in progress account for their
pressure until their pods are gone, so that no pressure is answered twice. Live migration does not exist yet: `Auto`
evicts.

Nothing is planned while nobody knows what is reserved, or while a kind that shows the pods could not be read or its
watch is silent.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import msgspec

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Declared
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Decision, Hold, Reason, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import PressurePolicy
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.pressure.context import PressedPool, PressureContext
from reconciler.plan.pressure.destinations import Destinations
from reconciler.plan.pressure.ledgers import elastic_pods, ledgers_of, pressed_resources, pressure_policies
from reconciler.plan.pressure.memory import (
    SUCCESSOR_MS,
    FailedMigration,
    Migration,
    MigrationMemory,
    memory_of,
    without_new_plans,
)
from reconciler.plan.pressure.node_migrations import NodeMigrations
from reconciler.plan.pressure.reasons import PLANNER, PressureOutdated, PressureUnread
from reconciler.plan.pressure.report import PressureReport
from reconciler.plan.pressure.resizing import resizes
from reconciler.plan.single_evictions import quiet_for_evictions, unread_for_evictions

_LONGEST_MS = 900_000  # how long a requested eviction is remembered without new plans
_FORGOTTEN_MS = 86_400_000  # after the end of a back-off


def pressure(inputs: Inputs, draft: Draft) -> Verdict:
    """Decisions about all nodes with a ledger together, because their pods share the same room."""
    before = inputs.memory.section(PLANNER, MigrationMemory)
    policies = pressure_policies(inputs.desired)
    if inputs.pressure is None or not policies:
        return _verdict(inputs, draft, (), without_new_plans(before, inputs, _LONGEST_MS))
    policies = {pool: policy for pool, policy in policies.items() if pool not in draft.left_out}
    if held := list(_unseen(inputs, policies)):
        return _verdict(inputs, draft, held, before)
    return _Planning(inputs, draft, policies).verdict(before)


def _verdict(inputs: Inputs, draft: Draft, decisions: Sequence[Decision], after: MigrationMemory) -> Verdict:
    draft.migrating = frozenset(each.uid for each in after.migrations)
    return Verdict(tuple(decisions), memory=inputs.memory.with_section(PLANNER, after))


def _unseen(inputs: Inputs, policies: Mapping[str, Declared[PressurePolicy]]) -> Iterator[Decision]:
    """Holds on the policies, if the cluster is not fully observed."""
    unread, old = unread_for_evictions(inputs), quiet_for_evictions(inputs)
    for name, policy in sorted({each.name: each for each in policies.values()}.items()):
        subject = Ref("PressurePolicy", "", name)
        if unread is not None:
            yield Decision(PLANNER, subject, Hold(), Reason(PressureUnread(subject, unread), policy.origin()))
        elif old is not None:
            yield Decision(PLANNER, subject, Hold(), Reason(PressureOutdated(subject, old), policy.origin()))


class _Planning:
    """One plan."""

    def __init__(self, inputs: Inputs, draft: Draft, policies: Mapping[str, Declared[PressurePolicy]]) -> None:
        self._inputs, self._draft = inputs, draft
        self._pools = {name: PressedPool(name, policy) for name, policy in policies.items()}
        self._pods: Mapping[str, Pod] = elastic_pods(draft.fleet)
        self._failed: dict[str, FailedMigration] = {}
        self._migrations: list[Migration] = []
        self._wakes: list[Instant] = []

    def verdict(self, before: MigrationMemory) -> Verdict:
        there, gone = self._sorted(before.migrations)
        migrating = {each.uid for each in there}
        ledgers = self._ledgers(migrating)
        self._failed = {each.uid: each for each in before.failed if self._backs_off(each)}
        pressed = [name for name, ledger in ledgers.items() if pressed_resources(ledger)]
        resized = list(self._resizes(ledgers))
        decisions: list[Decision] = []
        if there or any(ledgers[name].is_pressed for name in pressed):
            context = PressureContext(self._inputs, self._draft, ledgers, self._pods)
            with self._draft.fleet.snapshot.fork():
                decisions = self._decisions(context, there, gone)
            self._wakes += context.evictions.wakes
        decided = {each.subject for each in decisions}
        decisions += [each for each in resized if each.subject not in decided]
        self._migrations += gone
        after = memory_of(self._migrations, self._failed.values())
        self._draft.migrating = frozenset(each.uid for each in after.migrations)
        memory = self._inputs.memory.with_section(PLANNER, after)
        wakes = [*self._wakes, *(each.until for each in after.failed)]
        wake_at = min((each for each in wakes if each > self._inputs.now), default=None)
        return Verdict(tuple(decisions), memory=memory, wake_at=wake_at, reports=(self._report(pressed),))

    def _resizes(self, ledgers: Mapping[str, NodeLedger]) -> Iterator[Decision]:
        """A pod that migrates keeps its size: its destination has been reserved for what it has."""
        for name, ledger in sorted(ledgers.items()):
            node = self._draft.fleet.node(name)
            if node is not None:
                entries = {each.uid: each for each in ledger.elastic_pods if not each.is_migrating}
                yield from resizes(entries, self._pods, node.pool)

    def _ledgers(self, migrating: Collection[str]) -> dict[str, NodeLedger]:
        return ledgers_of(self._inputs, self._draft.fleet, self._pools, self._pods, migrating)

    def _sorted(self, migrations: tuple[Migration, ...]) -> tuple[list[Migration], list[Migration]]:
        """Migrations of pods that are still on their node, and of pods that are gone and whose room is kept."""
        there, gone = list[Migration](), list[Migration]()
        for each in migrations:
            pod = self._pods.get(each.uid)
            if pod is not None and pod.node == each.node and not pod.is_finished:
                there.append(each)
            elif each.evicted_at is not None:
                gone_at = each.gone_at if each.gone_at is not None else self._inputs.now
                ends = later(gone_at, SUCCESSOR_MS)
                if ends > self._inputs.now:
                    gone.append(msgspec.structs.replace(each, gone_at=gone_at))
                    self._wakes.append(ends)
        return there, gone

    def _backs_off(self, failed: FailedMigration) -> bool:
        """Whether the record is still needed: a pod that fails again soon backs off for longer."""
        return failed.uid in self._pods and self._inputs.now < later(failed.until, _FORGOTTEN_MS)

    def _decisions(self, context: PressureContext, there: list[Migration], gone: list[Migration]) -> list[Decision]:
        # Copies: a reserved place is no pressure on its node.
        destinations = Destinations(self._draft, self._ledgers({each.uid for each in there}))
        for each in there:
            destinations.keep(self._pods[each.uid], each.uid, each.destination, each.amounts)
        for each in gone:
            destinations.keep(None, each.uid, each.destination, each.amounts)
        by_node: dict[str, list[Migration]] = {}
        for each in there:
            by_node.setdefault(each.node, []).append(each)
        decisions: list[Decision] = []
        for name in sorted(context.ledgers):
            node = self._draft.fleet.node(name)
            under_way = by_node.pop(name, [])
            if node is None or not (under_way or context.ledgers[name].is_pressed):
                continue
            with planning_for(node.pool):
                migrations = NodeMigrations(context, destinations, self._pools[node.pool], node)
                decisions += migrations.decide(under_way, self._failed)
            self._migrations += migrations.migrations
            self._wakes += [context.ends(node, self._pods[each.uid], each) for each in migrations.migrations]
        # The ledger of the node is not known any more: evictions that were requested go on by themselves.
        lost = (each for migrations in by_node.values() for each in migrations)
        self._migrations += [each for each in lost if self._is_recent(each)]
        return decisions

    def _is_recent(self, migration: Migration) -> bool:
        node, at = self._draft.fleet.node(migration.node), migration.evicted_at
        if node is not None and node.pool in self._draft.left_out:
            return True
        return at is not None and self._inputs.now - at < _LONGEST_MS

    def _report(self, pressed: Iterable[str]) -> PressureReport:
        nodes = (node for name in sorted(pressed) if (node := self._draft.fleet.node(name)) is not None)
        return PressureReport(dict(sorted(Counter(each.pool for each in nodes).items())))
