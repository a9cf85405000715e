"""Decision for one manifest: create, update, adopt, or hold."""

from collections.abc import Iterator
from typing import Any

import msgspec

from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Manifest
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import Apply, CodeFacts, Decision, Hold, Label, Preconditions, Reason, Ref, node_ref
from reconciler.plan.draft import Verdict
from reconciler.plan.karpenter.drift import Drift, drift_of, which_fields
from reconciler.plan.manifests import reasons
from reconciler.plan.manifests.compare import Comparison, Tree, compare, fixed_fields, owned_by_us
from reconciler.plan.manifests.context import NODE_POOL, ManifestContext
from reconciler.plan.manifests.reasons import (
    PLANNER,
    Adopted,
    AdoptedByForce,
    AdoptionWouldDrift,
    FieldFixed,
    ImpactUnread,
    NodeLabel,
    NodeLacksLabels,
)
from reconciler.plan.manifests.wanted_manifest import WantedManifest, ref_of, wish_of

_NOTHING = Verdict()


class _Edit(msgspec.Struct, frozen=True):
    """One of our objects that differs from its manifest."""

    wish: WantedManifest
    live: Unstructured
    subject: Ref
    comparison: Comparison


def ensure(context: ManifestContext, manifest: Manifest) -> Verdict:
    """Decisions for one manifest; none if the object matches."""
    live = context.objects.get((manifest.kind, manifest.namespace, manifest.name))
    verdict = _decided(context, manifest, live)
    if live is None or live.kind != NODE_POOL or verdict.consequences:
        return verdict
    return msgspec.structs.replace(verdict, consequences=context.current_consequences(live, manifest.pool))


def _decided(context: ManifestContext, manifest: Manifest, live: Unstructured | None) -> Verdict:
    if live is not None and _is_kept_elsewhere(context, manifest, live):
        return _NOTHING
    if why := _in_the_way(context, manifest, live):
        return _held(manifest, live, why)
    if live is None:
        reason = Reason(reasons.Missing(object=ref_of(manifest, live)), manifest.origin)
        apply = Apply(manifest=wish_of(manifest, live, context.environment).text, presumes=Preconditions(absent=True))
        return Verdict((Decision(reasons.PLANNER, ref_of(manifest, live), apply, reason, manifest.pool),))
    if not live.is_ours:
        return adopt(context, manifest, live)
    wish = wish_of(manifest, live, context.environment)
    edited = _NOTHING if is_settled(live, wish.body) else _edited(context, wish, live)
    if not wish.node_labels:
        return edited
    lacking = tuple(labels(context, wish, ref_of(manifest, live)))
    return msgspec.structs.replace(edited, decisions=(*edited.decisions, *lacking)) if lacking else edited


def _is_kept_elsewhere(context: ManifestContext, manifest: Manifest, live: Unstructured) -> bool:
    """Shared objects are for the pools of all environments: the environment that created one maintains it for the
    others."""
    return not manifest.pool and live.is_ours and bool(context.other_environment(live))


def _in_the_way(context: ManifestContext, manifest: Manifest, live: Unstructured | None) -> Reason | None:
    """The first reason that prevents any further evaluation."""
    facts = _facts_in_the_way(context, manifest, live)
    return Reason(facts, manifest.origin) if facts is not None else None


def _facts_in_the_way(context: ManifestContext, manifest: Manifest, live: Unstructured | None) -> CodeFacts | None:
    subject, pool = ref_of(manifest, live), context.pools.get(manifest.pool)
    if why := context.why_unread(manifest.kind):
        return reasons.KindUnread(object=subject, why=why)
    if live is None:
        return _no_place(context, manifest, subject)
    if live.metadata.deletion_timestamp:
        return reasons.BeingDeleted(object=subject)
    if other := context.other_environment(live):
        return reasons.OwnedByOther(object=subject, environment=other)
    if not live.is_ours and not (pool and pool.spec.adopt):
        if not manifest.pool:
            return reasons.NotOursForAll(object=subject)
        return reasons.NotOurs(object=subject, pool=manifest.pool)
    return None


def _no_place(context: ManifestContext, manifest: Manifest, subject: Ref) -> CodeFacts | None:
    """Why an absent object cannot be created."""
    if context.is_absent(manifest.kind):
        return reasons.KindAbsent(object=subject, kind=manifest.kind)
    if context.is_taken((manifest.kind, manifest.namespace, manifest.name)):
        return reasons.NameTaken(object=subject)
    return None


