"""Owner of where pods went the last time and where they go this time, by node and class: pods of one are alike."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, repeat

from reconciler.fleet.scale_down_simulation import Move
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod

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
