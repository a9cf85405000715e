"""Terms between pending pods: affinity, anti-affinity, and limits per host.

A term with the topology key of the host becomes a rule "at most N pods of this kind on the node": 1 for pods with
anti-affinity to their own kind, 0 for pods with anti-affinity to others, maxSkew for a spread over hosts, where a new
node has the minimum, 0. A host port is such a rule too. Rules hold for the complete node, not only as each pod is
added, so they hold in any binding order.
"""

import msgspec

from reconciler.fleet.binpack.inputs import NO_TERMS, PendingPods
from reconciler.fleet.pod_classes import PodClass
from reconciler.fleet.topology.term_counts import Counting
from reconciler.fleet.topology.terms import Index, Matcher, PodAffinityTerms, SpreadRule
from reconciler.model import names
from reconciler.model.cluster.pod import Port

_EVERY = "0.0.0.0"  # noqa: S104 - an address compared, not bound to


class RequiredAffinity(msgspec.Struct, frozen=True, gc=False):
    """Required pod affinity, in the domains of all the keys at once."""

    meant: int
    matchers: tuple[Matcher, ...]
    keys: tuple[str, ...]
    is_first: bool  # the first pod of its kind may go anywhere


class Relation(msgspec.Struct, frozen=True, gc=False):
    """Relations of a class to other pods; numbers identify terms."""

    number: int
    means: frozenset[int]  # all terms that select such a pod
    rules: dict[int, int]  # term -> maximum number of selected pods on the node
    near: RequiredAffinity | None
    apart: tuple[tuple[int, str], ...]  # anti-affinity: term, label key; without the host's key
    spread: tuple[tuple[int, SpreadRule], ...]  # spread rules except those over hosts
    spread_keys: tuple[str, ...]  # of all rules, including those over hosts


class PendingPodTerms:
    """The relations of all pending classes."""

    def __init__(self, waiting: list[PendingPods], counting: Counting) -> None:
        self._counting = counting
        self._numbers: dict[object, int] = {}
        self._index: Index[tuple[int, bool, tuple[Matcher, ...]]] = Index()
        self._meant: dict[int, frozenset[int]] = {}
        for terms in {id(each.terms): each.terms for each in waiting}.values():
            self._learn(terms)
        self.relations: list[Relation] = []
        known: dict[tuple[object, ...], Relation] = {}
        self.of: list[Relation] = []
        for each in waiting:
            key = id(each.terms), each.pod_class.label_class.number, each.pod_class.ports
            relation = known.get(key)
            if relation is None:
                relation = known[key] = self._relation(each)
                self.relations.append(relation)
            self.of.append(relation)

    def _learn(self, terms: PodAffinityTerms) -> None:
        """Assigns numbers to the selectors of terms."""
        if terms is NO_TERMS:
            return
        for rule in terms.spread:
            self._number((rule.matcher,), False)
        for term in terms.apart:
            self._number((term.matcher,), True)
        if terms.near:
            self._number(_all_of(terms), False)

    def _number(self, matchers: tuple[Matcher, ...], is_apart: bool) -> int:
        key = matchers, is_apart
        result = self._numbers.get(key)
        if result is None:
            result = self._numbers[key] = len(self._numbers)
            self._index.add(matchers, (result, is_apart, matchers))
        return result

    def _relation(self, each: PendingPods) -> Relation:
        terms = each.terms
        taken, rules = self._ports(each.pod_class.ports)
        means = self._means(each.pod_class) | taken
        for rule in terms.spread:
            if rule.key == names.HOSTNAME:
                _limit(rules, self._number((rule.matcher,), False), rule.max_skew)
        apart = [(self._number((term.matcher,), True), term.key) for term in terms.apart]
        for number, key in apart:
            if key == names.HOSTNAME:
                _limit(rules, number, int(number in means))
        return Relation(
            number=len(self.relations),
            means=means,
            rules=rules,
            near=self._near(each) if terms.near else None,
            apart=tuple(sorted({found for found in apart if found[1] != names.HOSTNAME})),
            spread=tuple(
                (self._number((rule.matcher,), False), rule) for rule in terms.spread if rule.key != names.HOSTNAME
            ),
            spread_keys=tuple(sorted({rule.key for rule in terms.spread})),
        )

    def _near(self, each: PendingPods) -> RequiredAffinity:
        matchers = _all_of(each.terms)
        keys = tuple(sorted({term.key for term in each.terms.near}))
        number = self._number(matchers, False)
        return RequiredAffinity(
            number, matchers, keys, each.terms.first_of_its_kind(each.pod_class.pod, self._counting.namespaces)
        )

    def _means(self, pod_class: PodClass) -> frozenset[int]:
        of = pod_class.label_class
        result = self._meant.get(of.number)
        if result is None:
            namespaces = self._counting.namespaces
            result = self._meant[of.number] = frozenset(
                number
                for number, is_apart, matchers in self._index.candidates(of.labels)
                if all(each.means(of.namespace, of.labels, namespaces) for each in matchers)
                or (is_apart and matchers[0].repels(of.namespace, of.labels, namespaces))
            )
        return result

    def _ports(self, ports: tuple[Port, ...]) -> tuple[set[int], dict[int, int]]:
        """The terms that select a pod by its ports, and its rules.

        A port on all addresses conflicts with each address.
        """
        taken, rules = set(), {}
        for port in ports:
            slot, address = (port.protocol or "TCP", port.host_port), port.host_ip or _EVERY
            taken |= {self._slot(slot, address), self._slot(slot, "")}
        for port in ports:
            slot, address = (port.protocol or "TCP", port.host_port), port.host_ip or _EVERY
            if address == _EVERY:
                rules[self._slot(slot, "")] = 1
            else:
                everywhere = self._slot(slot, _EVERY)
                rules |= {self._slot(slot, address): 1, everywhere: int(everywhere in taken)}
        return taken, rules

    def _slot(self, slot: tuple[str, int], address: str) -> int:
        """The number of the term for pods with a port at an address; empty address: any."""
        return self._numbers.setdefault((slot, address), len(self._numbers))


def _all_of(terms: PodAffinityTerms) -> tuple[Matcher, ...]:
    return tuple(dict.fromkeys(term.matcher for term in terms.near))


def _limit(rules: dict[int, int], number: int, most: int) -> None:
    rules[number] = min(most, rules.get(number, most))
