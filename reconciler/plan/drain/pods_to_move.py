"""Owner of what is known of the pods that would have to leave a node, for as long as the same pods are there.

Most pods are plain: nothing about themselves keeps them. Of a node that has only such pods, and healthy ones, budgets
are asked by the labels of pods, and whether one can tell where they fit by their classes. That answers for each of
them what `blocker` would, and costs a small part of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat

import msgspec

from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.questions import Move
from reconciler.fleet.snapshot.row_indexes import PerRow
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.metadata import OwnerReference
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Reason
from reconciler.plan.drain.blockers import blocker, is_plain
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.nodes.eviction import Remaining, Weights, is_healthy, weighs_nothing


class Moving(msgspec.Struct, frozen=True, eq=False):
    """Of one node."""

    pods: tuple[Pod, ...]  # by namespace and name; what is leaving has another place, or needs none
    is_plain: bool  # all of them are
    healthy: Weights | None  # what of them budgets weigh; None where some are not healthy, and are weighed one by one
    unsure: tuple[PodClass, ...]  # classes of which it may not be known where they fit
    controllers: tuple[tuple[str, OwnerReference], ...]  # with the namespace of their pods; safe pods left out


class Movings(PerRow[Moving]):
    """Owner of these."""

    def find(self, row: int) -> Moving:
        there = zip(self.fleet.pods_of_row(row), self.fleet.classes_of_row(row), strict=True)
        moving = [each for each in there if each[1].needs_another_place]
        pods = tuple([pod for pod, _ in moving])
        weighed = [each for each in moving if not weighs_nothing(each[0])]
        kins = Counter([pod_class.label_class for _, pod_class in weighed])
        classes = dict.fromkeys([pod_class for _, pod_class in moving])
        owned = (pod.metadata for pod in pods if pod.metadata.annotations.safe_to_evict != "true")
        controllers = ((each.namespace, owner) for each in owned if (owner := each.controller) is not None)
        return Moving(
            pods,
            is_plain=all(map(is_plain, pods)),
            healthy=tuple(kins.items()) if all(is_healthy(pod) for pod, _ in weighed) else None,
            unsure=tuple([each for each in classes if not each.is_plain or each.unmodelled]),
            controllers=tuple({(at, of.kind, of.uid, of.name): (at, of) for at, of in controllers}.values()),
        )


def first_blocker(context: DrainContext, remaining: Remaining, drain_node: DrainNode, moving: Moving) -> Reason | None:
    """What keeps the first of a node's pods that is kept; nothing when all may be asked to leave now."""
    is_clear = moving.is_plain and moving.healthy is not None and remaining.allow(moving.healthy)
    is_clear = is_clear and not any(context.controllers.is_gone(*each) for each in moving.controllers)
    if is_clear and not any(map(context.why_such_stay, moving.unsure)):
        return None
    return next((reason for pod in moving.pods if (reason := blocker(context, remaining, drain_node, pod))), None)


def take(remaining: Remaining, moving: Moving) -> None:
    """All of them go, and nothing keeps them."""
    if moving.healthy is not None:
        remaining.take_all(moving.healthy)
    else:
        for pod in moving.pods:
            remaining.take(pod)


# --- Owner of where pods went the last time and where they go this time, by node and class: pods of one are alike.

Places = dict[str, dict[str, int]]  # key of a class -> name of a node -> how many go there
_NOWHERE: Places = {}


class Hinting:
    """For one plan."""

    def __init__(self, snapshot: Snapshot, before: Mapping[str, Places]) -> None:
        self._snapshot, self._before = snapshot, before
        self.found: dict[str, Places] = {}  # by the node that they leave; nothing for those that were on none

    def before(self, source: str) -> Places:
        """Of those that left the node."""
        return self._before.get(source, _NOWHERE)

    def of(self, pods: Sequence[Pod], source: str) -> dict[str, str]:
        """By uid: where each would go if it went where one like it went the last time."""
        class_of, entries = self._snapshot.classes.of, self.before(source)
        places = {
            key: chain.from_iterable(repeat(name, many) for name, many in to.items()) for key, to in entries.items()
        }
        found = ((pod.metadata.uid, next(places.get(class_of(pod).anew.key, iter(())), "")) for pod in pods if places)
        return {uid: name for uid, name in found if name}

    def of_nodes(self, pods: Iterable[Pod]) -> dict[str, str]:
        """The same, each by the node on which it runs."""
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            by_node.setdefault(pod.node, []).append(pod)
        return {uid: to for node, there in by_node.items() for uid, to in self.of(there, node).items()}

    def note(self, source: str, pod: Pod, to: str) -> None:
        """One goes there."""
        known = self.found.setdefault(source, {}).setdefault(self._snapshot.classes.of(pod).anew.key, {})
        known[to] = known.get(to, 0) + 1

    def keep(self, sources: Iterable[str]) -> None:
        """What was found before stands, since nobody looked this time."""
        self.found |= {each: self._before[each] for each in sources if each in self._before}

    def moved(self, source: str, moves: Iterable[Move]) -> tuple[str, ...]:
        """All go; the names of the nodes that take them."""
        found: Places = {}
        places = set()
        for each in moves:
            to = self._snapshot.rows.node(each.to).name
            places.add(to)
            known = found.setdefault(each.pod_class.key, {})
            known[to] = known.get(to, 0) + each.count
        self.found[source] = found
        return tuple(sorted(places))
