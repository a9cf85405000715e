"""What the scheduler's filters see in a pod and a node, written down anew for checks, and in no hurry."""

from dataclasses import dataclass, field
from decimal import Decimal

import msgspec

from reconciler.model.cluster.metadata import LabelSelector
from reconciler.model.cluster.node import NodeTaint
from reconciler.model.cluster.pod import NodeTerm, Pod, PodTerm, Toleration, TopologySpreadConstraint

HOST, ZONE, CAPACITY_TYPE = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "karpenter.sh/capacity-type"
SUFFIXES = {
    suffix: Decimal(text) for suffix, text in {"": "1", "m": "0.001", "k": "1e3", "M": "1e6", "G": "1e9"}.items()
} | {suffix: Decimal(2**power) for suffix, power in {"Ki": 10, "Mi": 20, "Gi": 30}.items()}


@dataclass(eq=False)
class Place:
    """A node that is there or was bought, and who is on it."""

    name: str
    labels: dict[str, str]
    taints: tuple[NodeTaint, ...]
    free: dict[str, Decimal]
    pods: list[Pod] = field(default_factory=list)


def amount(text: str) -> Decimal:
    suffix = text.lstrip("0123456789.")
    return Decimal(text.removesuffix(suffix)) * SUFFIXES[suffix]


def asked(pod: Pod) -> dict[str, Decimal]:
    found = {"pods": Decimal(1)}
    for container in pod.spec.containers:
        for name, text in container.resources.requests.items():
            found[name] = found.get(name, Decimal(0)) + amount(text)
    return found


def ports(pod: Pod) -> list[tuple[str, int, str]]:
    return [
        (port.protocol or "TCP", port.host_port, port.host_ip or "0.0.0.0")  # noqa: S104
        for container in pod.spec.containers
        for port in container.ports
        if port.host_port
    ]


def clash(one: tuple[str, int, str], other: tuple[str, int, str]) -> bool:
    return one[:2] == other[:2] and (one[2] == other[2] or "0.0.0.0" in (one[2], other[2]))  # noqa: S104


def rules(pod: Pod) -> list[TopologySpreadConstraint]:
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]


def away(pod: Pod) -> tuple[PodTerm, ...]:
    return pod.spec.affinity.pod_anti_affinity.required if pod.spec.affinity else ()


def matches(selector: LabelSelector | None, labels: dict[str, str]) -> bool:
    return selector is not None and selector.matches(labels)


def spread_selector(rule: TopologySpreadConstraint, pod: Pod) -> LabelSelector | None:
    if rule.label_selector is None:
        return None
    own = {key: pod.metadata.labels[key] for key in rule.match_label_keys if key in pod.metadata.labels}
    return msgspec.structs.replace(rule.label_selector, match_labels=rule.label_selector.match_labels | own)


def meant(term: PodTerm, space: str, other: Pod) -> bool:
    """Whether a term of a pod in a namespace means another; terms about labels of namespaces are not used in tests."""
    return other.metadata.namespace in (term.namespaces or (space,)) and matches(
        term.label_selector, other.metadata.labels
    )


def term_name(term: PodTerm, space: str) -> str:
    return f"{sorted(term.namespaces or (space,))} {selector_name(term.label_selector)} {term.topology_key}"


def selector_name(selector: LabelSelector | None) -> str:
    return msgspec.json.encode(selector, order="sorted").decode()


def selects(pod: Pod, place: Place) -> bool:
    labels = place.labels
    if any(labels.get(key) != value for key, value in pod.spec.node_selector.items()):
        return False
    required = pod.spec.affinity.node_affinity.required if pod.spec.affinity else None
    return required is None or any(_term_holds(term, labels) for term in required.node_selector_terms)


def _term_holds(term: NodeTerm, labels: dict[str, str]) -> bool:
    if not term.match_expressions:
        return False
    for each in term.match_expressions:
        found = labels.get(each.key)
        holds = {
            "In": found in each.values,
            "NotIn": found not in each.values,
            "Exists": found is not None,
            "DoesNotExist": found is None,
        }[each.operator]
        if not holds:
            return False
    return True


def bears(pod: Pod, place: Place) -> bool:
    hard = [taint for taint in place.taints if taint.effect in {"NoSchedule", "NoExecute"}]
    return all(any(_tolerates(each, taint) for each in pod.spec.tolerations) for taint in hard)


def _tolerates(toleration: Toleration, taint: NodeTaint) -> bool:
    if toleration.effect not in ("", taint.effect) or toleration.key not in ("", taint.key):
        return False
    return toleration.operator == "Exists" or (toleration.key == taint.key and toleration.value == taint.value)
