"""Cache of the pods that must leave a node when the node drains, valid while the node has the same pods.

Most pods are plain: nothing in the pod itself keeps the pod. Pods of one profile are checked once. For a node with
only plain and healthy pods, budgets are checked by pod labels, and placement by pod class. The result is the same as
that of `blocker` for each pod, at a fraction of the cost.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import chain, repeat, starmap

import msgspec

from reconciler.fleet.occupancy import NodePods
from reconciler.fleet.pod_classes import LabelClass, PodClass
from reconciler.fleet.questions import Move
from reconciler.fleet.snapshot.row_indexes import PerRow
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.metadata import OwnerReference
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Reason
from reconciler.plan.drain.blockers import blocker, is_plain, moves
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.nodes.eviction import Remaining, Weights, weighs_nothing


class Moving(msgspec.Struct, frozen=True, eq=False):
    """Pods of one node that must move: all but terminating pods, which need no other node, and pods that stay."""

    there: NodePods
    is_empty: bool  # no pod must move
    is_plain: bool  # all pods are plain
    healthy: Weights | None  # healthy pods by labels, for budgets; None if a pod is unhealthy: each pod is checked
    unsure: tuple[PodClass, ...]  # classes whose placement may be unknown
    controllers: tuple[tuple[str, OwnerReference], ...]  # with the namespace of their pods, without safe-to-evict pods
    owner_uids: frozenset[str]  # of the controllers

    @property
    def pods(self) -> tuple[Pod, ...]:
        """By namespace and name."""
        return tuple([pod for pod in self.there.pods if moves(pod)])


class Movings(PerRow[Moving]):
    """Cache of `Moving` by row."""

    def find(self, row: int) -> Moving:
        there = self.fleet.observed_on[row]
        moving = {profile: count for profile, count in there.counts.items() if profile.pod_class.needs_another_place}
        weighed = [each for each in moving if not weighs_nothing(each.pod)]
        kins = Counter[LabelClass]()
        for profile in weighed:
            kins[profile.pod_class.label_class] += moving[profile]
        classes = dict.fromkeys([profile.pod_class for profile in moving])
        owned = (each.pod.metadata for each in moving if each.pod.metadata.annotations.safe_to_evict != "true")
        controllers = [(each.namespace, owner) for each in owned if (owner := each.controller) is not None]
        return Moving(
            there,
            is_empty=not moving,
            is_plain=all(is_plain(each.pod) for each in moving),
            healthy=tuple(kins.items()) if all(each.is_ready for each in weighed) else None,
            unsure=tuple([each for each in classes if not each.is_plain or each.unmodelled]),
            controllers=tuple({(at, of.kind, of.uid, of.name): (at, of) for at, of in controllers}.values()),
            owner_uids=frozenset([owner.uid for _, owner in controllers]),
        )


def first_blocker(context: DrainContext, remaining: Remaining, drain_node: DrainNode, moving: Moving) -> Reason | None:
    """The first blocker of the node's pods; None if all pods may be evicted now."""
    controllers = context.controllers
    is_clear = moving.is_plain and moving.healthy is not None and remaining.allow(moving.healthy)
    is_clear = is_clear and not (moving.unsure and any(map(context.why_such_stay, moving.unsure)))
    if is_clear and (
        moving.owner_uids <= controllers.uids or not any(starmap(controllers.is_gone, moving.controllers))
    ):
        return None
    return next((reason for pod in moving.pods if (reason := blocker(context, remaining, drain_node, pod))), None)


def take(remaining: Remaining, moving: Moving) -> None:
    """Take the budgets of all pods of the node."""
    if moving.healthy is not None:
        remaining.take_all(moving.healthy)
    else:
        for pod in moving.pods:
            remaining.take(pod)


# --- Hints: previous and new destinations of pods, by node and pod class.

Places = dict[str, dict[str, int]]  # class key -> node name -> number of pods that go there
_NOWHERE: Places = {}


class Hinting:
    """Previous hints, and the hints that one plan collects. Mutable."""

    def __init__(self, snapshot: Snapshot, before: Mapping[str, Places]) -> None:
        self._snapshot, self._before = snapshot, before
        self.found: dict[str, Places] = {}  # by the node that the pods leave; empty for pods without a node

    def before(self, source: str) -> Places:
        """Previous destinations of pods of a node."""
        return self._before.get(source, _NOWHERE)

    def of(self, pods: Sequence[Pod], source: str) -> dict[str, str]:
        """By uid, the previous destination of an equal pod."""
        class_of, entries = self._snapshot.classes.of, self.before(source)
        places = {
            key: chain.from_iterable(repeat(name, many) for name, many in to.items()) for key, to in entries.items()
        }
        found = ((pod.metadata.uid, next(places.get(class_of(pod).anew.key, iter(())), "")) for pod in pods if places)
        return {uid: name for uid, name in found if name}

    def of_nodes(self, pods: Iterable[Pod]) -> dict[str, str]:
        """Previous destinations by uid, each by the node that the pod runs on."""
        by_node: dict[str, list[Pod]] = {}
        for pod in pods:
            by_node.setdefault(pod.node, []).append(pod)
        return {uid: to for node, there in by_node.items() for uid, to in self.of(there, node).items()}

    def note(self, source: str, pod: Pod, to: str) -> None:
        """Record the destination of a pod."""
        known = self.found.setdefault(source, {}).setdefault(self._snapshot.classes.of(pod).anew.key, {})
        known[to] = known.get(to, 0) + 1

    def keep(self, sources: Iterable[str]) -> None:
        """Keep the previous hints of nodes that were not tried in this plan."""
        self.found |= {each: self._before[each] for each in sources if each in self._before}

    def moved(self, source: str, moves: Iterable[Move]) -> tuple[Set[int], tuple[str, ...]]:
        """Record all moves of a node, and return the rows and the names of the destinations."""
        found: Places = {}
        names: dict[int, str] = {}
        for each in moves:
            if each.to not in names:
                names[each.to] = self._snapshot.rows.node(each.to).name
            known, to = found.setdefault(each.pod_class.key, {}), names[each.to]
            known[to] = known.get(to, 0) + each.count
        self.found[source] = found
        return names.keys(), tuple(sorted(names.values()))
