"""Owner of which place each pod goes to, of those pods that a term ties to places; all others may go to any.

One pod after another is given to a place that every term allows, the cheapest first, then the one where it evens things
out. In that order the scheduler can bind them later: each passes when its turn comes. What can't go anywhere yet is
tried again after the others, until nothing more moves.
"""

from reconciler.fleet.binpack.domains.hosting_cost import NOWHERE
from reconciler.fleet.binpack.domains.neighbours import Neighbours
from reconciler.fleet.binpack.domains.pod_terms import PendingPodTerms, Relation, RequiredAffinity
from reconciler.fleet.binpack.pending_pods import PendingPods
from reconciler.fleet.binpack.steps import Steps
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.obstacle import Obstacle


class Sharing:
    """Pods by class and place."""

    def __init__(
        self, waiting: list[PendingPods], company: PendingPodTerms, neighbours: Neighbours, steps: Steps
    ) -> None:
        self._waiting = waiting
        self._company = company
        self._neighbours = neighbours
        self._steps = steps
        self._load: dict[int, int] = {}
        self.order: list[tuple[int, int]] = []  # class, place; one for each pod that is tied, as they are to be bound
        self.refused: dict[int, tuple[int, Obstacle]] = {}  # class -> how many of its pods go nowhere, and why
        self.tied = [neighbours.concern(company.of[each.number]) for each in waiting]

    def share_out(self, costs: dict[int, list[int]]) -> None:
        """Gives each pod that is tied its place; `costs` by class, of those that could be anywhere, and place."""
        choices = {at: [place for place, cost in enumerate(found) if cost != NOWHERE] for at, found in costs.items()}
        left = {at: len(self._waiting[at].pods) for at in costs}
        levels = self._levels(list(costs))
        pending = sorted(left, key=lambda at: (levels[at], len(choices[at]), at))
        moved = True
        while pending and moved and not self._steps.are_spent:
            moved = False
            for at in pending:
                placed = self._place(at, left[at], [(costs[at][place], place) for place in choices[at]])
                left[at] -= placed
                moved |= placed > 0
            pending = [at for at in pending if left[at]]
        for at in pending:
            self.refused[at] = left[at], self._neighbours.why(at)

    @property
    def asks_hosts(self) -> bool:
        """Whether anybody must share a host with others."""
        return any(_on_host(self._company.of[each.number]) is not None for each in self._waiting)

    def kept(self, nodes: list[int | None]) -> list[bool]:
        """Which pods of the order still pass, one after the other, given the node of each; None has found none."""
        self._neighbours.reset()
        on_host: set[tuple[int | None, int]] = set()
        result = []
        for (at, place), node in zip(self.order, nodes, strict=True):
            near = _on_host(self._company.of[at])
            passes = node is not None and self._neighbours.allow(at, place)
            if passes and near is not None and (node, near.meant) not in on_host:
                passes = near.is_first and not self._neighbours.total(near.meant)
            if passes:
                self._neighbours.add(at, place)
                on_host |= {(node, meant) for meant in self._company.of[at].means}
            result.append(passes)
        return result

    def _levels(self, numbers: list[int]) -> dict[int, int]:
        """Whoever must be near others comes after them, as far as they do not wait for each other."""
        holders: dict[int, list[int]] = {}
        for at in numbers:
            near = self._company.of[at].near
            if near is not None:
                holders.setdefault(near.meant, []).append(at)
        levels = dict.fromkeys(numbers, 0)
        for _ in range(len(holders)):
            highest = dict.fromkeys(holders, -1)
            for at in numbers:
                relation = self._company.of[at]
                for meant in relation.means & holders.keys():
                    if relation.near is None or relation.near.meant != meant:
                        highest[meant] = max(highest[meant], levels[at])
            raised = {at: highest[meant] + 1 for meant, those in holders.items() for at in those}
            if all(levels[at] == level for at, level in raised.items()):
                break
            levels |= raised
        return levels

    def handed_out(self) -> dict[tuple[int, int], list[Pod]]:
        """The pods themselves, by class and place, each time in the order in which they are to be bound."""
        pods: dict[tuple[int, int], list[Pod]] = {}
        done: dict[int, int] = {}
        for at, place in self.order:
            number = done.get(at, 0)
            done[at] = number + 1
            pods.setdefault((at, place), []).append(self._waiting[at].pods[number])
        return pods

    def _place(self, at: int, count: int, choices: list[tuple[int, int]]) -> int:
        """Places as many as may go; how many."""
        neighbours = self._neighbours
        together = neighbours.may_go_together(at)
        placed = 0
        while placed < count and not self._steps.are_spent:
            self._steps.take(len(choices))
            best = min(
                (
                    (cost, neighbours.evens_out(at, place), self._load.get(place, 0), place)
                    for cost, place in choices
                    if neighbours.allow(at, place)
                ),
                default=None,
            )
            if best is None:
                break
            cost, _, load, place = best
            many = count - placed if together else 1
            neighbours.add(at, place, many)
            self._load[place] = load + cost * many
            self.order += [(at, place)] * many
            placed += many
        return placed


def _on_host(relation: Relation) -> RequiredAffinity | None:
    """Whom such a pod must find on its host."""
    return relation.near if relation.near is not None and names.HOSTNAME in relation.near.keys else None
