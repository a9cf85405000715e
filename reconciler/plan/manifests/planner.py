"""Creates and updates rendered objects, one manifest at a time, and then prunes objects without a manifest."""

import json
from collections.abc import Iterator, Set
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Manifest
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import (
    Apply,
    CodeFacts,
    Decision,
    Delete,
    Hold,
    Label,
    Preconditions,
    Reason,
    Ref,
    node_ref,
)
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.karpenter.drift import Drift, drift_of, which_fields
from reconciler.plan.manifests import reasons
from reconciler.plan.manifests.compare import HEAD, Comparison, Tree, compare, fixed_fields, owned_by_us
from reconciler.plan.manifests.context import NODE_POOL, Key, ManifestContext
from reconciler.plan.manifests.wanted_manifest import WantedManifest, ref_of, wish_of


def manifests(inputs: Inputs, draft: Draft) -> Verdict:
    """No decision for objects that match; that costs one walk over each manifest."""
    context = ManifestContext(inputs, draft.fleet)
    verdicts = []
    for each in sorted(inputs.desired.manifests, key=_key):
        if each.pool not in draft.left_out:
            with planning_for(each.pool):
                verdicts.append(ensure(context, each))
    verdicts += prune(context, draft.left_out)
    return Verdict(
        tuple(decision for each in verdicts for decision in each.decisions),
        tuple(consequence for each in verdicts for consequence in each.consequences),
    )


def _key(manifest: Manifest) -> Key:
    return manifest.kind, manifest.namespace, manifest.name


# --- Decision for one manifest: create, update, adopt, or hold.

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
    if obstacle := _why_in_the_way(context, manifest, live):
        return _held(manifest, live, obstacle)
    if live is None:
        apply = Apply(manifest=wish_of(manifest, live, context.environment).text, presumes=Preconditions(absent=True))
        return Verdict((_decision(manifest, live, apply, reasons.Missing(object=ref_of(manifest, live))),))
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


def _why_in_the_way(context: ManifestContext, manifest: Manifest, live: Unstructured | None) -> CodeFacts | None:
    """The first obstacle to any further evaluation."""
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
    if refusal := _why_refused(edit):
        return _held(wish.manifest, live, refusal)
    paths = comparison.paths
    if live.kind != NODE_POOL:
        return _applied(edit, reasons.EditedInPlace(object=edit.subject, paths=paths))
    if not which_fields(live.spec, comparison.spec):
        follows = context.current_consequences(live, wish.manifest.pool, comparison.spec)
        return _applied(edit, _in_place(edit, follows), follows)
    if why_unread := context.why_fleet_unread:
        return _held(wish.manifest, live, reasons.ImpactUnread(object=edit.subject, paths=paths, why=why_unread))
    claims = context.fleet.claims_of(live.name)
    drift = drift_of(live, comparison.spec, claims)
    consequences = context.fates(live, comparison.spec, drift, wish.manifest.pool)
    gpus = sum(each.gpus for each in consequences if each.cause == "change" and each.fate != "undrifted")
    return _applied(edit, _by_drift(edit, drift, len(claims), gpus), consequences)


def _why_refused(edit: _Edit) -> CodeFacts | None:
    """Why the API server would refuse the edit."""
    subject, comparison = edit.subject, edit.comparison
    if fixed := fixed_fields(edit.live.kind, comparison.paths):
        return reasons.FieldFixed(object=subject, paths=fixed)
    if comparison.foreign and not _may_force(edit):
        return reasons.FieldConflict(object=subject, managers=comparison.managers, paths=comparison.contested)
    return None


def _may_force(edit: _Edit) -> bool:
    """Whether every conflicting field is shared with the manager from before the adoption."""
    return edit.wish.adopted and all(each.shared for each in edit.comparison.foreign)


def _in_place(edit: _Edit, follows: tuple[Consequence, ...]) -> CodeFacts:
    subject, paths = edit.subject, edit.comparison.paths
    opened = [each for each in follows if each.cause == "change"]
    if not opened:
        return reasons.EditedInPlace(object=subject, paths=paths)
    nodes, gpus = sum(len(each.nodes) for each in opened), sum(each.gpus for each in opened)
    return reasons.EditedOpening(object=subject, paths=paths, nodes=nodes, gpus=gpus)


def _by_drift(edit: _Edit, drift: Drift, nodes: int, gpus: int) -> CodeFacts:
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


def _applied(edit: _Edit, facts: CodeFacts, consequences: tuple[Consequence, ...] = ()) -> Verdict:
    apply = _apply(edit.wish, edit.live, edit.comparison)
    return Verdict((_decision(edit.wish.manifest, edit.live, apply, facts),), consequences)


