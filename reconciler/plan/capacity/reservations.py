"""Who is on the way to a place that was found for it: the successors of pods that were evicted lately.

Whoever evicts a pod has found a place for it, and remembers where. A pod of the same owner that was made since is taken
for its successor. It may be told that there is no room while the one before it is on its way out, since both may not
stand in one zone, say: for a minute from the eviction that is no sign that capacity is missing.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, later, moment
from reconciler.model.plan.drain_memory import Evicted
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.recent_evictions import owner_of

HOLDS_MS = 60_000


class PodReservation(msgspec.Struct, frozen=True, gc=False):
    """A pod that waits, whom it comes after, and where it is to go."""

    pod: Pod
    before: str  # uid
    left: str  # the node that it leaves
    home: str
    until: Instant


def promises(inputs: Inputs, waiting: Iterable[Pod]) -> list[PodReservation]:
    """Each eviction has one successor, the first by name."""
    by_owner: defaultdict[str, list[Evicted]] = defaultdict(list)
    for each in inputs.memory.drained.evicted:
        if each.owner and each.home and each.at <= inputs.now < each.at + HOLDS_MS:
            by_owner[each.owner].append(each)
    pod_reservations = []
    for pod in sorted(waiting, key=lambda each: (each.metadata.namespace, each.name)) if by_owner else ():
        evicted = by_owner.get(owner_of(pod), [])
        before = next((each for each in evicted if _came_after(pod, each)), None)
        if before is not None:
            evicted.remove(before)
            pod_reservations.append(
                PodReservation(pod, before.uid, before.node, before.home, later(before.at, HOLDS_MS))
            )
    return pod_reservations


def _came_after(pod: Pod, evicted: Evicted) -> bool:
    """To the second, as creation is told."""
    made = moment(pod.metadata.creation_timestamp)
    return made is not None and made >= evicted.first // 1_000 * 1_000
