"""Invariants that every plan must satisfy. A plan that breaks an invariant is a bug of reconciler: the whole plan is
refused, and the cycle stops.
"""

from collections.abc import Iterator

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.manifest_rules import why_not_applied
from reconciler.model.parsers import why_no_object
from reconciler.model.plan.decision import Apply, Delete, Hold, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.feature.invariant import Acted, Invariant, InvariantInput
from reconciler.plan.features import FEATURES
from reconciler.plan.guards.admission import is_blind
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.guards.ledger import DisruptionLedger, key_of
from reconciler.plan.guards.observing import is_report_only
from reconciler.plan.guards.removals import GuardContext, taken
from reconciler.plan.guards.set_aside import SetAsides
from reconciler.plan.nodes.ownership import why_opted_out, why_untouchable

# A node or a NodePool can be judged unused only if all of these kinds were read.
_USE = frozenset({"nodes", "pods", "nodeclaims.karpenter.sh"})
# Kinds that an action may be on: the observed kinds, and ConfigMaps, which hold statuses.
KINDS = frozenset(each.kind for each in RESOURCE_KINDS) | {"ConfigMap"}
_LENDING = "leases.coordination.k8s.io"  # a Lease may lend GPUs of a node to a claim that no pod on the node shows


class BrokenInvariant(Exception):
    """Message: one line for each broken invariant and the decision that breaks the invariant."""


def check(inputs: Inputs, fleet: Fleet, plan: Plan) -> None:
    """Raise BrokenInvariant with all broken invariants, or return."""
    acted = [Acted(each, each.act) for each in plan.decisions if not isinstance(each.act, Hold)]
    case = InvariantInput(inputs, fleet, tuple(acted), plan)
    broken = [f"{each.sentence}: broken by {text}" for each in INVARIANTS for text in _violations(each, case)]
    if broken:
        raise BrokenInvariant("\n".join(broken))


def _violations(invariant: Invariant, case: InvariantInput) -> Iterator[str]:
    """Decisions that break an invariant. An invariant that raises counts as broken."""
    try:
        yield from invariant.broken_by(case)
    except Exception as error:  # noqa: BLE001 - the plan is unsafe while an invariant is unchecked
        yield f"an unknown decision, as the check raised {type(error).__name__}: {error}"


def _of_set_aside(case: InvariantInput) -> Iterator[str]:
    aside = SetAsides(case.inputs, case.fleet)
    yield from (each.title for each in case.acted if any(map(aside.is_set_aside, each.decision.refs)))


def _twice(case: InvariantInput) -> Iterator[str]:
    first: dict[Ref, str] = {}
    for each in case.acted:
        subject = each.decision.subject
        if subject in first:
            yield f"{first[subject]} and {each.title}"
        first[subject] = each.title


def _on_nodes_others_remove(case: InvariantInput) -> Iterator[str]:
    leaving = {each.name for each in case.inputs.observed.node_pools if each.metadata.deletion_timestamp}
    for each in case.acted:
        subject = each.decision.subject
        if why_untouchable(case.fleet, each.decision) or (subject.kind == "NodePool" and subject.name in leaving):
            yield each.title


def _on_opted_out_nodes(case: InvariantInput) -> Iterator[str]:
    stage = GuardContext(case.fleet, case.inputs)
    for each in case.acted:
        if why_opted_out(case.fleet, each.decision, case.inputs.now) and any(taken(stage, each.decision)):
            yield each.title


def _deleted_unseen(case: InvariantInput) -> Iterator[str]:
    unread = {each.kind for each in case.inputs.observed.unread}
    for each in case.acted:
        missing = unread & _needed(each.decision.subject.kind)
        if isinstance(each.act, Delete) and missing:
            yield f"{each.title}, although {', '.join(sorted(missing))} could not be read"


def _in_observe_mode(case: InvariantInput) -> Iterator[str]:
    for each in case.acted:
        if is_report_only(case.inputs, each.decision) and not each.decision.would:
            yield f"{each.title} of GpuPool/{each.decision.pool}"


def _of_others(case: InvariantInput) -> Iterator[str]:
    """Actions on nodes of unowned NodePools, undeclared pools included. A node action may follow the adoption of its
    NodePool in the same plan.
    """
    unowned, acted = case.inputs.unowned_node_pools, {each.decision.subject for each in case.acted}
    for each in case.acted:
        subject, node = each.decision.subject, case.fleet.node(each.decision.subject.name)
        pool = node.metadata.labels.get(names.KARPENTER_POOL, "") if node and subject.kind == "Node" else ""
        follows = any(ref.kind == "NodePool" and ref in acted for ref in each.decision.after)
        if pool in unowned and not each.decision.would and not follows:
            yield f"{each.title} of NodePool/{pool}"


