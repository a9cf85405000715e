"""Owner of the rounds in which Karpenter looks for nodes to take away, each way in its turn.

A round begins every so often; after one that found nothing among many nodes, the next waits longer. What is
consolidated is looked at a second time before it is done, and until then nothing else is begun.
"""

from reconciler.model.instant import Instant
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge
from reconciler.simulate.actors.karpenter.disruption.command import Command, DisruptionCommands
from reconciler.simulate.actors.karpenter.disruption.methods import consolidated, drifted, emptied, renewed, still_holds
from reconciler.simulate.actors.karpenter.provisioning.batch_window import Purchasing
from reconciler.simulate.actors.karpenter.timing import AGAIN_MS, VALIDATED_AFTER_MS

_SOON_MS = 1_000
_AT_LATEST_MS = 300_000
_PATIENCE_PER_NODE_MS = 250


class DisruptionController:
    """Rounds go on as long as there is a NodePool that could lose nodes."""

    def __init__(self, known: Knowledge, purchasing: Purchasing) -> None:
        self._known = known
        self._engine = known.stage.engine
        self.commands = DisruptionCommands(known, purchasing)
        self._replace_at = Instant(0)
        self._is_asleep = True
        self._consolidate_at = Instant(0)

    def changed(self) -> None:
        """Claims or NodePools did: there may be something to look at."""
        if self._is_asleep and self._could_act():
            self._is_asleep = False
            now = self._engine.now
            self._next(AGAIN_MS - now % AGAIN_MS)

    def _round(self) -> None:
        if self._known.machines.unlaunched:
            self._next(_SOON_MS)
            return
        if command := emptied(self._known):
            self._validate_later(command)
            return
        is_begun = self._replace_drifted()
        if not is_begun and self._engine.now >= self._consolidate_at:
            if command := consolidated(self._known):
                self._validate_later(command)
                return
            self._consolidate_at = self._later(len(self._known.machines.claims))
        self._next(_SOON_MS if is_begun else AGAIN_MS)

    def _could_act(self) -> bool:
        """As far as a glance shows."""
        known = self._known
        return bool(known.machines.drifted) or any(each.consolidates(known.now) for each in known.pools.in_order())

    def _replace_drifted(self) -> bool:
        """Whether it was begun with some."""
        many = len(self._known.machines.drifted)
        if not many or self._engine.now < self._replace_at:
            return False
        of_fixed_size = renewed(self._known)
        for command in of_fixed_size:
            self.commands.start(command)
        is_begun = bool(of_fixed_size)
        for command in () if is_begun else drifted(self._known):
            self.commands.start(command)
            is_begun = True
            if command.replacements:
                break  # what comes next is judged once that machine is launched
        if not is_begun:
            self._replace_at = self._later(many)
        return is_begun

    def _later(self, nodes: int) -> Instant:
        """Where there are many to look at a round takes long, and so there are fewer of them."""
        return Instant(self._engine.now + min(_AT_LATEST_MS, max(AGAIN_MS, _PATIENCE_PER_NODE_MS * nodes)))

    def _validate_later(self, command: Command) -> None:
        self._engine.after(VALIDATED_AFTER_MS, "look at a consolidation again", lambda: self._validate(command))

    def _validate(self, command: Command) -> None:
        if not self._known.machines.unlaunched and (valid := still_holds(self._known, command)) is not None:
            self.commands.start(valid)
        self._next(AGAIN_MS)

    def _next(self, delay_ms: int) -> None:
        if not self._could_act():
            self._is_asleep = True
            return
        self._engine.after(delay_ms, "look for nodes to take away", self._round)
