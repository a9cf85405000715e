"""What must outlive a restart and that the cluster cannot carry itself; and hints, which may be lost at any time."""

from typing import Any, TypeVar

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import PoolShortfall, Shortage
from reconciler.model.plan.decision import Reason
from reconciler.model.plan.drain_memory import DrainMemory
from reconciler.model.plan.guard_verdict import DisruptionRecord, ObservedTaint

Section = TypeVar("Section", bound=msgspec.Struct)


class Memory(msgspec.Struct, frozen=True):
    """Written before actions go out."""

    marks: tuple[DisruptionRecord, ...] = ()  # of the last hour, and of what is leaving still; sorted
    imagined: tuple[ObservedTaint, ...] = ()  # taints of nodes of pools in mode Observe; sorted
    lacking: tuple[PoolShortfall, ...] = ()  # for how long Karpenter has been left to buy by itself; sorted
    shortages: tuple[Shortage, ...] = ()  # what could not be bought lately; sorted
    drained: DrainMemory = DrainMemory()
    sections: dict[str, dict[str, Any]] = {}  # by feature, what no other feature reads, as plain JSON

    def section(self, feature: str, kind: type[Section]) -> Section:
        """As it was remembered last; the defaults of the struct where nothing was, or what nobody can read."""
        written = self.sections.get(feature)
        if written is None:
            return kind()
        try:
            return msgspec.convert(written, kind)
        except msgspec.ValidationError:
            return kind()

    def with_section(self, feature: str, section: msgspec.Struct) -> "Memory":
        """A section that is as by default is left out."""
        others = {name: written for name, written in self.sections.items() if name != feature}
        if section != type(section)():
            others[feature] = msgspec.to_builtins(section, order="sorted")
        return msgspec.structs.replace(self, sections=dict(sorted(others.items())))


class FailedPlacement(msgspec.Struct, frozen=True, gc=False):
    """A node for whose pods no places were found."""

    uid: str
    since: Instant  # when that was found first, of times in a row
    at: Instant  # and last
    reason: Reason  # of the last time


class Hints(msgspec.Struct, frozen=True):
    """May change destinations and what is told, never safety, timers or batches in flight."""

    # Name of the node that pods leave, or nothing -> key of their class -> name of a node, and how many of them find a
    # place there. Pods of a class are as good as each other.
    destinations: dict[str, dict[str, dict[str, int]]] = {}
    tried: dict[str, FailedPlacement] = {}  # name of a node -> what came of it
