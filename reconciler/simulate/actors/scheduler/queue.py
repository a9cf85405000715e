"""Owner of the pods that wait for a node: in groups of those that fit the same nodes, each by priority, then by age.

A group whose first pod fits nowhere is parked: its other pods fit nowhere either, until some node has more to give. A
pod for which others make room is a group of its own: it alone fits there.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heappush

import msgspec

from reconciler.fleet.pod_class import PodClass
from reconciler.simulate.objects import Key

Rank = tuple[int, str, int]  # most important first, then oldest, then as they came


class QueuedPod(msgspec.Struct, frozen=True):
    """One pod."""

    key: Key
    uid: str
    pod_class: PodClass
    rank: Rank
    displaces: bool = True  # whether others have to make room for it
    is_nominated: bool = False

    @property
    def group(self) -> object:
        return nominated_group(self.uid) if self.is_nominated else (group_of(self.pod_class), self.displaces)


class SchedulingGroup:
    """Pods that fit the same nodes."""

    def __init__(self) -> None:
        self.unreported: list[QueuedPod] = []  # those that do not say yet that they fit nowhere
        self._heap: list[tuple[Rank, QueuedPod]] = []

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def rank(self) -> Rank:
        return self._heap[0][0]

    @property
    def first(self) -> QueuedPod:
        return self._heap[0][1]

    def push(self, pod: QueuedPod) -> None:
        heappush(self._heap, (pod.rank, pod))

    def pop(self) -> QueuedPod:
        return heappop(self._heap)[1]

    def __iter__(self) -> Iterator[QueuedPod]:
        return (pod for _, pod in self._heap)


class SchedulingQueue:
    """All groups."""

    def __init__(self) -> None:
        self.groups: dict[object, SchedulingGroup] = {}
        self._active: dict[object, None] = {}
        self._parked: set[object] = set()

    def __bool__(self) -> bool:
        return bool(self.groups)

    def push(self, pod: QueuedPod) -> None:
        """A pod that nobody has looked at."""
        self.put_back(pod)
        self.groups[pod.group].unreported.append(pod)
        self._active[pod.group] = None

    def put_back(self, pod: QueuedPod) -> None:
        """One that waits on; its group is looked at when something has changed."""
        self.groups.setdefault(pod.group, SchedulingGroup()).push(pod)

    def wake(self, group: object) -> None:
        """Something has changed for the pods of a group."""
        self._active[group] = None

    def round(self) -> Iterator[tuple[object, QueuedPod]]:
        """The pods of groups that are to be looked at, in their order; a group that is `parked` meanwhile is left."""
        awake = [each for each in self._active if each in self.groups]
        heads = [(self.groups[each].rank, number, each) for number, each in enumerate(awake)]
        self._parked.clear()
        self._active.clear()
        heapify(heads)
        while heads:
            _, number, group = heappop(heads)
            yield group, self.groups[group].pop()
            if not self.groups[group]:
                del self.groups[group]
            elif group not in self._parked:
                heappush(heads, (self.groups[group].rank, number, group))

    def unreported(self, group: object) -> list[QueuedPod]:
        """Those of a group that do not say yet that they fit nowhere; told once."""
        scheduling_group = self.groups[group]
        queued_pods, scheduling_group.unreported = scheduling_group.unreported, []
        return queued_pods

    def park(self, group: object) -> None:
        """No other pod of it is looked at in this round."""
        self._parked.add(group)


def group_of(pod_class: PodClass) -> object:
    """Pods of one group fit the same nodes, unless other pods are in their way."""
    if pod_class.is_plain:
        return pod_class.needs.number, pod_class.request, pod_class.unmodelled
    return pod_class.number


def nominated_group(uid: str) -> object:
    """Of one pod."""
    return "nominated", uid
