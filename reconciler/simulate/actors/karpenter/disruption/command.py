"""Owner of what is being replaced: nodes that go as soon as other machines are ready in their place."""

from collections.abc import Sequence

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.action import Ref
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.conditions import (
    DISRUPTION,
    INITIALIZED,
    new_condition,
    says,
    with_condition,
    without,
)
from reconciler.simulate.actors.karpenter.disruption.candidate import Candidate
from reconciler.simulate.actors.karpenter.lifecycle import BY
from reconciler.simulate.actors.karpenter.provisioning.batch_window import Purchasing
from reconciler.simulate.actors.karpenter.provisioning.new_claim import NewNodeClaim
from reconciler.simulate.actors.karpenter.taints import set_disrupted

_LEAST_PATIENCE_MS, _MOST_PATIENCE_MS, _PATIENCE_PER_COMMAND_MS = 600_000, 3_600_000, 80


class Command(msgspec.Struct, frozen=True):
    """Nodes to take away, and what is bought first."""

    reason: str
    candidates: tuple[Candidate, ...]
    replacements: tuple[NewNodeClaim, ...] = ()
    nominated: tuple[str, ...] = ()  # claims to whose nodes the pods go


class _UnderWay(msgspec.Struct):
    claims: tuple[str, ...]
    awaited: dict[str, None]
    until: Instant


class DisruptionCommands:
    """Told of claims that changed."""

    def __init__(self, known: Knowledge, purchasing: Purchasing) -> None:
        self._known = known
        self._purchasing = purchasing
        self._under_way: dict[int, _UnderWay] = {}
        self._started = 0

    def start(self, command: Command) -> None:
        """The nodes take no more pods from now on."""
        known, now = self._known, self._known.now
        for each in command.candidates:
            set_disrupted(known.world, each.node)
            claim = known.machines.claims[each.name]
            conditions = with_condition(claim, new_condition(DISRUPTION, now, reason=command.reason))
            known.world.edit(Ref("NodeClaim", "", each.name), {"status": {"conditions": conditions}}, BY)
        bought = self._purchasing.buy(command.replacements)
        for name in command.nominated:
            known.machines.nominate(name, now)
        for each in command.candidates:
            known.machines.mark(each.name)
        patience = min(max(_LEAST_PATIENCE_MS, _PATIENCE_PER_COMMAND_MS * len(self._under_way)), _MOST_PATIENCE_MS)
        under_way = _UnderWay(tuple(each.name for each in command.candidates), dict.fromkeys(bought), now)
        under_way.until = Instant(now + patience)
        number = self._started = self._started + 1
        self._under_way[number] = under_way
        known.stage.engine.at(under_way.until, "give a replacement up", lambda: self._give_up(number))
        self._go_on(number)

    def changed(self, names: Sequence[str]) -> None:
        """Claims that are ready, or gone."""
        touched = set(names)
        for number in [number for number, each in self._under_way.items() if touched & each.awaited.keys()]:
            self._go_on(number)

    def _go_on(self, number: int) -> None:
        under_way, machines = self._under_way[number], self._known.machines
        for name in list(under_way.awaited):
            claim = machines.claims.get(name)
            if claim is None or claim["metadata"].get("deletionTimestamp"):
                self._give_up(number)
                return
            if says(claim, INITIALIZED):
                del under_way.awaited[name]
        if not under_way.awaited:
            del self._under_way[number]
            for name in under_way.claims:
                self._known.world.delete(Ref("NodeClaim", "", name), BY)

    def _give_up(self, number: int) -> None:
        under_way = self._under_way.pop(number, None)
        if under_way is None:
            return
        for name in under_way.claims:
            self._known.machines.unmark(name)
            claim = self._known.machines.claims.get(name)
            if claim is None or claim["metadata"].get("deletionTimestamp"):
                continue
            ref = Ref("NodeClaim", "", name)
            self._known.world.edit(ref, {"status": {"conditions": without(claim, DISRUPTION)}}, BY)
            if (node := self._known.machines.node_of(claim)) is not None:
                set_disrupted(self._known.world, node, wanted=False)
