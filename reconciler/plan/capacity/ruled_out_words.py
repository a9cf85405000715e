"""How it is told which predicates rule out how many nodes of which kind."""

from collections.abc import Sequence

from reconciler.fleet.snapshot.rejections import NodesOfKind, Rejections

_MOST_KINDS = 4  # that are named of one predicate


def ruled_out_words(rejections: Rejections) -> str:
    """resources on 12 of a100 p4d.24xlarge and 1 of l4 g6.12xlarge, selection on 3 of l4 g6.12xlarge."""
    by = sorted(rejections.by, key=lambda each: each.predicate)
    parts = [f"{each.predicate} on {_kinds_words(each.kinds)}" for each in by]
    return ", ".join(
        [*parts, *([f"not beside the others on {_kinds_words(rejections.free)}"] if rejections.free else [])]
    )


def _kinds_words(kinds: Sequence[NodesOfKind]) -> str:
    """The largest first."""
    order = sorted(kinds, key=lambda each: (-each.nodes, each.kind))
    parts = [f"{each.nodes} of {each.kind}" for each in order[:_MOST_KINDS]]
    if rest := sum(each.nodes for each in order[_MOST_KINDS:]):
        parts.append(f"{rest} of other kinds")
    return listed(parts)


def listed(parts: list[str]) -> str:
    """a, b and c."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
