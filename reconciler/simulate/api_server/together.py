"""Pods that are asked to leave together: what comes of it, one after the other, as on a real cluster."""

from collections.abc import Sequence

import msgspec

from reconciler.model.instant import Instant
from reconciler.model.plan.action import Evict
from reconciler.protocol.group_eviction import leaves, no_longer_whole
from reconciler.protocol.preconditions import Object, WriteResult
from reconciler.simulate.api_server.eviction import evicted
from reconciler.simulate.objects import Key, ObjectStore, Write, key_of

_BUDGETS = "PodDisruptionBudget"


class Partly(msgspec.Struct, frozen=True):
    """Some of it was done, and then it ended so."""

    writes: tuple[Write, ...]
    settled: WriteResult


def left_together(
    act: Evict, subject: Object, objects: ObjectStore, now: Instant
) -> WriteResult | Partly | tuple[Write, ...]:
    """All are asked by a dry run; then the others, and the subject last."""
    asked: list[tuple[Evict, Object]] = []
    for each in act.others:
        found = objects.get(each.ref)
        if found is None or leaves(each.ref, found):
            return no_longer_whole(each.ref)
        asked.append((Evict(grace_seconds=each.grace_seconds), found))
    asked.append((act, subject))
    for one, pod in asked:
        if isinstance(dry := evicted(one, pod, objects.of(_BUDGETS), now), WriteResult):
            return dry
    return _in_earnest(asked, objects, now)


def _in_earnest(
    asked: Sequence[tuple[Evict, Object]], objects: ObjectStore, now: Instant
) -> Partly | tuple[Write, ...]:
    """What one costs of a budget the next one lacks."""
    budgets: dict[Key, Object] = {key_of(each): each for each in objects.of(_BUDGETS)}
    writes: list[Write] = []
    refused: list[WriteResult] = []
    for act, pod in asked:
        done = evicted(act, pod, budgets.values(), now)
        if isinstance(done, WriteResult):
            refused.append(done)
            continue
        writes += done
        budgets |= {key_of(each.body): each.body for each in done if each.body["kind"] == _BUDGETS}
    return Partly(tuple(writes), refused[0]) if refused else tuple(writes)
