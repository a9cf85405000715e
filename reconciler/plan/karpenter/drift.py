"""NodeClaims of a NodePool that are drifted, drift after an edit, or no longer drift.

Karpenter evaluates every claim when its NodePool changes. A claim is drifted if its template hash differs from that
of its NodePool (both with the same version), or if its labels do not satisfy the requirements; both can end. Other
reasons, such as a newer image, come from the cloud provider, and no edit of a NodePool ends them. A claim that is
not launched yet is marked as soon as it is launched, so it is treated as launched. A claim that is being deleted
does not change.

After an edit the NodePool gets the hash of the new template, which `template_hash` predicts. The prediction is
trusted if it also yields the current hash of the NodePool. Otherwise (another version of Karpenter, or Karpenter has
not processed the NodePool yet), fields are compared instead: a different field drifts every claim with a hash.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import NodeClaim, NodePoolRequirement
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.karpenter.template_hash import (
    HASH_VERSION,
    HASHED_PATHS,
    field_hashes,
    read_template,
    template_hash,
)

# --- Edited fields of a NodePool that drift nodes: all fields below `template`. A changed requirement drifts only the
# nodes that no longer match.
#
# A different spelling is not an edit: order within a list, 60m for 1h, an explicit default of expireAfter. But an empty
# list or map and an absent one have different hashes.

REQUIREMENTS = "template.spec.requirements"


def which_fields(before_spec: Mapping[str, Any], after_spec: Mapping[str, Any]) -> tuple[str, ...]:
    """Sorted paths below spec of fields whose edit drifts all or some nodes."""
    before, after = _template(before_spec), _template(after_spec)
    try:
        hashes = field_hashes(before), field_hashes(after)
        required: tuple[Any, Any] = _demands(before_spec), _demands(after_spec)
    except ValueError:
        # Not a format of Karpenter 1.14: every difference counts.
        hashes = _written(before), _written(after)
        required = _at(before, "spec.requirements"), _at(after, "spec.requirements")
    paths = [f"template.{path}" for path in HASHED_PATHS if hashes[0].get(path) != hashes[1].get(path)]
    if required[0] != required[1]:
        paths.append(REQUIREMENTS)
    return tuple(sorted(paths))


def _written(template: Mapping[str, Any]) -> dict[str, Any]:
    return {path: _at(template, path) for path in HASHED_PATHS}


def _at(template: Mapping[str, Any], path: str) -> Any:
    part, key = path.split(".")
    found = template.get(part)
    return found.get(key) if isinstance(found, Mapping) else None


# --- Whether a NodeClaim satisfies the requirements of its NodePool.
#
# Karpenter compares the labels of the claim, never of its node. Requirements on one key are intersected first: to a set
# of allowed values, or to all values except some, either within bounds. A missing label is allowed only if values are
# excluded, or no value is allowed. The intersected form decides: bounds alone require the label, bounds and a NotIn
# with a value between them do not.

# Older and vendor names of labels, which Karpenter maps to the newer one on both sides; the last is AWS's.
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
_LONGEST = 256  # characters of a number: Go accepts leading zeros


class Allowed(msgspec.Struct, frozen=True, gc=False):
    """Allowed values of one label: `values`, or all but `values`; within bounds."""

    values: frozenset[str]
    all_but: bool
    least: int | None = None
    most: int | None = None

    @property
    def may_be_missing(self) -> bool:
        """Whether a claim without the label is allowed: values are excluded, or no value is allowed."""
        return self.all_but == bool(self.values)

    def has(self, value: str) -> bool:
        return (value in self.values) != self.all_but and _within(value, self.least, self.most)

    def joined(self, other: "Allowed") -> "Allowed":
        """Intersection of both."""
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
    """Allowed values by label, with the newer names of labels."""
    requirements_by_key: dict[str, Allowed] = {}
    for each in requirements:
        key, allowed = _ALIASES.get(each.key, each.key), _allowed(each)
        requirements_by_key[key] = requirements_by_key[key].joined(allowed) if key in requirements_by_key else allowed
    return requirements_by_key


def meets(labels: Mapping[str, str], demanded: Demands) -> bool:
    """Whether a claim with these labels is not drifted by them."""
    return all(_allows(allowed, _values(labels, key)) for key, allowed in demanded.items())


def _values(labels: Mapping[str, str], key: str) -> frozenset[str]:
    """Values of a label of the claim under any of its names."""
    names = (key, *(older for older, newer in _ALIASES.items() if newer == key))
    return frozenset(labels[name] for name in names if name in labels)


def _allows(allowed: Allowed, said: frozenset[str]) -> bool:
    if len(said) == 1:
        return all(allowed.has(value) for value in said)
    # Two contradicting names of one label count as no label.
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
    """The API server accepts only numbers."""
    return (_number(values[0]) if values else None) or 0


def _number(text: str) -> int | None:
    found = int(text) if len(text) <= _LONGEST and _NUMBER.fullmatch(text) else None
    return found if found is None or -_LARGEST - 1 <= found <= _LARGEST else None


def _within(value: str, least: int | None, most: int | None) -> bool:
    """Every value without bounds; only numbers with bounds."""
    if least is None and most is None:
        return True
    found = _number(value)
    return found is not None and (least is None or found >= least) and (most is None or found <= most)


DRIFTED = "Drifted"

# Drift reasons that the next evaluation of the NodePool can end.
_BY_NODE_POOL = frozenset({"NodePoolDrifted", "RequirementsDrifted"})
_OTHER_HASH = "another"  # no claim has it
_ANY_VERSION = ""


class Drift(msgspec.Struct, frozen=True):
    """Names of NodeClaims, sorted."""

    already: tuple[str, ...] = ()  # drifted now or soon, and still after the edit
    fresh: tuple[str, ...] = ()  # drifted by the edit
    undrifted: tuple[str, ...] = ()  # drifted now, and no longer after the edit
    exact: bool = True  # False: the hash could not be predicted, and fields were compared instead


class _DriftFields(msgspec.Struct, frozen=True):
    """Fields of a claim that Karpenter compares."""

    hash: str
    version: str
    demands: Demands

    def drifts(self, claim: NodeClaim) -> bool:
        return self._hash_differs(claim) or not meets(claim.metadata.labels, self.demands)

    def _hash_differs(self, claim: NodeClaim) -> bool:
        borne = claim.metadata.annotations
        if not (self.hash and borne.pool_hash and borne.pool_hash_version):
            return False
        return self.version in (borne.pool_hash_version, _ANY_VERSION) and borne.pool_hash != self.hash


def drift_of(node_pool: Unstructured, after_spec: Mapping[str, Any], claims: Sequence[NodeClaim]) -> Drift:
    """Drift of the NodePool's claims if its spec is edited to `after_spec`; claims of other NodePools are ignored."""
    foretold = _foretold(node_pool, after_spec)
    before, after = foretold or _compared(node_pool, after_spec)
    already: list[str] = []
    fresh: list[str] = []
    undrifted: list[str] = []
    for claim in claims:
        if claim.metadata.labels.get(names.KARPENTER_POOL) != node_pool.name:
            continue
        marked = claim.says(DRIFTED)
        if marked and _stays_drifted(claim):
            already.append(claim.name)
        elif claim.metadata.leaving:
            continue
        elif after.drifts(claim):
            (already if marked or before.drifts(claim) else fresh).append(claim.name)
        elif marked:
            undrifted.append(claim.name)
    return Drift(tuple(sorted(already)), tuple(sorted(fresh)), tuple(sorted(undrifted)), foretold is not None)


