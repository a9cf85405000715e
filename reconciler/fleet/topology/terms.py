"""Terms of pods about other pods: matchers in one canonical form, labels of namespaces, and an index of the terms
that may match a pod.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple, TypeVar

import msgspec

from reconciler.fleet.pod_classes import PodClass
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod, PodTerm, TopologySpreadConstraint

# --- The labels of namespaces, which terms may ask about.


class Namespaces:
    """Labels by namespace; `unread` says why there are none where they could not be read."""

    __slots__ = ("_labels", "unread")

    def __init__(self, labels: dict[str, dict[str, str]], unread: str = "") -> None:
        self._labels = labels
        self.unread = unread

    @classmethod
    def of(cls, observed: Observed) -> "Namespaces":
        labels = {each.metadata.name: each.metadata.labels for each in observed.namespaces}
        return cls(labels, observed.why_unread("namespaces"))

    def labels_of(self, name: str) -> dict[str, str] | None:
        return self._labels.get(name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Namespaces) and (self._labels, self.unread) == (other._labels, other.unread)

    __hash__ = None  # type: ignore[assignment]


# --- Whom a term means, in one canonical form: selectors that say the same in other words are equal and counted once.

Labels = dict[str, str]


class LabelRequirement(NamedTuple):
    """A label compared with In, NotIn, Exists or DoesNotExist."""

    key: str
    operator: str
    values: tuple[str, ...]

    def holds(self, labels: Labels) -> bool:
        found = labels.get(self.key)
        match self.operator:
            case "In":
                return found in self.values
            case "NotIn":
                return found not in self.values
            case "Exists":
                return found is not None
            case "DoesNotExist":
                return found is None
        return False

    def __str__(self) -> str:
        match self.operator:
            case "In" if len(self.values) == 1:
                return f"{self.key}={self.values[0]}"
            case "In" | "NotIn":
                return f"{self.key} {self.operator} ({', '.join(self.values)})"
        return f"{self.key} {self.operator}"


# Of a selector: None where it is absent and means nobody, none at all where it is empty and means everybody.
Requirements = tuple[LabelRequirement, ...] | None


def canonical(selector: LabelSelector | None) -> Requirements:
    """What a selector requires; labels that must be equal are written as In."""
    if selector is None:
        return None
    equal = {LabelRequirement(key, "In", (value,)) for key, value in selector.match_labels.items()}
    compared = {
        LabelRequirement(each.key, each.operator, tuple(sorted(set(each.values))))
        for each in selector.match_expressions
    }
    return tuple(sorted(equal | compared))


def all_hold(requirements: Requirements, labels: Labels) -> bool:
    return requirements is not None and all(each.holds(labels) for each in requirements)


class Matcher(NamedTuple):
    """Pods of some namespaces with some labels."""

    namespaces: tuple[str, ...]
    of_namespaces: Requirements  # of the labels of namespaces that are meant besides those named
    of_labels: Requirements

    def means(self, namespace: str, labels: Labels, namespaces: Namespaces) -> bool:
        """Whether the term of a pod that looks for a node means a pod like this one.

        A selector of namespaces is unrolled into those that are there, unless it is empty: then all are meant. All are
        meant too by one that would mean a namespace without labels (DoesNotExist and NotIn alone): having unrolled it,
        the scheduler of 1.36 asks it again, and then of no labels at all.
        """
        if not all_hold(self.of_labels, labels):
            return False
        return all_hold(self.of_namespaces, {}) or self._names(namespace, namespaces.labels_of(namespace))

    def repels(self, namespace: str, labels: Labels, namespaces: Namespaces) -> bool:
        """Whether the term of a pod that has its node means one like this that looks for one.

        A namespace that is not there counts as one without labels; where none could be read, all might be meant.
        """
        if self.of_namespaces and namespaces.unread:
            return all_hold(self.of_labels, labels)
        return self._names(namespace, namespaces.labels_of(namespace) or {}) and all_hold(self.of_labels, labels)

    @property
    def asks_namespaces(self) -> bool:
        """Whether the labels of namespaces decide whom it means."""
        return bool(self.of_namespaces)

    def _names(self, namespace: str, found: Labels | None) -> bool:
        if namespace in self.namespaces or self.of_namespaces == ():
            return True
        return found is not None and all_hold(self.of_namespaces, found)

    def __str__(self) -> str:
        if self.of_labels is None:
            return "nobody"
        meant = ", ".join(map(str, self.of_labels)) or "all pods"
        if self.of_namespaces is None:
            return f"{meant} in {', '.join(self.namespaces)}"
        where = [*self.namespaces, f"namespaces with {', '.join(map(str, self.of_namespaces)) or 'any labels'}"]
        return f"{meant} in {', '.join(where)}"


class Term(msgspec.Struct, frozen=True, gc=False):
    """Pods, and the label of nodes that says how near is meant."""

    matcher: Matcher
    key: str


class SpreadRule(msgspec.Struct, frozen=True, gc=False):
    """How evenly pods must be spread over the values of a label of nodes."""

    matcher: Matcher  # whom it counts
    key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool  # whether nodes that the pod can't run on by its selector are left out
    honors_taints: bool
    own: int  # 1 where the pod itself is one of those that are spread

    @property
    def means_all(self) -> bool:
        """Whether its selector is empty: it means every pod, and counts nobody but the pod itself."""
        return self.matcher.of_labels is None and self.own == 1


class PodAffinityTerms(msgspec.Struct, frozen=True, gc=False):
    """All that a pod asks about other pods."""

    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    spread: tuple[SpreadRule, ...] = ()

    def first_of_its_kind(self, pod: Pod, namespaces: Namespaces) -> bool:
        """Whether it is itself one of those that it must be near: then the first of them may go anywhere."""
        own = pod.metadata
        return all(each.matcher.means(own.namespace, own.labels, namespaces) for each in self.near)

    @property
    def asks_namespaces(self) -> bool:
        """Whether the labels of namespaces decide whom it means."""
        return any(each.matcher.asks_namespaces for each in self.near + self.apart)


def terms_of(pod: Pod) -> PodAffinityTerms | None:
    """What a pod asks; None for one that asks nothing."""
    spec = pod.spec
    rules = tuple(_rule(each, pod) for each in spec.topology_spread_constraints if _filters(each))
    if spec.affinity is None:
        return PodAffinityTerms(spread=rules) if rules else None
    near = tuple(_term(each, pod) for each in spec.affinity.pod_affinity.required)
    apart = tuple(_term(each, pod) for each in spec.affinity.pod_anti_affinity.required)
    return PodAffinityTerms(near, apart, rules) if near or apart or rules else None


def _filters(spread: TopologySpreadConstraint) -> bool:
    """One that may be left unmet keeps no node away, and those that a cluster has by default all may."""
    return spread.when_unsatisfiable == "DoNotSchedule"


def _term(term: PodTerm, pod: Pod) -> Term:
    namespaces = tuple(sorted(set(term.namespaces)))
    if not namespaces and term.namespace_selector is None:
        namespaces = (pod.metadata.namespace,)
    labels = canonical(term.label_selector)
    if not pod.metadata.uid:
        # The API server writes these keys into the selector when it makes the pod; the scheduler does not look at them.
        labels = _with_own(labels, term.match_label_keys, "In", pod.metadata.labels)
        labels = _with_own(labels, term.mismatch_label_keys, "NotIn", pod.metadata.labels)
    return Term(Matcher(namespaces, canonical(term.namespace_selector), labels), term.topology_key)


def _rule(spread: TopologySpreadConstraint, pod: Pod) -> SpreadRule:
    labels = _with_own(canonical(spread.label_selector), spread.match_label_keys, "In", pod.metadata.labels)
    return SpreadRule(
        # An empty selector means every pod, and yet the scheduler counts nobody for it but the pod itself.
        matcher=Matcher((pod.metadata.namespace,), None, labels or None),
        key=spread.topology_key,
        max_skew=spread.max_skew,
        min_domains=1 if spread.min_domains is None else spread.min_domains,
        honors_affinity=spread.node_affinity_policy != "Ignore",
        honors_taints=spread.node_taints_policy == "Honor",
        own=int(all_hold(labels, pod.metadata.labels)),
    )


def _with_own(labels: Requirements, keys: tuple[str, ...], operator: str, own: dict[str, str]) -> Requirements:
    """A selector that also asks for the pod's own values; a selector that means nobody stays so."""
    if labels is None or not keys:
        return labels
    added = {LabelRequirement(key, operator, (own[key],)) for key in keys if key in own}
    return tuple(sorted({*labels, *added}))


