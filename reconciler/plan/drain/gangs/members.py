"""Owner of who is of which gang in one plan, which gangs are on their way, and what is left of those that are broken.

A gang is on its way once a node that holds one of its pods is emptied. It is broken if some that were asked to leave
together have left, and others are there still: a write failed, or the process was killed between two. What is left of
it is of no use to anybody, and goes as soon as it can. Who was asked is remembered; pods that were made since were not.
"""

from collections import defaultdict
from collections.abc import Mapping

from reconciler.model.cluster.pod import Pod
from reconciler.model.instant import Instant
from reconciler.plan.capacity.gangs import Gang, title_of
from reconciler.plan.drain.blockers import stays
from reconciler.plan.drain.context import DrainContext


class Members:
    """Those that run somewhere and are not leaving, by namespace and name."""

    def __init__(self, context: DrainContext) -> None:
        self.of: dict[Gang, tuple[Pod, ...]] = {}
        self.on: dict[str, tuple[Gang, ...]] = {}  # by the name of a node
        self.rest: Mapping[Gang, tuple[Pod, ...]] = {}  # of gangs that are broken
        self.on_their_way: frozenset[Gang] = frozenset()
        if context.draft.gangs.are_any:
            self._read(context)

    def _read(self, context: DrainContext) -> None:
        pods: defaultdict[Gang, list[Pod]] = defaultdict(list)
        on: defaultdict[str, set[Gang]] = defaultdict(set)
        for pod in context.inputs.observed.pods:
            gang = context.draft.gangs.of(pod) if pod.node and stays(pod) else None
            if gang is not None:
                pods[gang].append(pod)
                on[pod.node].add(gang)
        self.of = {gang: tuple(sorted(pods[gang], key=lambda pod: pod.title)) for gang in sorted(pods)}
        self.on = {node: tuple(sorted(gangs)) for node, gangs in on.items()}
        self.rest = self._left_behind(context)
        emptied = {gang for name in context.draining for gang in self.on.get(name, ())}
        self.on_their_way = frozenset(emptied | self.rest.keys())

    def first_on(self, node: str) -> tuple[Gang, Pod]:
        """Of a node that holds one."""
        return next((gang, pod) for gang in self.on[node] for pod in self.of[gang] if pod.node == node)

    def _left_behind(self, context: DrainContext) -> dict[Gang, tuple[Pod, ...]]:
        """A gang may be moved more than once within the time for which that is remembered. Who came to its own end did
        not leave: that it was asked tells nothing of whether anybody let it go."""
        rounds: defaultdict[tuple[str, Instant], set[str]] = defaultdict(set)
        asked_ones = {each.uid for each in context.memory.evicted if each.gang}
        pods = context.inputs.observed.pods if asked_ones else ()
        ended = {pod.metadata.uid for pod in pods if pod.is_finished and not pod.metadata.leaving} & asked_ones
        for each in context.memory.evicted:
            if each.uid not in ended:
                rounds[each.gang, each.first].add(each.uid)
        result = {}
        for gang, pods in self.of.items():
            there = {pod.metadata.uid for pod in pods}
            requested = [uids for (title, _), uids in rounds.items() if title == title_of(gang)]
            rest = {uid for uids in requested if not uids <= there for uid in uids & there}
            if rest:
                result[gang] = tuple(pod for pod in pods if pod.metadata.uid in rest)
        return result