def _blind(case: InvariantInput) -> Iterator[str]:
    for each in case.acted:
        if is_blind(each.decision):
            yield each.title


def _of_another_pool(case: InvariantInput) -> Iterator[str]:
    for each in case.acted:
        subject = each.decision.subject
        node = case.fleet.node(subject.name) if subject.kind == "Node" else None
        if node and node.pool != each.decision.pool:
            yield f"{each.title}, which belongs to {node.pool or 'no pool'}, for {each.decision.pool or 'no pool'}"


def _frozen(case: InvariantInput) -> Iterator[str]:
    freezes = Freezes(case.inputs, case.fleet)
    yield from (each.title for each in case.acted if freezes.why_still(each.decision, frozenset()))


def _uncounted(case: InvariantInput) -> Iterator[str]:
    guarded = {pool for each in case.inputs.desired.guards if not each.spec.suspend for pool in each.spec.pool_names}
    if not guarded:
        return
    stage = GuardContext(case.fleet, case.inputs, case.plan.consequences)
    ledger = DisruptionLedger(stage, case.plan.memory.marks, frozenset())
    remembered = {key_of(mark) for mark in ledger.marks}
    for each in case.acted:
        for one in () if each.decision.would else taken(stage, each.decision):
            covered = not one.weighs or (one.node and any(mark.name == one.node for mark in ledger.marks))
            if guarded & {"*", one.mark.pool} and not covered and ledger.key(one.mark) not in remembered:
                yield f"{each.title}, which disrupts {one.mark.kind}/{one.mark.name}"


def _never_yielded(case: InvariantInput) -> Iterator[str]:
    for each in case.acted:
        if isinstance(each.act, Apply) and (why := why_not_applied(each.act.manifest)):
            yield f"{each.title}: {why}"


def _unnameable(case: InvariantInput) -> Iterator[str]:
    for each in case.acted:
        for ref in each.decision.refs:
            if ref.kind not in KINDS or why_no_object(ref.kind, ref.namespace, ref.name):
                yield f"{each.decision.planner} on {ref.title!a}"


def _applied_elsewhere(case: InvariantInput) -> Iterator[str]:
    for each in case.acted:
        if isinstance(each.act, Apply) and (why := why_not_its_own(each.decision.subject, each.act.manifest)):
            yield f"{each.title}: {why}"


def why_not_its_own(ref: Ref, manifest: str) -> str:
    """Why a manifest describes another object than `ref`; empty if the manifest describes `ref`."""
    try:
        body = msgspec.json.decode(manifest, type=_Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return f"the manifest of {ref.title!a} can't be read"
    found = Ref(body.kind, body.metadata.namespace or "", body.metadata.name)
    if (found.kind, found.namespace, found.name) != (ref.kind, ref.namespace, ref.name):
        return f"the manifest of {ref.title!a} describes {found.title!a}"
    return ""


class _ManifestMetadata(msgspec.Struct):
    name: str
    namespace: str | None = None


class _Manifest(msgspec.Struct):
    kind: str
    metadata: _ManifestMetadata


# Invariants of the actions of all features. Each feature declares its own besides.
SHARED = (
    Invariant("each action is on an object with a valid name, of a kind that reconciler writes", _unnameable),
    Invariant("a manifest is applied to the object that the manifest describes", _applied_elsewhere),
    Invariant("only manifests that a template may render are applied", _never_yielded),
    Invariant("at most one action for each subject", _twice),
    Invariant("no action on a subject that another controller or a person is removing", _on_nodes_others_remove),
    Invariant("no node that opts out of removal is drained or deleted", _on_opted_out_nodes),
    Invariant("no object is deleted after a partial read", _deleted_unseen),
    Invariant("each action for a pool in Observe mode is marked as report-only", _in_observe_mode),
    Invariant("no action on a node of a NodePool that reconciler neither created nor adopted", _of_others),
    Invariant("each write has a precondition that the API server checks", _blind),
    Invariant("no action on a frozen or suspended object", _frozen),
    Invariant("each disruption that a guard counts is recorded before it happens", _uncounted),
    Invariant("a decision about a node is for the pool of that node", _of_another_pool),
    Invariant("no action on an object that is set aside", _of_set_aside),
)
INVARIANTS = (*SHARED, *(each for feature in FEATURES for each in feature.invariants))


def _needed(kind: str) -> frozenset[str]:
    """Kinds that must have been read completely before an object of `kind` is deleted."""
    own = {each.title for each in RESOURCE_KINDS if each.kind == kind}
    if kind == "Node":
        return _USE | own | {_LENDING}
    return _USE | own if kind == "NodePool" else frozenset(own)
