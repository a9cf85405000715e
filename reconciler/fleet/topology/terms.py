"""What a pod asks about other pods: near whom it must be, away from whom, and how evenly spread."""

import msgspec

from reconciler.fleet.topology.matcher import LabelRequirement, Matcher, Requirements, all_hold, canonical
from reconciler.fleet.topology.namespaces import Namespaces
from reconciler.model.cluster.pod import Pod, PodTerm, TopologySpreadConstraint


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