def _apply(wish: WantedManifest, live: Unstructured, comparison: Comparison) -> Apply:
    presumes = Preconditions(resource_version=live.metadata.resource_version)
    return Apply(manifest=wish.text, force=bool(comparison.foreign), presumes=presumes)


def _held(manifest: Manifest, live: Unstructured | None, facts: CodeFacts) -> Verdict:
    return Verdict((_decision(manifest, live, Hold(), facts),))


def _decision(manifest: Manifest, live: Unstructured | None, act: Apply | Hold, facts: CodeFacts) -> Decision:
    reason = Reason(facts, manifest.origin)
    return Decision(reasons.PLANNER, ref_of(manifest, live), act, reason, manifest.pool)


# --- Adoption on request: only if no node of the NodePool drifts.
#
# An adopted object keeps its former manager beside us, with the same values. The API server would refuse later edits of
# such shared fields as conflicts; therefore fields shared with us in adopted objects are edited by force. A field that
# the former manager has changed since belongs to it alone, and is not taken over.


def adopt(context: ManifestContext, manifest: Manifest, live: Unstructured) -> Verdict:
    """Adopts the object, or returns the reason against it."""
    wish = wish_of(manifest, live, context.environment, adopting=True)
    comparison = compare(live, wish.body)
    if obstacle := _why_not_adopted(context, manifest, live, comparison):
        return _held(manifest, live, obstacle)
    subject = ref_of(manifest, live)
    facts: CodeFacts = reasons.Adopted(object=subject)
    if comparison.foreign:
        facts = reasons.AdoptedByForce(object=subject, managers=comparison.managers, paths=comparison.contested)
    adopted = _decision(manifest, live, _apply(wish, live, comparison), facts)
    follows = context.current_consequences(live, manifest.pool, comparison.spec) if live.kind == NODE_POOL else ()
    return Verdict((adopted, *labels(context, wish, subject, after=(subject,))), follows)


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
            node_labels = tuple(reasons.NodeLabel(key, value) for key, value in lacking)
            facts = reasons.NodeLacksLabels(node=node.name, labels=node_labels, object=node_pool)
            reason = Reason(facts, wish.manifest.origin)
            yield Decision(reasons.PLANNER, node_ref(node), act, reason, wish.manifest.pool, after=after)


def _why_not_adopted(
    context: ManifestContext, manifest: Manifest, live: Unstructured, comparison: Comparison
) -> CodeFacts | None:
    subject = ref_of(manifest, live)
    if fixed := fixed_fields(live.kind, comparison.paths):
        return reasons.FieldFixed(object=subject, paths=fixed)
    changed = which_fields(live.spec, comparison.spec) if live.kind == NODE_POOL else ()
    if not changed:
        return None
    paths = tuple(f"spec.{path}" for path in changed)
    if why := context.why_fleet_unread:
        return reasons.ImpactUnread(object=subject, paths=paths, why=why)
    claims = context.fleet.claims_of(live.name)
    drifted = len(drift_of(live, comparison.spec, claims).fresh)
    facts = reasons.AdoptionWouldDrift(object=subject, paths=paths, drifted=drifted, nodes=len(claims))
    return facts if drifted else None


# --- Fast check that an object matches its manifest, without building objects, for the common case.


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
        if name not in HEAD
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


# --- Pruning: our objects without a manifest stay until a person allows their deletion by title, and are deleted only
# if the effect is known.
#
# A ChangeApproval allows the deletion, or `--prune` of the planning command.
#
# Labels on the objects identify ours, so no other record is needed. An annotation names the environment that owns an
# object: objects of other environments are never pruned or reported. Objects without the annotation, applied before it
# existed, may belong to any environment: they are reported, and a person may allow their deletion.
#
# In namespaces of tenants our labels prove nothing: an object there is reported, and blocks no pipeline.
#
# Without any desired object nothing is pruned, even with consent: a folder that was not mounted, a branch that was not
# checked out and an intentionally empty bundle look the same, and the consent may have been in a pipeline for long.


def prune(context: ManifestContext, left_out: Set[str]) -> Iterator[Verdict]:
    """Decisions for each object of the inventory without a manifest, in order; `left_out` pools are skipped."""
    wished = {(each.kind, each.namespace, each.name) for each in context.inputs.desired.manifests}
    for key in sorted(context.objects.keys() - wished):
        live = context.objects[key]
        if live.is_ours and not context.other_environment(live) and not _is_needed(context, live):
            pool = live.metadata.labels.get(names.POOL, "")
            if pool not in left_out:
                with planning_for(pool):
                    orphan = _orphan(context, live)
                yield orphan


