"""Which consequences come because of this change, and which would come without it.

Two plans of the same cluster are compared, that of the change and that of its base. What stands in both comes anyway.
Nodes are counted once: where the base does the same to some of them, the change is blamed for the others only.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model.planned.consequence import Cause, Consequence, Fate
from reconciler.model.planned.plan import Plan

_Key = tuple[str, str, Cause, Fate]


class Blame(msgspec.Struct, frozen=True):
    """Each in the order of the plan."""

    without: tuple[Consequence, ...] = ()
    because: tuple[Consequence, ...] = ()
    spared: tuple[Consequence, ...] = ()  # would come without the change, and no longer come with it


def blame(plan: Plan, base: Plan | None) -> Blame:
    """Without a base, what changes is blamed on the plan, and what stands is not."""
    changed = [each for each in plan.consequences if each.cause == "change"]
    standing = [each for each in plan.consequences if each.cause == "standing"]
    if base is None:
        return Blame(tuple(standing), tuple(changed))
    before = {_key(each): each for each in base.consequences}
    because = [left for each in changed if (left := _rest(each, before.get(_key(each))))]
    without = [*base.consequences, *(each for each in standing if _key(each) not in before)]
    return Blame(tuple(without), tuple(because), tuple(_spared(plan, base)))


def pool_of(consequence: Consequence) -> str:
    """The GpuPool; of a NodePool that no policy declares any more, its own name, which was the same."""
    return consequence.pool or consequence.node_pool


def _key(consequence: Consequence) -> _Key:
    return consequence.pool, consequence.node_pool, consequence.cause, consequence.fate


def _rest(consequence: Consequence, before: Consequence | None) -> Consequence | None:
    """What is left of it without the nodes that meet the same fate anyway."""
    if before is None:
        return consequence
    nodes, anyway = set(consequence.nodes), set(before.nodes)
    if nodes <= anyway:
        return None
    if not anyway <= nodes:
        # Sums can't be parted among nodes: what neither contains the other of is told whole.
        return consequence
    held_before = dict(before.held_by)
    held = ((name, count - held_before.get(name, 0)) for name, count in consequence.held_by)
    return msgspec.structs.replace(
        consequence,
        nodes=tuple(sorted(nodes - anyway)),
        gpus=consequence.gpus - before.gpus,
        gpus_in_use=consequence.gpus_in_use - before.gpus_in_use,
        pods=consequence.pods - before.pods,
        micro_dollars_per_hour=consequence.micro_dollars_per_hour - before.micro_dollars_per_hour,
        unpriced=consequence.unpriced - before.unpriced,
        held_by=tuple((name, count) for name, count in held if count > 0),
    )


def _spared(plan: Plan, base: Plan) -> Iterator[Consequence]:
    still = {(each.node_pool, node) for each in plan.consequences for node in each.nodes}
    for each in base.consequences:
        if each.fate != "undrifted" and not any((each.node_pool, node) in still for node in each.nodes):
            yield each
