"""Backoff of drains: pools whose drains were in vain, and nodes that could not be drained."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.instant import Instant, later, moment, timestamp
from reconciler.model.plan.drain_memory import Begun, InVain, Load, Moved, Setback
from reconciler.plan.drain.context import DrainContext
from reconciler.plan.recent_evictions import gone, owner_of, wanted_by

# --- Drains that were in vain, since a node came for the pods that they moved: their pool is left alone for half an
# hour then, and twice as long each further time; and after that for as long as another drain would do no better.
#
# A place is found for each pod that is moved, but the scheduler may choose another. Where all fit to the last GPU, one
# of them may then find none, and Karpenter buys: the node that was saved is back, and would be drained again, and
# again. A node of any pool came for such a pod if it is younger than that pod, which runs on it, and whose owner was to
# have no more pods than before. The same holds where such a pod runs in a pool that keeps nodes warm, and lacks some
# now: the scheduler prefers free nodes, whatever place was found for the pod. What came while the pool rested already
# is of the same drains. What did not come again for six hours after a rest is forgotten.
#
# Another drain would do no better while the pool is used as it was when the drains began that were in vain: as many
# pods with as many GPUs, on no fewer nodes, and as many nodes that are kept free. These free nodes are where the
# scheduler puts the pods, so that after a drain up to as many nodes more may be in use than before. Only if more nodes
# are emptied at once than are kept free, and more than the last time, there are fewer afterwards. Where the same pods
# are on fewer nodes, something was gained although a node came, and the pool does not rest. So each try begins with
# fewer nodes in use than the one before, or empties more of them at once, and under a load that stays the same there is
# a last one.

_FIRST_MS = 1_800_000
_DOUBLINGS = 3
_FORGOTTEN_MS = 21_600_000
_NODE_COMES_WITHIN_MS = 1_200_000
_CLOCKS_DIFFER_BY_MS = 30_000  # ours, and that of the API server, by which pods and nodes tell when they were made


def rests_until(each: InVain) -> Instant:
    """When nodes of its pool may be drained again."""
    return later(each.at, _FIRST_MS * 2 ** min(each.times - 1, _DOUBLINGS))


def load_of(context: DrainContext, pool: str, at_once: int = 0) -> Load:
    """As the pool is used now; nodes that are being deleted are left out."""
    totals, counting, provisioner = (
        context.fleet.pool(pool),
        context.fleet.occupancy.counting,
        context.provisioner_of.get(pool),
    )
    pods = sum(counting.get(each.name, 0) for each in totals.nodes)
    spare = provisioner.spec.spare_nodes if provisioner is not None else 0
    return Load(totals.busy, pods, totals.gpus_used, spare, at_once)


def rests(context: DrainContext, each: InVain) -> bool:
    """Whether its nodes are not drained yet: not where fewer nodes have the same pods, so that something was gained."""
    return context.now < rests_until(each) and not _gained(context, each)


def no_better(context: DrainContext, each: InVain) -> Load | None:
    """How its pool is used, if that is as it was when the drains began that were in vain."""
    before = each.load
    if before is None or each.pool not in context.policy_of:
        return None
    now = load_of(context, each.pool)
    is_as_wide = before.busy_nodes <= now.busy_nodes <= before.busy_nodes + before.spare_nodes
    return now if _are_same_pods(before, now) and is_as_wide else None


def is_too_few(each: InVain, at_once: int) -> bool:
    """Whether so many nodes that are emptied together free none: as many kept ones take their pods, or as many were
    emptied before, and it was in vain."""
    return each.load is not None and at_once <= max(each.load.spare_nodes, each.load.at_once)


def _gained(context: DrainContext, each: InVain) -> bool:
    before = each.load
    if before is None or any(drain_node.pool == each.pool for drain_node in context.draining.values()):
        return False
    now = load_of(context, each.pool)
    return _are_same_pods(before, now) and now.busy_nodes < before.busy_nodes


def _are_same_pods(before: Load, now: Load) -> bool:
    return (now.pods, now.gpus, now.spare_nodes) == (before.pods, before.gpus, before.spare_nodes)


def begun(
    context: DrainContext, in_vain: Collection[InVain], under_way: Collection[str], begins: Mapping[str, Load]
) -> tuple[Begun, ...]:
    """What is remembered of drains that have begun, for as long as it is not known what became of them; `under_way`:
    pools whose nodes are drained, or whose pods were moved; `begins`: pools of which nodes begin to be emptied now."""
    pools = {each.pool for each in in_vain if each.at == context.now}  # which has the load from now on
    known = {each.pool: each.load for each in context.memory.begun if each.pool in under_way and each.pool not in pools}
    return tuple(Begun(pool, load) for pool, load in sorted({**begins, **known}.items()))


def moved(context: DrainContext) -> tuple[Moved, ...]:
    """Whose pods were moved off nodes of which pool, for as long as a node may come for them."""
    moved_pods = {
        (each.pool, each.owner): each
        for each in context.memory.moved
        if context.now - each.at <= _lasts_ms(context, each)
    }
    for each in gone(context.inputs.observed.pods, [each for each in context.memory.evicted if each.owner]):
        key = each.pool, each.owner
        before = moved_pods.get(key, Moved(*key, each.first, each.at))
        moved_pods[key] = Moved(*key, min(before.since, each.first), max(before.at, each.at), before.wanted)
    wanted = (
        wanted_by(context.inputs.observed.workloads, {each.owner for each in moved_pods.values()}) if moved_pods else {}
    )
    return tuple(sorted(_with_wanted(each, wanted.get(each.owner)) for each in moved_pods.values()))


def in_vain(context: DrainContext) -> tuple[InVain, ...]:
    """By pool; with what is seen only now."""
    known = {each.pool: each for each in context.memory.in_vain if _counts_still(context, each)}
    loads = {each.pool: each.load for each in context.memory.begun}
    for pool, came in (*_came(context), *_took_warm_nodes(context)):
        before = known.get(pool)
        if before is None or came >= rests_until(before) or pool in loads:
            times = before.times if before is not None and not _gained(context, before) else 0
            known[pool] = InVain(pool, context.now, times + 1, loads.pop(pool, None))
    return tuple(known[pool] for pool in sorted(known))


def _counts_still(context: DrainContext, each: InVain) -> bool:
    return context.now < rests_until(each) + _FORGOTTEN_MS or no_better(context, each) is not None


def _lasts_ms(context: DrainContext, each: Moved) -> int:
    """A StatefulSet makes the next pod only once the one before it has ended."""
    policy = context.policy_of.get(each.pool)
    return _NODE_COMES_WITHIN_MS + (1_000 * policy.spec.max_graceful_termination_seconds if policy is not None else 0)


def _with_wanted(each: Moved, now: int | None) -> Moved:
    wanted = now if each.wanted is None or now is None else min(each.wanted, now)
    return Moved(each.pool, each.owner, each.since, each.at, wanted)


def _came(context: DrainContext) -> Iterator[tuple[str, Instant]]:
    """The pools that pods have left for which a node came, and when it did."""
    left = _left(context)
    earliest = min((_made_since(each) for those in left.values() for each in those), default=context.now)
    first = timestamp(Instant(earliest // 1_000 * 1_000))  # all are in one format
    snapshot = context.fleet.snapshot
    for node in context.inputs.observed.nodes if left else ():
        if node.metadata.creation_timestamp < first:
            continue
        came = _made(node.metadata)
        for pod in snapshot.pods_of_row(snapshot.rows.row_of[node.name]):
            made = _made(pod.metadata)
            for each in left.get(owner_of(pod), ()):
                lasted_ms = _lasts_ms(context, each)
                if _made_since(each) <= made <= came and context.now - came <= lasted_ms:
                    yield each.pool, came


def _took_warm_nodes(context: DrainContext) -> Iterator[tuple[str, Instant]]:
    """The pools that pods have left which now run where nodes are to be bought and kept warm."""
    lacking = sorted({each.pool for each in context.draft.missing if each.why == "warmNodes" and each.nodes})
    left = _left(context) if lacking else {}
    for pool in lacking if left else ():
        for node in context.fleet.nodes_of(pool):
            for pod in context.fleet.snapshot.pods_of_row(context.fleet.snapshot.rows.row_of[node.name]):
                made = _made(pod.metadata)
                for each in left.get(owner_of(pod), ()):
                    if _made_since(each) <= made:
                        yield each.pool, context.now


def _left(context: DrainContext) -> dict[str, list[Moved]]:
    """By owner: the pools that its pods have left; not of those that were to have more pods since."""
    moved_pods = defaultdict(list)
    all_moved = moved(context)
    wanted = wanted_by(context.inputs.observed.workloads, {each.owner for each in all_moved}) if all_moved else {}
    for each in all_moved:
        if each.wanted is None or wanted.get(each.owner, 0) <= each.wanted:
            moved_pods[each.owner].append(each)
    return moved_pods


def _made_since(each: Moved) -> int:
    return each.since - _CLOCKS_DIFFER_BY_MS


def _made(metadata: Metadata) -> Instant:
    return moment(metadata.creation_timestamp) or Instant(0)


# --- How long a node is left alone that could not be drained: 5 min, and twice as long each further time in a row.
#
# What did not come again for an hour after that is forgotten.

FIRST_MS = 300_000
_SETBACKS_FORGOTTEN_MS = 3_600_000


def setback_until(setback: Setback) -> Instant:
    """When it may be tried again."""
    return later(setback.at, FIRST_MS * 2 ** min(setback.times - 1, _DOUBLINGS))


def unforgotten(setbacks: Iterable[Setback], fleet: Fleet, now: Instant) -> tuple[Setback, ...]:
    """Those of nodes that are there, and that were not long ago."""
    found = []
    for each in setbacks:
        node = fleet.node(each.node)
        if node is not None and node.metadata.uid == each.uid and now < setback_until(each) + _SETBACKS_FORGOTTEN_MS:
            found.append(each)
    return tuple(found)


def with_more(known: Iterable[Setback], new: Iterable[Setback]) -> tuple[Setback, ...]:
    """In order; each that is new is counted with those before it in a row."""
    setbacks = {(each.node, each.uid): each for each in known}
    for each in new:
        before = setbacks.get((each.node, each.uid))
        times = before.times if before is not None else 0
        setbacks[each.node, each.uid] = Setback(each.node, each.uid, each.at, each.code, times + 1)
    return tuple(sorted(setbacks.values()))
