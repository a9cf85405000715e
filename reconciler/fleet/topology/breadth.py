"""How many pairs of a term and a set of labels the terms of one namespace make, and which pods are beyond the bound.

What terms about other pods cost grows with the pairs that have to be compared: a term that names the value of a label
is compared with pods that have that value, any other term with all pods. Real namespaces make a few thousand pairs. One
whose pods each have terms of their own that mean all pods makes millions, and would take the time of everybody. So only
the first classes of such a namespace are judged by their terms, in an order that depends on nothing but what the pods
say. The others are never said to fit, and are taken to be apart from every pod that one of their terms could mean.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from collections.abc import Set as AbstractSet

from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.topology.index import telling
from reconciler.fleet.topology.matcher import Matcher
from reconciler.fleet.topology.terms import PodAffinityTerms, Term

MOST_PAIRS = 250_000  # of a term and a set of labels, by the pods of one namespace

Compared = tuple[str, Matcher]  # a matcher, and the namespace of the pods whose terms it is of


class Breadth:
    """Of some classes of pods, and the labels of the same."""

    def __init__(self, classes: Collection[PodClass]) -> None:
        sets = {each.label_class.number: each.label_class for each in classes}
        self._with_label: Counter[tuple[str, str]] = Counter()
        for label_class in sets.values():
            self._with_label.update(label_class.labels.items())
        self._all = len(sets)

    def beyond(self, asking: Mapping[PodClass, PodAffinityTerms]) -> frozenset[Compared]:
        """What is not compared, since it is beyond the bound of its namespace."""
        spent: Counter[str] = Counter()
        known: set[Compared] = set()
        refused: set[Compared] = set()
        for pod_class in sorted(asking, key=lambda each: each.text):
            namespace = pod_class.namespace
            more = compared(pod_class, asking[pod_class]) - known
            pairs = sum(self._pairs(matcher) for _, matcher in more)
            if spent[namespace] + pairs > MOST_PAIRS:
                refused |= more
                continue
            spent[namespace] += pairs
            known |= more
        return frozenset(refused - known)

    def _pairs(self, matcher: Matcher) -> int:
        requirement = telling((matcher,))
        if requirement is None:
            return self._all
        # Never more than there are sets: one set has one value of a label, and values are there once.
        return max(1, sum(self._with_label[requirement.key, value] for value in sorted(set(requirement.values))))


def compared(pod_class: PodClass, terms: PodAffinityTerms) -> AbstractSet[Compared]:
    """Whom the terms of a class mean."""
    matchers = [each.matcher for each in terms.near + terms.apart] + [each.matcher for each in terms.spread]
    return {(pod_class.namespace, each) for each in matchers}


def broadened(terms: PodAffinityTerms) -> PodAffinityTerms:
    """Apart from every pod that one of the terms could mean; nothing else."""
    apart = {Term(_broad(each.matcher), each.key) for each in terms.apart}
    return PodAffinityTerms(apart=tuple(sorted(apart, key=lambda each: (each.key, each.matcher.namespaces))))


def _broad(matcher: Matcher) -> Matcher:
    """Everybody in the one namespace that is named; else everybody."""
    if len(matcher.namespaces) == 1 and matcher.of_namespaces is None:
        return Matcher(matcher.namespaces, None, ())
    return Matcher((), (), ())