def _edited(context: ManifestContext, wish: WantedManifest, live: Unstructured) -> Verdict:
    comparison = compare(live, wish.body)
    if not comparison.changes:
        return _NOTHING
    edit = _Edit(wish, live, ref_of(wish.manifest, live), comparison)
    if why := _refused(edit):
        return _held(wish.manifest, live, why)
    paths = comparison.paths
    if live.kind != NODE_POOL:
        in_place = reasons.EditedInPlace(object=edit.subject, paths=paths)
        return _applied(edit, Reason(in_place, wish.manifest.origin))
    if not which_fields(live.spec, comparison.spec):
        follows = context.current_consequences(live, wish.manifest.pool, comparison.spec)
        return _applied(edit, _in_place(edit, follows), follows)
    if why_unread := context.why_fleet_unread:
        unread = reasons.ImpactUnread(object=edit.subject, paths=paths, why=why_unread)
        return _held(wish.manifest, live, Reason(unread, wish.manifest.origin))
    drift = drift_of(live, comparison.spec, context.fleet.claims_of(live.name))
    consequences = context.fates(live, comparison.spec, drift, wish.manifest.pool)
    return _applied(edit, _by_drift(context, edit, drift, consequences), consequences)


def _refused(edit: _Edit) -> Reason | None:
    """Why the API server would refuse the edit."""
    subject, origin, comparison = edit.subject, edit.wish.manifest.origin, edit.comparison
    if fixed := fixed_fields(edit.live.kind, comparison.paths):
        return Reason(reasons.FieldFixed(object=subject, paths=fixed), origin)
    if comparison.foreign and not _may_force(edit):
        facts = reasons.FieldConflict(object=subject, managers=comparison.managers, paths=comparison.contested)
        return Reason(facts, origin)
    return None


def _may_force(edit: _Edit) -> bool:
    """Whether every conflicting field is shared with the manager from before the adoption."""
    return edit.wish.adopted and all(each.shared for each in edit.comparison.foreign)


def _in_place(edit: _Edit, follows: tuple[Consequence, ...]) -> Reason:
    subject, paths, origin = edit.subject, edit.comparison.paths, edit.wish.manifest.origin
    opened = [each for each in follows if each.cause == "change"]
    if not opened:
        return Reason(reasons.EditedInPlace(object=subject, paths=paths), origin)
    nodes, gpus = sum(len(each.nodes) for each in opened), sum(each.gpus for each in opened)
    return Reason(reasons.EditedOpening(object=subject, paths=paths, nodes=nodes, gpus=gpus), origin)


def _by_drift(context: ManifestContext, edit: _Edit, drift: Drift, consequences: tuple[Consequence, ...]) -> Reason:
    nodes, gpus = len(context.fleet.claims_of(edit.live.name)), _gpus_drifting(consequences)
    return Reason(_drift_facts(edit, drift, nodes, gpus), edit.wish.manifest.origin)


def _gpus_drifting(consequences: tuple[Consequence, ...]) -> int:
    return sum(each.gpus for each in consequences if each.cause == "change" and each.fate != "undrifted")


def _drift_facts(edit: _Edit, drift: Drift, nodes: int, gpus: int) -> CodeFacts:
    subject, paths, drifted = edit.subject, edit.comparison.paths, len(drift.fresh)
    if drifted and drifted == nodes:
        return reasons.EditDriftsAll(object=subject, paths=paths, nodes=nodes, gpus=gpus)
    if drifted:
        return reasons.EditDriftsSome(object=subject, paths=paths, drifted=drifted, nodes=nodes, gpus=gpus)
    if drift.undrifted:
        return reasons.EditEndsDrift(object=subject, paths=paths, undrifted=len(drift.undrifted), nodes=nodes)
    if nodes:
        return reasons.EditedForNewNodes(object=subject, paths=paths, nodes=nodes)
    return reasons.EditedBeforeNodes(object=subject, paths=paths)


def _applied(edit: _Edit, reason: Reason, consequences: tuple[Consequence, ...] = ()) -> Verdict:
    apply = Apply(
        manifest=edit.wish.text,
        force=bool(edit.comparison.foreign),
        presumes=Preconditions(resource_version=edit.live.metadata.resource_version),
    )
    decision = Decision(reasons.PLANNER, edit.subject, apply, reason, edit.wish.manifest.pool)
    return Verdict((decision,), consequences)


def _held(manifest: Manifest, live: Unstructured | None, why: Reason) -> Verdict:
    return Verdict((Decision(reasons.PLANNER, ref_of(manifest, live), Hold(), why, manifest.pool),))


# --- Adoption on request: only if no node of the NodePool drifts.
#
# An adopted object keeps its former manager beside us, with the same values. The API server would refuse later edits of
# such shared fields as conflicts; therefore fields shared with us in adopted objects are edited by force. A field that
# the former manager has changed since belongs to it alone, and is not taken over.


