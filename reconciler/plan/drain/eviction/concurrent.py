"""Which pods may be on their way at once: those that can't be in each other's way, wherever the scheduler puts them.

Theory of operation. Places were found for all that leave, but nobody makes the scheduler choose them: a small pod may
take the only gap that was large enough for another. That one would wait for a machine to be bought, for whose sake
others are drained again, without end. Pods that ask for the same can't do that to each other: wherever one goes, as
many places are left for the others. Pods that differ set out together only where each has as many nodes to go to as
pods are on their way, since each of these can spoil one. Who has to wait does so until those before are in theirs. A
gang, which can't wait for itself, sets out as a whole once it may, or once nobody is on the way; until then nobody else
sets out.
"""

from collections.abc import Iterable, Sequence
from functools import cached_property

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.pod_class import Needs, PodClass, Rank, Request
from reconciler.fleet.rows import Mask
from reconciler.model.cluster.pod import Pod
from reconciler.plan.drain.context import DrainContext

_Kind = tuple[Needs, Request] | PodClass


class SettingOut:
    """Owner of who is on its way, while one plan asks pods to leave."""

    def __init__(self, context: DrainContext, on_their_way: Iterable[Pod]) -> None:
        self._snapshot, self._unsettled = context.fleet.snapshot, context.fleet.nodes_unsettled
        self._kinds: dict[_Kind, PodClass] = {}  # with one class of each
        self._nodes: dict[PodClass, int] = {}
        self._is_shut = False
        self.count = 0
        for pod in on_their_way:
            self.take(pod)

    def rank(self, pod: Pod) -> Rank:
        """Who is hardest to place sets out first."""
        return self._class(pod).rank

    def may(self, pod: Pod) -> bool:
        """Whether it can set out now."""
        return not self._is_shut and self._have_room([pod])

    def may_together(self, pods: Sequence[Pod]) -> bool:
        """The same of a gang; where it can't, all others wait for it."""
        may = not self._is_shut and (not self.count or self._have_room(pods))
        self._is_shut |= not may
        return may

    def _have_room(self, pods: Sequence[Pod]) -> bool:
        kinds = self._kinds | {_kind(each): each for each in map(self._class, pods)}
        others = self.count + len(pods) - 1
        return len(kinds) == 1 or all(self._nodes_for(each) > others for each in kinds.values())

    def take(self, pod: Pod) -> None:
        """It sets out."""
        self._kinds.setdefault(_kind(self._class(pod)), self._class(pod))
        self.count += 1

    def _class(self, pod: Pod) -> PodClass:
        return self._snapshot.classes.of(pod).anew

    def _nodes_for(self, pod_class: PodClass) -> int:
        result = self._nodes.get(pod_class)
        if result is None:
            mask = self._snapshot.part(FilterChain).mask(pod_class) & self._stays
            result = self._nodes[pod_class] = int(mask.sum())
        return result

    @cached_property
    def _stays(self) -> Mask:
        rows = self._snapshot.rows
        mask = rows.alive.copy()
        for facts in self._unsettled:
            mask[rows.row_of[facts.name]] = False
        return mask


def _kind(pod_class: PodClass) -> _Kind:
    """What says something of other pods is a kind of its own."""
    return (pod_class.needs, pod_class.request) if pod_class.is_plain else pod_class
