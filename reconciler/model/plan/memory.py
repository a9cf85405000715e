"""State that must survive restarts and that the cluster cannot carry; and hints, which may be lost at any time."""

from typing import Any, TypeVar

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.capacity import PoolShortfall, Shortage
from reconciler.model.plan.decision import Reason
from reconciler.model.plan.drain_memory import DrainMemory
from reconciler.model.plan.guard_verdict import DisruptionRecord, ObservedTaint

Section = TypeVar("Section", bound=msgspec.Struct)


class Memory(msgspec.Struct, frozen=True):
    """Saved before actions are executed."""

    marks: tuple[DisruptionRecord, ...] = ()  # of the last hour, and of nodes still leaving; sorted
    imagined: tuple[ObservedTaint, ...] = ()  # taints of nodes of pools in Observe mode; sorted
    lacking: tuple[PoolShortfall, ...] = ()  # how long Karpenter has been left to launch nodes itself; sorted
    shortages: tuple[Shortage, ...] = ()  # recently unavailable offerings; sorted
    drained: DrainMemory = DrainMemory()
    sections: dict[str, dict[str, Any]] = {}  # private state of each feature, as plain JSON

    def section(self, feature: str, kind: type[Section]) -> Section:
        """The remembered section; the defaults of the struct if there is none or it cannot be read."""
        written = self.sections.get(feature)
        if written is None:
            return kind()
        try:
            return msgspec.convert(written, kind)
        except msgspec.ValidationError:
            return kind()

    def with_section(self, feature: str, section: msgspec.Struct) -> "Memory":
        """A section that equals its defaults is left out."""
        others = {name: written for name, written in self.sections.items() if name != feature}
        if section != type(section)():
            others[feature] = msgspec.to_builtins(section, order="sorted")
        return msgspec.structs.replace(self, sections=dict(sorted(others.items())))


class FailedPlacement(msgspec.Struct, frozen=True, gc=False):
    """A node whose pods fit nowhere else."""

    uid: str
    since: Instant  # first of the consecutive failures
    at: Instant  # last failure
    reason: Reason  # of the last failure


class Hints(msgspec.Struct, frozen=True):
    """May affect destinations and reports, but never safety, timers or batches in progress."""

    # Name of the node that pods leave, or empty -> key of the pod class -> name of a destination node, and how many
    # pods fit there. Pods of a class are interchangeable.
    destinations: dict[str, dict[str, dict[str, int]]] = {}
    tried: dict[str, FailedPlacement] = {}  # node name -> failed placement