def _stays_drifted(claim: NodeClaim) -> bool:
    """Whether no edit ends its drift."""
    drifted = claim.condition(DRIFTED)
    return claim.metadata.leaving or (drifted is not None and drifted.reason not in _BY_NODE_POOL)


def _foretold(node_pool: Unstructured, after_spec: Mapping[str, Any]) -> tuple[_DriftFields, _DriftFields] | None:
    """Before and after, by hashes; None if they cannot be predicted."""
    bears, version = _hash_and_version(node_pool)
    try:
        if version != HASH_VERSION or template_hash(_template(node_pool.spec)) != bears:
            return None
        will_bear = template_hash(_template(after_spec))
        return _DriftFields(bears, version, _demands(node_pool.spec)), _DriftFields(
            will_bear, version, _demands(after_spec)
        )
    except ValueError:
        return None


def _compared(node_pool: Unstructured, after_spec: Mapping[str, Any]) -> tuple[_DriftFields, _DriftFields]:
    """Before and after, by fields."""
    bears, version = _hash_and_version(node_pool)
    changed = which_fields(node_pool.spec, after_spec)
    try:
        required = _demands(node_pool.spec), _demands(after_spec)
        rehashed = any(path != REQUIREMENTS for path in changed)
    except ValueError:
        # It is unknown which labels still match: any difference drifts all claims.
        required, rehashed = ({}, {}), bool(changed)
    return _DriftFields(bears, version, required[0]), _DriftFields(
        _OTHER_HASH if rehashed else bears, version, required[1]
    )


def _hash_and_version(node_pool: Unstructured) -> tuple[str, str]:
    borne = node_pool.metadata.annotations
    return borne.get(names.POOL_HASH, ""), borne.get(names.POOL_HASH_VERSION, _ANY_VERSION)


def _template(spec: Mapping[str, Any]) -> Mapping[str, Any]:
    found = spec.get("template")
    return found if isinstance(found, Mapping) else {}


def _demands(spec: Mapping[str, Any]) -> Demands:
    return demands(read_template(_template(spec)).spec.requirements or ())
