"""Creates and updates rendered objects, one manifest at a time, and then prunes objects without a manifest."""

import json
from collections.abc import Iterator, Set

from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Manifest
from reconciler.model.plan.consequence import Consequence
from reconciler.model.plan.decision import CodeFacts, Decision, Delete, Hold, Preconditions, Reason, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Draft, Verdict
from reconciler.plan.karpenter.drift import Drift
from reconciler.plan.manifests import reasons
from reconciler.plan.manifests.context import NODE_POOL, Key, ManifestContext
from reconciler.plan.manifests.ensure import ensure


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


def prune(context: ManifestContext, left_out: Set[str] = frozenset()) -> Iterator[Verdict]:
    """Decisions for each object of the inventory without a manifest, in order; `left_out` pools are skipped."""
    wished = {(each.kind, each.namespace, each.name) for each in context.inputs.desired.manifests}
    for key in sorted(context.objects.keys() - wished):
        live = context.objects[key]
        if live.is_ours and not context.other_environment(live) and not _comes_and_goes(live):
            pool = live.metadata.labels.get(names.POOL, "")
            if pool not in left_out:
                with planning_for(pool):
                    orphan = _orphan(context, live)
                yield orphan


def _comes_and_goes(live: Unstructured) -> bool:
    """Whether the object is a smart pod: those have no manifest, and their creator deletes them."""
    return live.kind == "Pod" and names.COMPONENT in live.metadata.labels


def _orphan(context: ManifestContext, live: Unstructured) -> Verdict:
    subject = Ref(live.kind, live.metadata.namespace, live.name, live.metadata.uid)
    pool = live.metadata.labels.get(names.POOL, "")
    if obstacle := _why_in_the_way(context, live, subject):
        return Verdict((_held(subject, obstacle, pool),))
    takes = context.fates(live, None, Drift(), pool) if live.kind == NODE_POOL else ()
    lost = _lost(takes) if live.kind == NODE_POOL else None
    if agreed := context.approvals.losses.get(subject.title, ""):
        delete = Delete(presumes=Preconditions(resource_version=live.metadata.resource_version))
        pruned: CodeFacts = reasons.ObjectPruned(object=subject, by=agreed)
        if lost is not None:
            pruned = reasons.NodePoolPruned(object=subject, by=agreed, **lost)
        return Verdict((Decision(reasons.PLANNER, subject, delete, Reason(pruned), pool),), takes)
    return Verdict((_held(subject, _why_kept(context, live, subject, lost), pool),))


def _held(subject: Ref, facts: CodeFacts, pool: str) -> Decision:
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


def _why_in_the_way(context: ManifestContext, live: Unstructured, subject: Ref) -> CodeFacts | None:
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
