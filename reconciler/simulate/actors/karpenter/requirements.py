"""Demands on labels, compared and joined as Karpenter does it: of NodePools, pods, instance types and offerings."""

from collections.abc import Iterable, Mapping

from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.plan.karpenter.requirements import Allowed, Demands, demands
from reconciler.plan.karpenter.template import NodePoolRequirement
from reconciler.protocol.preconditions import Object

# Of these labels a new node gets some value, whether or not its NodePool names them.
WELL_KNOWN = frozenset(
    {
        names.KARPENTER_POOL,
        names.ZONE,
        names.REGION,
        names.INSTANCE_TYPE,
        names.CAPACITY_TYPE,
        "kubernetes.io/arch",
        "kubernetes.io/os",
    }
)
_BEYOND_ANY = 2**63


def one_of(values: Iterable[str]) -> Allowed:
    return Allowed(frozenset(values), all_but=False)


def of_labels(labels: Mapping[str, str]) -> dict[str, Allowed]:
    return {key: one_of((value,)) for key, value in labels.items()}


def alternatives(pod: Pod) -> tuple[Demands, ...]:
    """What a pod asks of labels: one after the other is tried. None where it asks for fields, which Karpenter
    does not know."""
    spec = pod.spec
    selected = [NodePoolRequirement(key, "In", (value,)) for key, value in sorted(spec.node_selector.items())]
    required = spec.affinity.node_affinity.required if spec.affinity is not None else None
    if required is None or not required.node_selector_terms:
        return (demands(selected),)
    if any(term.match_fields for term in required.node_selector_terms):
        return ()
    return tuple(
        demands(
            [*selected, *[NodePoolRequirement(each.key, each.operator, each.values) for each in term.match_expressions]]
        )
        for term in required.node_selector_terms
    )


def compatible(has: Demands, asks: Demands, known: frozenset[str]) -> bool:
    """Whether what is asked for can be had; of labels that are not `known` only those that are there."""
    for key, allowed in asks.items():
        if key not in has and key not in known and not allowed.may_be_missing:
            return False
    return intersects(has, asks)


def intersects(one: Demands, other: Demands) -> bool:
    """Whether some value of each label that both name would do."""
    for key, allowed in other.items():
        mine = one.get(key)
        if mine is None or not is_empty(mine.joined(allowed)):
            continue
        if not (mine.may_be_missing and allowed.may_be_missing):
            return False
    return True


def joined(one: Demands, other: Demands) -> dict[str, Allowed]:
    """Both at once."""
    alloweds = dict(one)
    for key, allowed in other.items():
        alloweds[key] = alloweds[key].joined(allowed) if key in alloweds else allowed
    return alloweds


def is_empty(allowed: Allowed) -> bool:
    return not allowed.all_but and not allowed.values


def some_value(allowed: Allowed) -> str:
    """A value that a node can be given; nothing where there is none."""
    if not allowed.all_but:
        return min(allowed.values, default="")
    if allowed.least is None and allowed.most is None and allowed.values:
        return ""
    number = allowed.least if allowed.least is not None else 0 if allowed.most is None else allowed.most
    step = -1 if allowed.least is None and allowed.most is not None else 1
    while str(number) in allowed.values and abs(number) < _BEYOND_ANY:
        number += step
    return str(number) if allowed.has(str(number)) else ""


def written(alloweds: Demands) -> list[Object]:
    """As the spec of a NodeClaim has them."""
    result: list[Object] = []
    for key, allowed in sorted(alloweds.items()):
        if not allowed.all_but:
            operator = "In" if allowed.values else "DoesNotExist"
            result.append(_line(key, operator, sorted(allowed.values)))
            continue
        if allowed.least is not None:
            result.append(_line(key, "Gt", [str(allowed.least - 1)]))
        if allowed.most is not None:
            result.append(_line(key, "Lt", [str(allowed.most + 1)]))
        if allowed.values:
            result.append(_line(key, "NotIn", sorted(allowed.values)))
        elif allowed.least is None and allowed.most is None:
            result.append(_line(key, "Exists", []))
    return result


def _line(key: str, operator: str, values: list[str]) -> Object:
    return {"key": key, "operator": operator} | ({"values": values} if values else {})
