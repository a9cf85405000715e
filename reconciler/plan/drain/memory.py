"""Memory of drains after a plan is judged: only actions that are really carried out, as long as the records
are needed.
"""

from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.pod import Pod, PodStatus
from reconciler.model.plan.decision import Decision, Evict, Hold
from reconciler.model.plan.drain_memory import Batch, Begun, DrainMemory, Evicted, Setback
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.drain.backoff import with_more
from reconciler.plan.drain.codes.emptying import BEGINS, GivenBack
from reconciler.plan.drain.marks import came_late, draining_mark
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.recent_evictions import owner_of

_RENEWED_MS = 10_000  # otherwise every plan with a repeated eviction would write the memory


def remembered(inputs: Inputs, fleet: Fleet, decisions: Iterable[Decision], drained: DrainMemory) -> DrainMemory:
    """`drained`: the memory as the planner left it."""
    own = [each for each in decisions if each.planner == PLANNER and not each.would]
    own = [each for each in own if not isinstance(each.act, Hold)]
    begins = [each for each in own if type(each.reason.facts) in BEGINS]
    begun = tuple(sorted((each.subject.name, each.subject.uid) for each in begins))
    given_back = [
        Setback(each.subject.name, each.subject.uid, inputs.now, each.reason.code)
        for each in own
        if isinstance(each.reason.facts, GivenBack)
    ]
    before = {each.uid: each for each in drained.evicted}
    evicted = before | {each.uid: each for each in _evicted(inputs, fleet, own, before)}
    return msgspec.structs.replace(
        drained,
        batch=Batch(inputs.now, begun) if begun else drained.batch,
        evicted=tuple(sorted(evicted.values())),
        setbacks=with_more(drained.setbacks, given_back),
        begun=_really_begun(inputs, fleet, begins, drained.begun),
    )


def _really_begun(
    inputs: Inputs, fleet: Fleet, begins: Iterable[Decision], begun: Iterable[Begun]
) -> tuple[Begun, ...]:
    """Loads of pools whose drains really begin, without report-only drains."""
    nodes = (fleet.node(each.subject.name) for each in begins)
    pools = {each.pool for each in inputs.memory.drained.begun} | {each.pool for each in nodes if each is not None}
    return tuple(each for each in begun if each.pool in pools)


def _evicted(
    inputs: Inputs, fleet: Fleet, decisions: Iterable[Decision], before: Mapping[str, Evicted]
) -> Iterator[Evicted]:
    """Evicted pods that need another node. The time of a repeated eviction is renewed every few seconds."""
    requested: dict[str, tuple[str, str]] = {}  # by uid: destination and gang
    for each in decisions:
        if isinstance(each.act, Evict):
            requested[each.subject.uid] = each.act.destination, each.act.gang
            requested |= {other.ref.uid: (other.destination, each.act.gang) for other in each.act.others}
    if not requested:
        return
    for pod in inputs.observed.pods:
        uid = pod.metadata.uid
        node = fleet.node(pod.node) if uid in requested else None
        known = before.get(uid)
        if node is not None and pod.counts and (known is None or inputs.now - known.at >= _RENEWED_MS):
            first = inputs.now if known is None else known.first
            key = pod.title, uid, node.name, node.pool, first, written(pod), owner_of(pod)
            yield Evicted(inputs.now, *key, *requested[uid], came_late(pod, draining_mark(node)))


def written(pod: Pod) -> str:
    """The pod as stored, with everything that its successor will request."""
    status = PodStatus(resource_claim_statuses=pod.status.resource_claim_statuses)
    return msgspec.json.encode(msgspec.structs.replace(pod, status=status), order="sorted").decode()