# --- Owner of what finds the few terms that may mean a pod without trying all of them, by a label that they must have.

T = TypeVar("T")


def telling(matchers: Iterable[Matcher]) -> LabelRequirement | None:
    """A requirement that only few pods meet: one that names the values of a label."""
    found = (each for matcher in matchers for each in matcher.of_labels or () if each.operator == "In")
    return min(found, key=lambda each: len(each.values), default=None)


class Index(Generic[T]):
    """Things by a label and value that they need, and those that need none."""

    def __init__(self) -> None:
        self._by_label: dict[tuple[str, str], list[T]] = {}
        self._others: list[T] = []

    def add(self, matchers: tuple[Matcher, ...], thing: T) -> None:
        requirement = telling(matchers)
        if requirement is None:
            self._others.append(thing)
            return
        for value in requirement.values:
            self._by_label.setdefault((requirement.key, value), []).append(thing)

    def candidates(self, labels: dict[str, str]) -> Iterator[T]:
        """Each at most once, in the order that they came in for one set of labels."""
        yield from self._others
        for label in labels.items():
            yield from self._by_label.get(label, ())


# --- How many pairs of a term and a set of labels the terms of one namespace make, and which pods are beyond the bound.
#
# What terms about other pods cost grows with the pairs that have to be compared: a term that names the value of a label
# is compared with pods that have that value, any other term with all pods. Real namespaces make a few thousand pairs.
# One whose pods each have terms of their own that mean all pods makes millions, and would take the time of everybody.
# So only the first classes of such a namespace are judged by their terms, in an order that depends on nothing but what
# the pods say. The others are never said to fit, and are taken to be apart from every pod that one of their terms could
# mean.

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