def adopt(context: ManifestContext, manifest: Manifest, live: Unstructured) -> Verdict:
    """Adopts the object, or returns the reason against it."""
    wish = wish_of(manifest, live, context.environment, adopting=True)
    comparison = compare(live, wish.body)
    subject = ref_of(manifest, live)
    if why := _why_not(context, manifest, live, comparison):
        return Verdict((Decision(PLANNER, subject, Hold(), why, manifest.pool),))
    apply = Apply(
        manifest=wish.text,
        force=bool(comparison.foreign),
        presumes=Preconditions(resource_version=live.metadata.resource_version),
    )
    taken = Decision(PLANNER, subject, apply, _reason(subject, manifest, comparison), manifest.pool)
    follows = context.current_consequences(live, manifest.pool, comparison.spec) if live.kind == NODE_POOL else ()
    return Verdict((taken, *labels(context, wish, subject, after=(subject,))), follows)


def labels(
    context: ManifestContext, wish: WantedManifest, node_pool: Ref, after: tuple[Ref, ...] = ()
) -> Iterator[Decision]:
    """Sets missing labels on each node."""
    if not wish.node_labels:
        return
    for node in context.fleet.nodes_of(node_pool.name):
        borne = node.metadata.labels
        lacking = tuple((key, value) for key, value in wish.node_labels.items() if borne.get(key) != value)
        if lacking and not node.metadata.leaving:
            # Precondition is the uid only: a kubelet updates its node every few minutes.
            act = Label(labels=lacking)
            node_labels = tuple(NodeLabel(key, value) for key, value in lacking)
            reason = Reason(NodeLacksLabels(node=node.name, labels=node_labels, object=node_pool), wish.manifest.origin)
            yield Decision(PLANNER, node_ref(node), act, reason, wish.manifest.pool, after=after)


def _why_not(context: ManifestContext, manifest: Manifest, live: Unstructured, comparison: Comparison) -> Reason | None:
    subject, origin = ref_of(manifest, live), manifest.origin
    if fixed := fixed_fields(live.kind, comparison.paths):
        return Reason(FieldFixed(object=subject, paths=fixed), origin)
    changed = which_fields(live.spec, comparison.spec) if live.kind == NODE_POOL else ()
    if not changed:
        return None
    paths = tuple(f"spec.{path}" for path in changed)
    if why := context.why_fleet_unread:
        return Reason(ImpactUnread(object=subject, paths=paths, why=why), origin)
    claims = context.fleet.claims_of(live.name)
    drifted = drift_of(live, comparison.spec, claims).fresh
    if not drifted:
        return None
    return Reason(AdoptionWouldDrift(object=subject, paths=paths, drifted=len(drifted), nodes=len(claims)), origin)


def _reason(subject: Ref, manifest: Manifest, comparison: Comparison) -> Reason:
    if not comparison.foreign:
        return Reason(Adopted(object=subject), manifest.origin)
    facts = AdoptedByForce(object=subject, managers=comparison.managers, paths=comparison.contested)
    return Reason(facts, manifest.origin)


# --- Fast check that an object matches its manifest, without building objects, for the common case.

_APART = frozenset({"apiVersion", "kind", "metadata"})


def is_settled(live: Unstructured, desired: dict[str, Any]) -> bool:
    """True is certain: all desired values are set, and no others by us. False means that a comparison is needed."""
    ours = owned_by_us(live)
    if ours is None:
        return False
    wished, set_by_us = desired["metadata"], ours.get("f:metadata", {})
    for field, texts in (("labels", live.metadata.labels), ("annotations", live.metadata.annotations)):
        named = wished.get(field, {})
        if any(texts.get(key) != value for key, value in named.items()):
            return False
        if not all(key[2:] in named or key == "." for key in set_by_us.get(f"f:{field}", ())):
            return False
    if any(key[2:] not in desired for key in ours):
        return False
    return all(
        _stands(live.rest.get(name), value, ours.get(f"f:{name}"))
        for name, value in desired.items()
        if name not in _APART
    )


def _stands(live: Any, wished: Any, ours: Tree | None) -> bool:
    # Without own parts, the server may treat it as one value: it must be equal.
    if not ours or not isinstance(wished, dict) or not isinstance(live, dict):
        return bool(live == wished)
    for key, value in wished.items():
        found = live.get(key)
        if found != value and not (isinstance(value, dict) and _stands(found, value, ours.get(f"f:{key}"))):
            return False
    return all(key[2:] in wished or key == "." for key in ours)
