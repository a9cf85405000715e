"""Which NodeClaims of a NodePool are drifted, would be by an edit, or would no longer be.

Karpenter judges every claim again whenever its NodePool changes. A claim is drifted when it bears another hash of the
template than its NodePool (both of the same version), or when its labels are not what the NodePool requires; both
can end as they began. Other reasons, such as a newer image, are the cloud's, and no edit of a NodePool ends them. A
claim that is not launched yet is not marked before it is, but then at once: it counts as if it were launched. One that
is being deleted stays as it is.

After an edit the NodePool bears the hash of the new template, which `template_hash` foretells. That it can is seen by
the hash that the NodePool bears now. Where it can't (another version of Karpenter, or Karpenter has not yet seen the
NodePool as it stands), fields are compared instead: one that differs drifts every claim that bears a hash.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.plan.karpenter.edits import REQUIREMENTS, which_fields
from reconciler.plan.karpenter.requirements import Demands, demands, meets
from reconciler.plan.karpenter.template import read_template
from reconciler.plan.karpenter.template_hash import HASH_VERSION, template_hash

DRIFTED = "Drifted"

# Reasons that the next look at the NodePool can end.
_BY_NODE_POOL = frozenset({"NodePoolDrifted", "RequirementsDrifted"})
_OTHER_HASH = "another"  # no claim bears it
_ANY_VERSION = ""


class Drift(msgspec.Struct, frozen=True):
    """Names of NodeClaims, sorted."""

    already: tuple[str, ...] = ()  # drifted now or about to be, and still after the edit
    fresh: tuple[str, ...] = ()  # by the edit
    undrifted: tuple[str, ...] = ()  # drifted now, and no longer after the edit
    exact: bool = True  # False: the hash could not be foretold, and fields were compared instead


class _DriftFields(msgspec.Struct, frozen=True):
    """What Karpenter goes by when it looks at a claim."""

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
    """What becomes of the NodePool's claims when its spec is edited to `after_spec`; others' are passed over."""
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
    """Before and after, by hashes; None where they can't be foretold."""
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
        # Nobody can say which labels still match: then any difference is one that drifts all.
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
