"""Migrations of the pods of one node: those in progress, those that are cancelled or have failed, and new ones."""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.fleet.pressure.ledger import NodeLedger
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Decision, Hold, Reason, Ref, node_ref, pod_ref
from reconciler.model.plan.pressure import ElasticPod
from reconciler.plan.nodes.eviction import Remaining
from reconciler.plan.nodes.ownership import untouchable
from reconciler.plan.pressure.choice import choose, in_order, superfluous
from reconciler.plan.pressure.context import PressedPool, PressureContext
from reconciler.plan.pressure.destinations import Destinations
from reconciler.plan.pressure.ledgers import pressed_resources
from reconciler.plan.pressure.memory import FailedMigration, Migration
from reconciler.plan.pressure.reasons import (
    PLANNER,
    MigrationGivenUp,
    MigrationUnderWay,
    PlacesRuledOut,
    PodFitsNowhereElse,
    PodMigrated,
    PressedNodeLeaves,
    PressedNodeOfOthers,
    PressureNotRelieved,
    PressureRemains,
)


class NodeMigrations:
    """Decisions for one node. Changes the ledger of the node, the destinations and the budgets of the context."""

    def __init__(self, context: PressureContext, destinations: Destinations, pool: PressedPool, node: Node) -> None:
        self._context, self._destinations, self._pool, self._node = context, destinations, pool, node
        self._ledger: NodeLedger = context.ledgers[node.name]
        self._before = pressed_resources(self._ledger)
        self._failed: dict[str, FailedMigration] = {}
        self._trial = context.evictions.remaining
        self.migrations: list[Migration] = []  # after this plan, if the guards allow the new ones
        self.failed: list[FailedMigration] = []  # in this plan

    def decide(self, under_way: Sequence[Migration], failed: dict[str, FailedMigration]) -> list[Decision]:
        """`under_way`: migrations of pods that are still on this node, with their reservations made."""
        self._failed = failed
        decisions = list(self._continued(under_way))
        if self._ledger.is_pressed:
            decisions += self._relieve()
        return decisions

    # Migrations in progress

    def _continued(self, under_way: Sequence[Migration]) -> Iterator[Decision]:
        """Only notices can be cancelled: an eviction that was requested may take effect at any time."""
        context = self._context
        lasting = []
        for each in under_way:
            pod = context.pods[each.uid]
            if not pod.metadata.leaving and context.ends(self._node, pod, each) <= context.now:
                yield self._fail(each, pod)
            else:
                lasting.append(each)
        lasting = [self._rehomed(each) for each in lasting]
        stays = {each.uid for each in lasting if not context.pods[each.uid].metadata.leaving}
        cancelled = self._cancelled([each for each in lasting if each.evicted_at is None and each.uid in stays])
        for each in lasting:
            pod = context.pods[each.uid]
            if each.uid in cancelled:
                self._destinations.give_back(pod)
                continue
            self.migrations.append(each)
            if self._is_given_away or each.uid not in stays:
                facts = MigrationUnderWay(self._node.name, pod_ref(pod), each.since)
                yield self._pool.decision(pod, Hold(), self._pool.reason(facts))
            else:
                yield self._go_on(each, pod)

    def _rehomed(self, migration: Migration) -> Migration:
        """The migration with another destination, if the first one has no room any more; without a destination, if no
        node has room.
        """
        pod = self._context.pods[migration.uid]
        is_settled = migration.evicted_at is not None or pod.metadata.leaving
        if is_settled or migration.uid not in self._destinations.homeless:
            return migration
        self._destinations.give_back(pod)
        place = self._destinations.reserve(pod, migration.amounts)
        return msgspec.structs.replace(migration, destination=place if isinstance(place, str) else "")

    def _cancelled(self, notified: Sequence[Migration]) -> set[str]:
        """Migrations without a destination, and those that the pressure no longer needs; all of them, if no pod may be
        moved from the node.
        """
        lost = {each.uid for each in notified if self._is_given_away or not each.destination}
        for uid in lost:
            self._ledger.migrate(uid, is_migrating=False)
        uids = [each.uid for each in notified if each.uid not in lost]
        entries = [entry for uid in uids if isinstance(entry := self._ledger.get(uid), ElasticPod)]
        order = [each.uid for each in reversed(in_order(entries, self._context.loads))]
        return lost | set(superfluous(self._ledger, order)) | (set(uids) - set(order))

    @property
    def _is_given_away(self) -> bool:
        """Whether no pod is moved from the node, whatever its pressure."""
        is_leaving = self._context.draft.leaves(self._node) or untouchable(self._node) is not None
        return is_leaving or not self._pool.migrates

    def _go_on(self, migration: Migration, pod: Pod) -> Decision:
        context = self._context
        stays = context.why_not(self._pool, self._node, pod, context.evictions.remaining)
        if stays is not None:
            return self._pool.decision(pod, Hold(context.ends(self._node, pod, migration)), stays)
        context.evictions.remaining.take(pod)
        return self._evict(pod, migration)

    def _fail(self, migration: Migration, pod: Pod) -> Decision:
        self._ledger.migrate(migration.uid, is_migrating=False)
        self._destinations.give_back(pod)
        before = self._failed.get(migration.uid)
        failed = FailedMigration(
            migration.uid, migration.pod, self._context.now, before.times + 1 if before is not None else 1
        )
        self._failed[migration.uid] = failed
        self.failed.append(failed)
        return self._given_up(pod, failed)

    def _given_up(self, pod: Pod, failed: FailedMigration) -> Decision:
        return self._pool.decision(pod, Hold(failed.until), self._why_given_up(pod, failed))

    def _why_given_up(self, pod: Pod, failed: FailedMigration) -> Reason:
        seconds = self._context.evictions.patience_ms(self._node) // 1_000
        return self._pool.reason(MigrationGivenUp(self._node.name, pod_ref(pod), seconds, failed.until))

    # New migrations

    def _relieve(self) -> Iterator[Decision]:
        node, pool, pressed = self._node, self._pool, pressed_resources(self._ledger)
        if self._context.draft.leaves(node):
            yield self._hold(pool.reason(PressedNodeLeaves(node.name)))
        elif (others := untouchable(node)) is not None:
            yield self._hold(pool.reason(PressedNodeOfOthers(node.name, pressed, others)))
        elif not pool.migrates:
            policy = Ref("PressurePolicy", "", pool.policy.name)
            yield self._hold(pool.reason(PressureNotRelieved(node.name, policy, pressed), "migration"))
        else:
            yield from self._choose()

    def _choose(self) -> Iterator[Decision]:
        context = self._context
        self._trial, chosen_pods = context.evictions.remaining_after(()), dict[str, Pod]()
        entries = in_order(filter(self._is_candidate, self._ledger.elastic_pods), context.loads)

        def reserve(entry: ElasticPod) -> str | Reason:
            place = self._reserved(entry, self._trial)
            if isinstance(place, str):
                chosen_pods[entry.uid] = pod = context.pods[entry.uid]
                self._trial.take(pod)
            return place

        def give_back(entry: ElasticPod) -> None:
            self._destinations.give_back(chosen_pods.pop(entry.uid))
            self._trial = context.evictions.remaining_after(chosen_pods.values())

        choice = choose(self._ledger, entries, reserve, give_back)
        for uid, destination in choice.chosen.items():
            pod, entry = context.pods[uid], self._entry(uid)
            migration = Migration(
                uid, pod.title, self._node.name, self._pool.name, destination, context.now, amounts_of(entry)
            )
            context.evictions.remaining.take(pod)
            self.migrations.append(migration)
            yield self._evict(pod, migration)
        given_up = {each.uid for each in self.failed}
        for uid, reason in choice.refused.items():
            if uid not in given_up:
                failed = self._failed.get(uid)
                until = failed.until if failed is not None and failed.until > context.now else None
                yield self._pool.decision(context.pods[uid], Hold(until), reason)
        if self._ledger.is_pressed:
            remains = PressureRemains(self._node.name, pressed_resources(self._ledger))
            yield self._hold(self._pool.reason(remains))

    def _is_candidate(self, entry: ElasticPod) -> bool:
        """Whether the pod is observed on the node, stays there, and no other planner acts on the pod."""
        pod = self._context.pods.get(entry.uid)
        if pod is None or entry.is_migrating or pod.node != self._node.name or pod.is_finished:
            return False
        return not pod.metadata.leaving and not self._context.draft.claimed_by(pod_ref(pod))

    def _reserved(self, entry: ElasticPod, remaining: Remaining) -> str | Reason:
        context, pod = self._context, self._context.pods[entry.uid]
        failed = self._failed.get(entry.uid)
        if failed is not None and failed.until > context.now:
            return self._why_given_up(pod, failed)
        stays = context.why_not(self._pool, self._node, pod, remaining)
        if stays is not None:
            return stays
        place = self._destinations.reserve(pod, amounts_of(entry))
        if isinstance(place, PlacesRuledOut):
            return self._pool.reason(PodFitsNowhereElse(self._node.name, pod_ref(pod), place))
        return place

    def _entry(self, uid: str) -> ElasticPod:
        entry = self._ledger.get(uid)
        if not isinstance(entry, ElasticPod):
            raise TypeError(f"{uid} is not elastic")
        return entry

    def _evict(self, pod: Pod, migration: Migration) -> Decision:
        """The eviction, or first a notice for a pod that saves its work."""
        evictions, node = self._context.evictions, self._node
        saves = evictions.first_save(node, pod, migration.since)
        if saves is not None:
            return self._pool.decision(pod, saves[0], self._pool.reason(saves[1]))
        facts = PodMigrated(node.name, pod_ref(pod), migration.destination, self._before)
        return self._pool.decision(pod, evictions.eviction(node, pod, migration.destination), self._pool.reason(facts))

    def _hold(self, reason: Reason) -> Decision:
        return Decision(PLANNER, node_ref(self._node), Hold(), reason, self._pool.name)


def amounts_of(entry: ElasticPod) -> dict[str, int]:
    """What the pod needs at its destination: what the pod has reserved, without what the pod may not have."""
    return {name: entry.reserved(name) - entry.buffer(name) for name in sorted(entry.has)}
