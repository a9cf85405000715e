"""What our fleet says of a pod: by masks, node by node and in sentences, which must be the same; and by predicate."""

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.questions import fits, unmodelled
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.pod import Pod
from reconciler.plan.capacity.words import obstacle_words


@dataclass(frozen=True)
class Ours:
    """Where a pod fits, and what each predicate alone says."""

    passed: frozenset[str]
    why_not: Mapping[str, tuple[str, ...]]  # by node
    by_predicate: Mapping[str, frozenset[str]]  # the nodes that it has nothing against
    unmodelled: str
    contradictions: tuple[str, ...]  # where two ways of asking got different answers

    @property
    def deciding(self) -> frozenset[str]:
        """The predicates without which the pod would fit on more nodes."""
        found = set()
        for name in self.by_predicate:
            others = [passed for other, passed in self.by_predicate.items() if other != name]
            without = frozenset.intersection(frozenset(self.why_not), *others)
            if without != self.passed:
                found.add(name)
        return frozenset(found)


def passed(fleet: Snapshot, pod: Pod) -> frozenset[str]:
    """The nodes on which it fits, by masks."""
    mask = fleet.part(FilterChain).mask(fleet.classes.of(pod).anew)
    return frozenset(name for name, row in _rows(fleet).items() if mask[row])


def say(fleet: Snapshot, pod: Pod) -> Ours:
    judging = fleet.part(FilterChain)
    pod_class = fleet.classes.of(pod).anew
    rows = _rows(fleet)
    masked = passed(fleet, pod)
    one_by_one = frozenset(name for name, row in rows.items() if judging.fits(pod_class, row))
    why_not = {name: tuple(map(obstacle_words, fits(fleet, pod, name))) for name in rows}
    told = frozenset(name for name, reasons in why_not.items() if not reasons)
    contradictions = []
    beyond = unmodelled(pod_class, fleet)
    if masked != one_by_one:
        contradictions.append(f"the mask has {sorted(masked)}, one by one it is {sorted(one_by_one)}")
    if masked != told:
        contradictions.append(f"the mask has {sorted(masked)}, no reason against it is known of {sorted(told)}")
    by_predicate = {
        each.name: frozenset(name for name, row in rows.items() if each.fits(pod_class, row, fleet))
        for each in judging.predicates
    }
    beyond_words = obstacle_words(beyond) if beyond is not None else ""
    return Ours(masked, why_not, by_predicate, beyond_words, tuple(contradictions))


def _rows(fleet: Snapshot) -> dict[str, int]:
    return {name: row for name, row in sorted(fleet.rows.row_of.items()) if fleet.rows.alive[row]}
