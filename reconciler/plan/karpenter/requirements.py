"""Whether a NodeClaim still is what its NodePool requires.

Karpenter compares a claim's own labels, never its node's. Requirements on one key are joined first: to a set of
values that are allowed, or to all values but some, either way within bounds. A label that is missing is fine only
where some values or all are excluded. The joined form decides, not the words: bounds alone ask for the label, bounds
and a NotIn with a value between them do not.
"""

import re
from collections.abc import Mapping, Sequence

import msgspec

from reconciler.plan.karpenter.template import NodePoolRequirement

# Older and foreign names of a label, which Karpenter takes for the newer one on both sides; the last is AWS's.
_ALIASES = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "topology.ebs.csi.aws.com/zone": "topology.kubernetes.io/zone",
}
_NUMBER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LARGEST = 2**63 - 1
_LONGEST = 256  # characters of a number: Go reads leading zeros


class Allowed(msgspec.Struct, frozen=True, gc=False):
    """The values of one label that are allowed: `values`, or all but `values`; at least and at most."""

    values: frozenset[str]
    all_but: bool
    least: int | None = None
    most: int | None = None

    @property
    def may_be_missing(self) -> bool:
        """Whether a claim without the label will do: values are excluded, or there is none that would do."""
        return self.all_but == bool(self.values)

    def has(self, value: str) -> bool:
        return (value in self.values) != self.all_but and _within(value, self.least, self.most)

    def joined(self, other: "Allowed") -> "Allowed":
        """What both allow."""
        least = max((each for each in (self.least, other.least) if each is not None), default=None)
        most = min((each for each in (self.most, other.most) if each is not None), default=None)
        if least is not None and most is not None and least > most:
            return _NOTHING
        values = frozenset(each for each in self._values_with(other) if _within(each, least, most))
        if self.all_but and other.all_but:
            return Allowed(values, all_but=True, least=least, most=most)
        return Allowed(values, all_but=False)

    def _values_with(self, other: "Allowed") -> frozenset[str]:
        if self.all_but:
            return self.values | other.values if other.all_but else other.values - self.values
        return self.values - other.values if other.all_but else self.values & other.values


_NOTHING = Allowed(frozenset(), all_but=False)
_ANYTHING = Allowed(frozenset(), all_but=True)

Demands = Mapping[str, Allowed]


def demands(requirements: Sequence[NodePoolRequirement]) -> Demands:
    """What is allowed, by label, in the newer names of labels."""
    alloweds: dict[str, Allowed] = {}
    for each in requirements:
        key, allowed = _ALIASES.get(each.key, each.key), _allowed(each)
        alloweds[key] = alloweds[key].joined(allowed) if key in alloweds else allowed
    return alloweds


def meets(labels: Mapping[str, str], demanded: Demands) -> bool:
    """Whether a claim with these labels is not drifted by them."""
    return all(_allows(allowed, _values(labels, key)) for key, allowed in demanded.items())


def _values(labels: Mapping[str, str], key: str) -> frozenset[str]:
    """What a claim says of a label under any of its names."""
    names = (key, *(older for older, newer in _ALIASES.items() if newer == key))
    return frozenset(labels[name] for name in names if name in labels)


def _allows(allowed: Allowed, said: frozenset[str]) -> bool:
    if len(said) == 1:
        return all(allowed.has(value) for value in said)
    # Two names of one label that contradict each other are as good as no label at all.
    return allowed.may_be_missing


def _allowed(requirement: NodePoolRequirement) -> Allowed:
    values = frozenset(requirement.values)
    bound = _bound(requirement.values)
    match requirement.operator:
        case "In":
            return Allowed(values, all_but=False)
        case "NotIn":
            return Allowed(values, all_but=True)
        case "DoesNotExist":
            return _NOTHING
        case "Gt":
            return _NOTHING if bound == _LARGEST else Allowed(frozenset(), all_but=True, least=bound + 1)
        case "Gte":
            return Allowed(frozenset(), all_but=True, least=bound)
        case "Lt":
            return Allowed(frozenset(), all_but=True, most=bound - 1)
        case "Lte":
            return Allowed(frozenset(), all_but=True, most=bound)
    return _ANYTHING


def _bound(values: Sequence[str]) -> int:
    """The API server lets only numbers through."""
    return (_number(values[0]) if values else None) or 0


def _number(text: str) -> int | None:
    found = int(text) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None
    return found if found is None or -_LARGEST - 1 <= found <= _LARGEST else None


def _within(value: str, least: int | None, most: int | None) -> bool:
    """Without bounds anything is; with them, only numbers are."""
    if least is None and most is None:
        return True
    found = _number(value)
    return found is not None and (least is None or found >= least) and (most is None or found <= most)
