"""Who is on the way to a place that was found for it: the successors of pods that were evicted lately.

Whoever evicts a pod has found a place for it, and remembers where. A pod of the same owner that was made since is taken
for its successor. It may be told that there is no room while the one before it is on its way out, since both may not
stand in one zone, say: for a minute from the eviction that is no sign that capacity is missing.
"""

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant, instant
from reconciler.model.planned.drained import Evicted
from reconciler.model.planned.inputs import Inputs

HOLDS_MS = 60_000


class Promise(msgspec.Struct, frozen=True, gc=False):
    """A pod that waits, whom it comes after, and where it is to go."""

    pod: Pod
    before: Pod  # without its status
    left: str  # the node that it leaves
    home: str
    until: Instant


def promises(inputs: Inputs, waiting: Iterable[Pod]) -> list[Promise]:
    """Each eviction has one successor, the first by name."""
    lately = [each for each in inputs.memory.drained.evicted if _holds(each, inputs.now)]
    by_owner: defaultdict[str, list[tuple[Evicted, Pod]]] = defaultdict(list)
    for each in lately:
        before = msgspec.json.decode(each.pod, type=Pod)
        if owner := before.metadata.controller:
            by_owner[owner.uid].append((each, before))
    found = []
    for pod in sorted(waiting, key=lambda each: (each.metadata.namespace, each.name)) if by_owner else ():
        owner = pod.metadata.controller
        open_ones = by_owner.get(owner.uid) if owner is not None else None
        at = next((at for at, (each, _) in enumerate(open_ones or ()) if _came_after(pod, each)), None)
        if open_ones and at is not None:
            each, before = open_ones.pop(at)
            found.append(Promise(pod, before, each.node, each.home, Instant(each.at + HOLDS_MS)))
    return found


def _holds(evicted: Evicted, now: Instant) -> bool:
    return bool(evicted.home and evicted.pod) and evicted.at <= now < evicted.at + HOLDS_MS


def _came_after(pod: Pod, evicted: Evicted) -> bool:
    """To the second, as creation is told."""
    try:
        return instant(pod.metadata.creation_timestamp) >= evicted.first // 1_000 * 1_000
    except ValueError:
        return False
