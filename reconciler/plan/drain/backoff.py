"""Backoff of drains: for pools whose drains freed no node, and for nodes that could not be drained."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.instant import Instant, later, moment, timestamp
from reconciler.model.plan.drain_memory import Begun, InVain, Load, Moved, Setback
from reconciler.plan.drain.context import DrainContext
from reconciler.plan.recent_evictions import gone, owner_of, wanted_by

# --- Pools whose drains were in vain, because a new node was bought for the pods that were moved. Such a pool rests for
# half an hour, and twice as long after each repetition. After the rest, the pool is not drained as long as another
# drain would have the same result.
#
# A destination is found for each pod that is moved, but the scheduler may choose another node. If the pods fit to the
# last GPU, one pod may then find no node, and Karpenter buys one: the saved node is back, and would be drained again
# and again. A node of any pool counts as bought for a moved pod if the node is younger than a pod that runs on it, and
# the owner of that pod should not have more pods than before. The same holds if such a pod runs in a pool that keeps
# warm nodes and lacks some now: the scheduler prefers free nodes, whatever destination was found for the pod. Nodes
# that came during the rest belong to the same drains. A pool whose drains are not in vain again for six hours after a
# rest is forgotten.
#
# Another drain has the same result while the pool is used as it was when the drains that were in vain began: the same
# number of pods and GPUs, at least as many busy nodes, and the same number of spare nodes. The scheduler may put pods
# onto the spare nodes, so that after a drain up to that many more nodes may be busy than before. The number of busy
# nodes falls only if more nodes are drained at once than are spare, and more than the last time. If the same pods run
# on fewer nodes, the drains saved something although a node came, and the pool does not rest. So each attempt begins
# with fewer busy nodes than the one before, or drains more nodes at once, and under constant load the attempts end.

_FIRST_MS = 1_800_000
_DOUBLINGS = 3
_FORGOTTEN_MS = 21_600_000
_NODE_COMES_WITHIN_MS = 1_200_000
_CLOCKS_DIFFER_BY_MS = 30_000  # clock difference between this process and the API server, which writes creation times


def rests_until(each: InVain) -> Instant:
    """When nodes of the pool may be drained again."""
    return later(each.at, _FIRST_MS * 2 ** min(each.times - 1, _DOUBLINGS))


def load_of(context: DrainContext, pool: str, at_once: int = 0) -> Load:
    """Current load of the pool, without nodes that are being deleted."""
    totals, provisioner = context.fleet.pool(pool), context.provisioner_of.get(pool)
    spare = provisioner.spec.kept_free_nodes if provisioner is not None else 0
    return Load(totals.busy, totals.pods, totals.gpus_used, spare, at_once)


def rests(context: DrainContext, each: InVain) -> bool:
    """Whether the pool rests. A pool does not rest if the same pods run on fewer nodes, because then the drains saved
    something.
    """
    return context.now < rests_until(each) and not _gained(context, each)


def no_better(context: DrainContext, each: InVain) -> Load | None:
    """Current load of the pool if another drain would have the same result as the drains in vain; else None."""
    before = each.load
    if before is None or each.pool not in context.policy_of:
        return None
    now = load_of(context, each.pool)
    is_as_wide = before.busy_nodes <= now.busy_nodes <= before.busy_nodes + before.spare_nodes
    return now if _are_same_pods(before, now) and is_as_wide else None


def is_too_few(each: InVain, at_once: int) -> bool:
    """Whether draining `at_once` nodes together saves none: the spare nodes can take their pods, or as many nodes were
    drained before in vain.
    """
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
    """Load of each pool at the begin of its drains, remembered until the result of the drains is known. `under_way`:
    pools whose nodes are draining or whose pods were moved; `begins`: pools whose nodes begin to drain now.
    """
    pools = {each.pool for each in in_vain if each.at == context.now}  # these pools have the load in their InVain
    known = {each.pool: each.load for each in context.memory.begun if each.pool in under_way and each.pool not in pools}
    return tuple(Begun(pool, load) for pool, load in sorted({**begins, **known}.items()))


def moved(context: DrainContext) -> tuple[Moved, ...]:
    """Owners of pods that were moved off nodes of each pool, as long as a node may come for the pods."""
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
    """Drains in vain by pool, including drains that are known to be in vain only now."""
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
    """How long a node may come for a moved pod. A StatefulSet creates the next pod only after the one before
    has ended.
    """
    policy = context.policy_of.get(each.pool)
    return _NODE_COMES_WITHIN_MS + (1_000 * policy.spec.max_graceful_termination_seconds if policy is not None else 0)


def _with_wanted(each: Moved, now: int | None) -> Moved:
    wanted = now if each.wanted is None or now is None else min(each.wanted, now)
    return Moved(each.pool, each.owner, each.since, each.at, wanted)


def _came(context: DrainContext) -> Iterator[tuple[str, Instant]]:
    """Pools whose moved pods got a new node, and when that node was created."""
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
    """Pools whose moved pods now run in a pool that lacks warm nodes."""
    lacking = sorted({each.pool for each in context.draft.capacity.lacking("warmNodes")})
    left = _left(context) if lacking else {}
    for pool in lacking if left else ():
        for node in context.fleet.nodes_of(pool):
            for pod in context.fleet.snapshot.pods_of_row(context.fleet.snapshot.rows.row_of[node.name]):
                made = _made(pod.metadata)
                for each in left.get(owner_of(pod), ()):
                    if _made_since(each) <= made:
                        yield each.pool, context.now


def _left(context: DrainContext) -> dict[str, list[Moved]]:
    """Moved pods by owner, without owners that were scaled up since."""
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


# --- Backoff of a node that could not be drained: 5 min, and twice as long after each repetition. A setback is
# forgotten an hour after its backoff ended.

FIRST_MS = 300_000
_SETBACKS_FORGOTTEN_MS = 3_600_000


def setback_until(setback: Setback) -> Instant:
    """When the node may be drained again."""
    return later(setback.at, FIRST_MS * 2 ** min(setback.times - 1, _DOUBLINGS))


def unforgotten(setbacks: Iterable[Setback], fleet: Fleet, now: Instant) -> tuple[Setback, ...]:
    """Setbacks of existing nodes that are not forgotten."""
    found = []
    for each in setbacks:
        node = fleet.node(each.node)
        if node is not None and node.metadata.uid == each.uid and now < setback_until(each) + _SETBACKS_FORGOTTEN_MS:
            found.append(each)
    return tuple(found)


def with_more(known: Iterable[Setback], new: Iterable[Setback]) -> tuple[Setback, ...]:
    """Known and new setbacks, sorted. A new setback counts the earlier setbacks of the node."""
    setbacks = {(each.node, each.uid): each for each in known}
    for each in new:
        before = setbacks.get((each.node, each.uid))
        times = before.times if before is not None else 0
        setbacks[each.node, each.uid] = Setback(each.node, each.uid, each.at, each.code, times + 1)
    return tuple(sorted(setbacks.values()))
