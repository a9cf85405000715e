"""Owner of who is where among places: which place a pod may go to, given those that stand and that were shared out."""

from reconciler.fleet.binpack.domains.domains import Evenness, Places
from reconciler.fleet.binpack.domains.pod_terms import PendingPodTerms, Relation, RequiredAffinity
from reconciler.fleet.binpack.existing_nodes import ExistingNodes
from reconciler.fleet.binpack.pending_pods import PendingPods
from reconciler.fleet.obstacles import AffinityNowhereMet, NoPlaceByTerms, SpreadUnevenAnywhere
from reconciler.model.obstacle import Obstacle

_Domain = tuple[int, str, str]  # of whom, within which label, its value


class Neighbours:
    """Counts by domain. Pods that no term of a place concerns are not counted: they come last, and break nothing."""

    def __init__(self, waiting: list[PendingPods], company: PendingPodTerms, places: Places) -> None:
        self._places = places
        self._company = company
        self._rules = {each.number: places.rules(each.number) for each in waiting if company.of[each.number].spread}
        self._evenness: dict[int, list[Evenness]] = {}
        for rules in self._rules.values():
            for meant, _, evenness in rules:
                counted = self._evenness.setdefault(meant, [])
                if evenness not in counted:
                    counted.append(evenness)
        near = {each.near.meant: each.near for each in company.relations if each.near is not None}
        self._near: dict[int, RequiredAffinity] = near
        self._apart: dict[int, list[str]] = {}
        for number, key in sorted({found for each in company.relations for found in each.apart}):
            self._apart.setdefault(number, []).append(key)
        self._first_here: dict[_Domain, int] = {}
        self._first_total: dict[int, int] = {}
        self._values: dict[tuple[str, int], str | None] = {}
        self.reset()

    def ask(self, existing_nodes: ExistingNodes) -> None:
        """Counts the pods that stand already and that somebody must be near."""
        for number, near in self._near.items():
            affinity_counts = existing_nodes.near(near.matchers, near.keys)
            self._first_total[number] = affinity_counts.total
            for key in near.keys:
                for place, look in enumerate(self._places.one_look):
                    value = self._value(key, place)
                    if value is not None and affinity_counts.here[key][look]:
                        self._first_here[number, key, value] = affinity_counts.here[key][look]
        self.reset()

    def reset(self) -> None:
        """To what stands already."""
        for each in self._places.evenness.values():
            each.reset()
        self._here = dict(self._first_here)
        self._total = dict(self._first_total)
        self._meant: dict[_Domain, int] = {}
        self._holding: dict[_Domain, int] = {}

    def concern(self, relation: Relation) -> bool:
        """Whether a term that tells places apart is about such pods."""
        return (
            bool(relation.near or relation.apart or relation.spread)
            or not relation.means.isdisjoint(self._apart)
            or not relation.means.isdisjoint(self._near)
        )

    def allow(self, number: int, place: int) -> bool:
        """Whether one more pod of a class may go to a place."""
        rules = self._rules.get(number)
        if rules is not None and not all(evenness.allows(rule, place) for _, rule, evenness in rules):
            return False
        relation = self._company.of[number]
        if relation.near is not None and not self._is_near(relation.near, place):
            return False
        return not (self._apart and self._meets_enemies(relation, place))

    def evens_out(self, number: int, place: int) -> int:
        """How many pods are there of those that such a pod is counted with; the fewer the better."""
        return sum(each.at(place) for meant in self._company.of[number].means for each in self._evenness.get(meant, ()))

    def add(self, number: int, place: int, count: int = 1) -> None:
        """So many more pods of a class in a place."""
        relation = self._company.of[number]
        for meant in relation.means:
            for evenness in self._evenness.get(meant, ()):
                for _ in range(count):
                    evenness.add(place)
            near = self._near.get(meant)
            if near is not None:
                self._count_near(near, place, count)
            for key in self._apart.get(meant, ()):
                self._count(self._meant, (meant, key), place, count)
        for apart in relation.apart:
            self._count(self._holding, apart, place, count)

    def total(self, meant: int) -> int:
        """How many pods there are that somebody must be near."""
        return self._total.get(meant, 0)

    def may_go_together(self, number: int) -> bool:
        """Whether where one pod of a class may go, any number may."""
        relation = self._company.of[number]
        return not relation.spread and not relation.apart and relation.means.isdisjoint(self._evenness)

    def why(self, number: int) -> Obstacle:
        """Why one more pod of a class may go nowhere."""
        relation = self._company.of[number]
        if relation.near is not None and not any(self._is_near(relation.near, at) for at in range(self._places.count)):
            return AffinityNowhereMet(tuple(map(str, relation.near.matchers)))
        for _, rule, evenness in self._rules.get(number, ()):
            if not any(evenness.allows(rule, place) for place in range(self._places.count)):
                domains = tuple(sorted(evenness.counts.items()))
                return SpreadUnevenAnywhere(rule.key, rule.max_skew, str(rule.matcher), domains, rule.min_domains)
        return NoPlaceByTerms()

    def _is_near(self, near: RequiredAffinity, place: int) -> bool:
        if near.is_first and not self._total.get(near.meant):
            return all(self._value(key, place) is not None for key in near.keys)
        return all(self._has(self._here, near.meant, key, place) for key in near.keys)

    def _meets_enemies(self, relation: Relation, place: int) -> bool:
        if any(self._has(self._meant, number, key, place) for number, key in relation.apart):
            return True
        return any(
            self._has(self._holding, number, key, place)
            for number in relation.means
            for key in self._apart.get(number, ())
        )

    def _has(self, counts: dict[_Domain, int], number: int, key: str, place: int) -> bool:
        value = self._value(key, place)
        return value is not None and bool(counts.get((number, key, value)))

    def _count_near(self, near: RequiredAffinity, place: int, count: int) -> None:
        for key in near.keys:
            value = self._value(key, place)
            if value is not None:
                at = near.meant, key, value
                self._here[at] = self._here.get(at, 0) + count
                self._total[near.meant] = self._total.get(near.meant, 0) + count

    def _count(self, counts: dict[_Domain, int], of: tuple[int, str], place: int, count: int) -> None:
        value = self._value(of[1], place)
        if value is not None:
            at = of[0], of[1], value
            counts[at] = counts.get(at, 0) + count

    def _value(self, key: str, place: int) -> str | None:
        at = key, place
        if at not in self._values:
            self._values[at] = self._places.value(key, place)
        return self._values[at]
