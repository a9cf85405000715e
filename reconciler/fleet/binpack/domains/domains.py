"""Places: groups of virtual nodes that are in the same domains for all pending terms."""

import numpy as np

from reconciler.fleet.binpack.domains.pod_terms import PendingPodTerms, Relation, RequiredAffinity
from reconciler.fleet.binpack.inputs import Domains, ExistingNodes, PendingPods
from reconciler.fleet.binpack.offers import Indices
from reconciler.fleet.obstacles import AffinityNowhereMet, NoPlaceByTerms, SpreadUnevenAnywhere
from reconciler.fleet.rows import Mask
from reconciler.fleet.topology.terms import SpreadRule
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.plan.decision import Obstacle


class Evenness:
    """Pod counts per domain for one spread rule, while pods are assigned to places.

    A domain without nodes where nodes could be launched counts from the start, with no pods. This is never too lenient:
    a domain that gets no node in the end had no pods, so the minimum was 0.
    """

    __slots__ = ("_at_least", "_first", "_least", "counts", "domain")

    def __init__(self, domains: Domains, domain: list[str | None]) -> None:
        self.domain = domain  # by place; None if the place does not count
        self._first = domains.counts
        self.reset()

    def reset(self) -> None:
        """Resets to the existing pods."""
        self.counts = dict(self._first)
        self._find_least()

    def allows(self, rule: SpreadRule, place: int) -> bool:
        domain = self.domain[place]
        if domain is None:
            return False
        least = self._least if len(self.counts) >= rule.min_domains else 0
        return self.counts[domain] + rule.own - least <= rule.max_skew

    def at(self, place: int) -> int:
        domain = self.domain[place]
        return 0 if domain is None else self.counts[domain]

    def add(self, place: int) -> None:
        """Adds one counted pod."""
        domain = self.domain[place]
        if domain is None:
            return
        before = self.counts[domain]
        self.counts[domain] = before + 1
        if before == self._least:
            self._at_least -= 1
            if not self._at_least:
                self._find_least()

    def _find_least(self) -> None:
        counts = list(self.counts.values())
        self._least = min(counts, default=0)
        self._at_least = counts.count(self._least)


class Places:
    """The numbered places; each spread rule has one set of counts, shared by all classes with equal rules."""

    def __init__(self, looks: list[Node], company: PendingPodTerms) -> None:
        self._looks = looks
        self._company = company
        self._keys = sorted({key for each in company.relations for key in _keys(each)} - {names.HOSTNAME})
        self._domains: dict[object, Domains] = {}
        self._rules: dict[int, list[tuple[int, SpreadRule, object]]] = {}
        self.of_look: Indices = np.zeros(len(looks), np.intp)
        self.count = 1
        self.one_look: list[int] = [0]
        self.evenness: dict[object, Evenness] = {}

    def divide(self, waiting: list[PendingPods], existing_nodes: ExistingNodes) -> None:
        """Determines the counted domains of each rule, and splits virtual nodes by domain."""
        for each in waiting:
            relation = self._company.of[each.number]
            if relation.spread:
                self._rules[each.number] = [
                    (meant, rule, self._count(rule, each, existing_nodes)) for meant, rule in relation.spread
                ]
        eligible: list[Mask] = [each.eligible for each in self._domains.values()]
        found: dict[tuple[object, ...], int] = {}
        for number, look in enumerate(self._looks):
            labels = look.metadata.labels
            domain_values = (*[labels.get(key) for key in self._keys], *[bool(mask[number]) for mask in eligible])
            self.of_look[number] = found.setdefault(domain_values, len(found))
        self.count = len(found)
        self.one_look = [int(np.flatnonzero(self.of_look == place)[0]) for place in range(self.count)]
        for key, domains in self._domains.items():
            label = key[0].key  # type: ignore[index]
            self.evenness[key] = Evenness(
                domains,
                [
                    self._looks[look].metadata.labels[label] if domains.eligible[look] else None
                    for look in self.one_look
                ],
            )

    def rules(self, number: int) -> list[tuple[int, SpreadRule, Evenness]]:
        """The spread rules of a class, with their indexes and counts."""
        return [(meant, rule, self.evenness[key]) for meant, rule, key in self._rules.get(number, ())]

    def value(self, key: str, place: int) -> str | None:
        """The domain of a place. For hosts, only whether two places differ is known."""
        if key == names.HOSTNAME:
            return f"of place {place}"
        return self._looks[self.one_look[place]].metadata.labels.get(key)

    def _count(self, rule: SpreadRule, each: PendingPods, existing_nodes: ExistingNodes) -> object:
        """The key that distinguishes the counts of this rule from those of others."""
        keys = self._company.of[each.number].spread_keys
        honors = rule.honors_affinity or rule.honors_taints
        needs = each.pod_class.needs.number if honors else -1
        counted = SpreadRule(
            rule.matcher, rule.key, 0, 0, honors_affinity=rule.honors_affinity, honors_taints=rule.honors_taints, own=0
        )
        key = counted, keys, needs
        if key not in self._domains:
            self._domains[key] = existing_nodes.domains(rule, keys, each.pod_class)
        return key


def _keys(relation: Relation) -> set[str]:
    near = set(relation.near.keys) if relation.near is not None else set()
    return near | {key for _, key in relation.apart} | {rule.key for _, rule in relation.spread}


# --- Owner of pod counts by place: which place a pod may go to, given existing and assigned pods.

_Domain = tuple[int, str, str]  # term, label key, label value


class Neighbours:
    """Pod counts by domain. Pods that no place-dependent term selects are not counted: they are placed last."""

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
        """Counts the existing pods that affinity terms select."""
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
        """Resets to the existing pods."""
        for each in self._places.evenness.values():
            each.reset()
        self._here = dict(self._first_here)
        self._total = dict(self._first_total)
        self._meant: dict[_Domain, int] = {}
        self._holding: dict[_Domain, int] = {}

    def concern(self, relation: Relation) -> bool:
        """Whether a place-dependent term selects such pods."""
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
        """How many pods in the place count for the spread of such a pod; fewer is better."""
        return sum(each.at(place) for meant in self._company.of[number].means for each in self._evenness.get(meant, ()))

    def add(self, number: int, place: int, count: int = 1) -> None:
        """Adds pods of a class to a place."""
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
        """How many pods match an affinity term."""
        return self._total.get(meant, 0)

    def may_go_together(self, number: int) -> bool:
        """Whether any number of pods of a class may go wherever one may."""
        relation = self._company.of[number]
        return not relation.spread and not relation.apart and relation.means.isdisjoint(self._evenness)

    def why(self, number: int) -> Obstacle:
        """The obstacle for one more pod of a class."""
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
