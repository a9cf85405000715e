"""Inter-pod terms: matchers in canonical form, namespace labels, and an index of the terms that may match a pod."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple, TypeVar

import msgspec

from reconciler.fleet.pod_classes import PodClass
from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod, PodTerm, TopologySpreadConstraint

# --- Namespace labels, which terms may select.


class Namespaces:
    """Labels by namespace; `unread` says why they could not be read."""

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


# --- Matchers in canonical form: equivalent selectors are equal, and counted once.

Labels = dict[str, str]


class LabelRequirement(NamedTuple):
    """A label requirement with In, NotIn, Exists or DoesNotExist."""

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


# For a selector: None if it is absent and selects nothing, empty if it is empty and selects everything.
Requirements = tuple[LabelRequirement, ...] | None


def canonical(selector: LabelSelector | None) -> Requirements:
    """The requirements of a selector; matchLabels become In."""
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
    """Pods with some labels in some namespaces."""

    namespaces: tuple[str, ...]
    of_namespaces: Requirements  # namespace labels that select further namespaces besides the named ones
    of_labels: Requirements

    def means(self, namespace: str, labels: Labels, namespaces: Namespaces) -> bool:
        """Whether the term of a pending pod selects a pod like this one.

        A namespace selector is expanded to existing namespaces, unless it is empty: then all are selected. All are
        also selected by a selector that matches a namespace without labels (DoesNotExist and NotIn alone): after the
        expansion, the scheduler of 1.36 evaluates the selector again, with no labels at all.
        """
        if not all_hold(self.of_labels, labels):
            return False
        return all_hold(self.of_namespaces, {}) or self._names(namespace, namespaces.labels_of(namespace))

    def repels(self, namespace: str, labels: Labels, namespaces: Namespaces) -> bool:
        """Whether the term of a bound pod selects a pending pod like this one.

        A missing namespace counts as one without labels; if namespaces could not be read, all are selected.
        """
        if self.of_namespaces and namespaces.unread:
            return all_hold(self.of_labels, labels)
        return self._names(namespace, namespaces.labels_of(namespace) or {}) and all_hold(self.of_labels, labels)

    @property
    def asks_namespaces(self) -> bool:
        """Whether the result depends on namespace labels."""
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
    """A pod matcher and a topology key."""

    matcher: Matcher
    key: str


class SpreadRule(msgspec.Struct, frozen=True, gc=False):
    """A topology spread rule."""

    matcher: Matcher  # the counted pods
    key: str
    max_skew: int
    min_domains: int
    honors_affinity: bool  # whether nodes that the pod's node affinity excludes are left out
    honors_taints: bool
    own: int  # 1 if the pod itself matches the selector

    @property
    def means_all(self) -> bool:
        """Whether the selector is empty: it matches every pod, but the scheduler counts only the pod itself."""
        return self.matcher.of_labels is None and self.own == 1


class PodAffinityTerms(msgspec.Struct, frozen=True, gc=False):
    """All inter-pod terms of a pod."""

    near: tuple[Term, ...] = ()
    apart: tuple[Term, ...] = ()
    spread: tuple[SpreadRule, ...] = ()

    def first_of_its_kind(self, pod: Pod, namespaces: Namespaces) -> bool:
        """Whether the pod matches its own affinity: then the first such pod may go anywhere."""
        own = pod.metadata
        return all(each.matcher.means(own.namespace, own.labels, namespaces) for each in self.near)

    @property
    def asks_namespaces(self) -> bool:
        """Whether the result depends on namespace labels."""
        return any(each.matcher.asks_namespaces for each in self.near + self.apart)


def terms_of(pod: Pod) -> PodAffinityTerms | None:
    """The terms of a pod; None if it has none."""
    spec = pod.spec
    rules = tuple(_rule(each, pod) for each in spec.topology_spread_constraints if _filters(each))
    if spec.affinity is None:
        return PodAffinityTerms(spread=rules) if rules else None
    near = tuple(_term(each, pod) for each in spec.affinity.pod_affinity.required)
    apart = tuple(_term(each, pod) for each in spec.affinity.pod_anti_affinity.required)
    return PodAffinityTerms(near, apart, rules) if near or apart or rules else None


def _filters(spread: TopologySpreadConstraint) -> bool:
    """Whether the constraint excludes nodes: ScheduleAnyway does not, nor do the cluster's default constraints."""
    return spread.when_unsatisfiable == "DoNotSchedule"