def _is_needed(context: ManifestContext, live: Unstructured) -> bool:
    """Whether the object may not be deleted although it has no manifest: a smart pod, which its creator deletes, or the
    PriorityClass of smart pods while a suspended pool or a pod uses it."""
    if live.kind == "Pod":
        return names.COMPONENT in live.metadata.labels
    if (live.kind, live.name) != ("PriorityClass", names.SMART_PODS_PRIORITY):
        return False
    if any(pool.spec.mode == "Enforce" for pool in context.pools.values()) or context.inputs.observed.why_unread(
        "pods"
    ):
        return True
    users = (each for each in context.inputs.observed.pods if each.spec.priority_class_name == live.name)
    return any(not each.is_finished for each in users)


def _orphan(context: ManifestContext, live: Unstructured) -> Verdict:
    subject = Ref(live.kind, live.metadata.namespace, live.name, live.metadata.uid)
    pool = live.metadata.labels.get(names.POOL, "")
    if obstacle := _why_not_pruned(context, live, subject):
        return Verdict((_orphan_held(subject, obstacle, pool),))
    takes = context.fates(live, None, Drift(), pool) if live.kind == NODE_POOL else ()
    lost = _lost(takes) if live.kind == NODE_POOL else None
    if agreed := context.approvals.losses.get(subject.title, ""):
        delete = Delete(presumes=Preconditions(resource_version=live.metadata.resource_version))
        pruned: CodeFacts = reasons.ObjectPruned(object=subject, by=agreed)
        if lost is not None:
            pruned = reasons.NodePoolPruned(object=subject, by=agreed, **lost)
        return Verdict((Decision(reasons.PLANNER, subject, delete, Reason(pruned), pool),), takes)
    return Verdict((_orphan_held(subject, _why_kept(context, live, subject, lost), pool),))


def _orphan_held(subject: Ref, facts: CodeFacts, pool: str) -> Decision:
    return Decision(reasons.PLANNER, subject, Hold(), Reason(facts), pool)


def _why_kept(context: ManifestContext, live: Unstructured, subject: Ref, lost: dict[str, int] | None) -> CodeFacts:
    """Why the object stays until a person allows its deletion. `lost`: what goes with a NodePool."""
    environment = context.environment
    if live.metadata.namespace not in context.own_namespaces:
        return reasons.ObjectOnlyLabelled(object=subject)
    if names.ENVIRONMENT in live.metadata.annotations:
        if lost is None:
            return reasons.ObjectNotDeclared(object=subject)
        return reasons.NodePoolNotDeclared(object=subject, **lost)
    if lost is None:
        return reasons.ObjectUnclaimed(environment=environment, object=subject)
    return reasons.NodePoolUnclaimed(environment=environment, object=subject, **lost)


def _why_not_pruned(context: ManifestContext, live: Unstructured, subject: Ref) -> CodeFacts | None:
    """The first obstacle to pruning, with or without consent."""
    if live.metadata.deletion_timestamp:
        return reasons.BeingDeleted(object=subject)
    if not context.inputs.desired.pools:
        return reasons.NothingDeclared(object=subject)
    why = context.why_unread(live.kind) or (context.why_fleet_unread if live.kind == NODE_POOL else "")
    return reasons.PruneUnread(object=subject, why=why) if why else None


def _lost(takes: tuple[Consequence, ...]) -> dict[str, int]:
    """Facts about the nodes, GPUs and pods deleted with a NodePool."""
    nodes, gpus = sum(len(each.nodes) for each in takes), sum(each.gpus for each in takes)
    return {"nodes": nodes, "gpus": gpus, "pods": sum(each.pods for each in takes)}


# --- Missing node classes: Karpenter launches no node for a NodePool whose node class does not exist.

_CLASSES = {(each.group, each.kind): each.title for each in RESOURCE_KINDS if each.field == "node_classes"}


def unknown_node_classes(inputs: Inputs) -> Iterator[str]:
    """One sentence per rendered NodePool with a missing node class; none for kinds that were not read."""
    there = {(each.kind, each.metadata.name) for each in inputs.observed.node_classes}
    for manifest in inputs.desired.manifests:
        if manifest.kind != "NodePool":
            continue
        named = json.loads(manifest.body)["spec"]["template"]["spec"]["nodeClassRef"]
        title = _CLASSES.get((named["group"], named["kind"]))
        if title and not inputs.observed.why_unread(title) and (named["kind"], named["name"]) not in there:
            what = f"{named['kind']}/{named['name']}"
            yield f"NodePool/{manifest.name} names {what}, which the cluster does not have: Karpenter launches nothing"
