"""What rules out nodes for a pod, counted by predicate and by kind of node, and how that is told."""

from collections.abc import Mapping

import msgspec

ByKind = Mapping[str, int]  # how many nodes of a kind

_MOST_KINDS = 4  # that are named of one predicate


class RuledOut(msgspec.Struct, frozen=True):
    """Why nodes do not take a pod."""

    by: Mapping[str, ByKind] = {}  # name of a predicate -> nodes that it rules out
    free: ByKind = {}  # nodes that nothing rules out: it would fit there alone

    @property
    def totals(self) -> dict[str, int]:
        """Nodes of any kind, by the name of a predicate, in the order of predicates."""
        return {name: sum(kinds.values()) for name, kinds in self.by.items()}

    @property
    def told(self) -> str:
        """resources on 12 of a100 p4d.24xlarge and 1 of l4 g6.12xlarge, selection on 3 of l4 g6.12xlarge."""
        found = [f"{name} on {_told(kinds)}" for name, kinds in sorted(self.by.items())]
        return ", ".join([*found, *([f"not beside the others on {_told(self.free)}"] if self.free else [])])


def _told(kinds: ByKind) -> str:
    """The largest first."""
    order = sorted(kinds.items(), key=lambda each: (-each[1], each[0]))
    parts = [f"{count} of {kind}" for kind, count in order[:_MOST_KINDS]]
    if rest := sum(count for _, count in order[_MOST_KINDS:]):
        parts.append(f"{rest} of other kinds")
    return listed(parts)


def listed(parts: list[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