def _term(term: PodTerm, pod: Pod) -> Term:
    namespaces = tuple(sorted(set(term.namespaces)))
    if not namespaces and term.namespace_selector is None:
        namespaces = (pod.metadata.namespace,)
    labels = canonical(term.label_selector)
    if not pod.metadata.uid:
        # The API server merges these keys into the selector when the pod is created; the scheduler ignores them.
        labels = _with_own(labels, term.match_label_keys, "In", pod.metadata.labels)
        labels = _with_own(labels, term.mismatch_label_keys, "NotIn", pod.metadata.labels)
    return Term(Matcher(namespaces, canonical(term.namespace_selector), labels), term.topology_key)


def _rule(spread: TopologySpreadConstraint, pod: Pod) -> SpreadRule:
    labels = _with_own(canonical(spread.label_selector), spread.match_label_keys, "In", pod.metadata.labels)
    return SpreadRule(
        # An empty selector matches every pod, but the scheduler counts only the pod itself.
        matcher=Matcher((pod.metadata.namespace,), None, labels or None),
        key=spread.topology_key,
        max_skew=spread.max_skew,
        min_domains=1 if spread.min_domains is None else spread.min_domains,
        honors_affinity=spread.node_affinity_policy != "Ignore",
        honors_taints=spread.node_taints_policy == "Honor",
        own=int(all_hold(labels, pod.metadata.labels)),
    )


def _with_own(labels: Requirements, keys: tuple[str, ...], operator: str, own: dict[str, str]) -> Requirements:
    """The selector with the pod's own label values added; a selector that matches nothing stays so."""
    if labels is None or not keys:
        return labels
    added = {LabelRequirement(key, operator, (own[key],)) for key in keys if key in own}
    return tuple(sorted({*labels, *added}))


# --- Owner of an index that finds the few terms that may select a pod, by a required label.

T = TypeVar("T")


def telling(matchers: Iterable[Matcher]) -> LabelRequirement | None:
    """The most selective requirement: one that names label values."""
    found = (each for matcher in matchers for each in matcher.of_labels or () if each.operator == "In")
    return min(found, key=lambda each: len(each.values), default=None)


class Index(Generic[T]):
    """Entries indexed by a required label and value, and entries without one."""

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
        """Each entry at most once, in a stable order for one set of labels."""
        yield from self._others
        for label in labels.items():
            yield from self._by_label.get(label, ())


# --- Limit on the number of pairs of a term and a label set per namespace, and the terms beyond the limit.
#
# The cost of inter-pod terms grows with the number of comparisons: a term that names a label value is compared with
# pods that have the value, any other term with all pods. Real namespaces have a few thousand pairs. A namespace in
# which each pod has its own terms that select all pods has millions, and would take the time of all tenants. So only
# the terms of the first classes of such a namespace are evaluated, in an order that depends only on the pods' content.
# Pods of all other classes never fit, and are treated as if they had anti-affinity to every pod that one of their terms
# could select.

MOST_PAIRS = 250_000  # pairs of a term and a label set, per namespace

Compared = tuple[str, Matcher]  # a matcher, and the namespace of the pods with the term


class Breadth:
    """Counts for some pod classes and their labels."""

    def __init__(self, classes: Collection[PodClass]) -> None:
        sets = {each.label_class.number: each.label_class for each in classes}
        self._with_label: Counter[tuple[str, str]] = Counter()
        for label_class in sets.values():
            self._with_label.update(label_class.labels.items())
        self._all = len(sets)

    def beyond(self, asking: Mapping[PodClass, PodAffinityTerms]) -> frozenset[Compared]:
        """The matchers that are not evaluated, beyond the limit of their namespace."""
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
        # Never more than the number of label sets: each set has one value per label, and values are distinct.
        return max(1, sum(self._with_label[requirement.key, value] for value in sorted(set(requirement.values))))


def compared(pod_class: PodClass, terms: PodAffinityTerms) -> AbstractSet[Compared]:
    """The matchers of a class' terms."""
    matchers = [each.matcher for each in terms.near + terms.apart] + [each.matcher for each in terms.spread]
    return {(pod_class.namespace, each) for each in matchers}


def broadened(terms: PodAffinityTerms) -> PodAffinityTerms:
    """Anti-affinity to every pod that one of the terms could select; nothing else."""
    apart = {Term(_broad(each.matcher), each.key) for each in terms.apart}
    return PodAffinityTerms(apart=tuple(sorted(apart, key=lambda each: (each.key, each.matcher.namespaces))))


def _broad(matcher: Matcher) -> Matcher:
    """All pods of the named namespace if there is exactly one, otherwise all pods."""
    if len(matcher.namespaces) == 1 and matcher.of_namespaces is None:
        return Matcher(matcher.namespaces, None, ())
    return Matcher((), (), ())
