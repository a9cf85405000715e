"""Places: looks that are in the same domains for every term that waits, so that no term tells them apart."""

import numpy as np

from reconciler.fleet.binpack.domains.pod_terms import PendingPodTerms, Relation
from reconciler.fleet.binpack.existing_nodes import Domains, ExistingNodes
from reconciler.fleet.binpack.offers import Indices
from reconciler.fleet.binpack.pending_pods import PendingPods
from reconciler.fleet.rows import Mask
from reconciler.fleet.topology.terms import SpreadRule
from reconciler.model import names
from reconciler.model.cluster.node import Node


class Evenness:
    """Owner of how many pods that one rule counts each domain has, while new pods are shared out among places.

    Where a node could be bought is a domain from the start, with no pod. That is never too lenient: a domain that comes
    to no node in the end had none of the pods, so the fewest were none.
    """

    __slots__ = ("_at_least", "_first", "_least", "counts", "domain")

    def __init__(self, domains: Domains, domain: list[str | None]) -> None:
        self.domain = domain  # of each place; None where it is not of those that count
        self._first = domains.counts
        self.reset()

    def reset(self) -> None:
        """To the pods that are there already."""
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
        """One more pod that counts."""
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
    """The places by number; a rule of spreading has its counts here, one for all classes that count alike."""

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
        """Asks which domains count for whom, and tells the looks apart by their domains."""
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
        """The rules of spreading that a class must keep: whom each counts, and the counts."""
        return [(meant, rule, self.evenness[key]) for meant, rule, key in self._rules.get(number, ())]

    def value(self, key: str, place: int) -> str | None:
        """The domain of a place. Of hosts, all that is known is that those of another place are others."""
        if key == names.HOSTNAME:
            return f"of place {place}"
        return self._looks[self.one_look[place]].metadata.labels.get(key)

    def _count(self, rule: SpreadRule, each: PendingPods, existing_nodes: ExistingNodes) -> object:
        """What tells the counts of this rule from those of others."""
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
