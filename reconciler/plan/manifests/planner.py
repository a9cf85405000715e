"""What templates yield is made and kept, one manifest at a time; then comes what no manifest yields any more."""

import json
from collections.abc import Iterator, Set

from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS, ResourceKind
from reconciler.model.cluster.observed import Observed
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
    """Nothing is decided for what stands as it is wished; that costs one walk over each manifest."""
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


# --- What of ours no policy yields any more: it stays until a person agrees by its title, and goes only when all is
# known.
#
# A ChangeApproval agrees to the loss, or `--prune` of the command that plans.
#
# What is ours is told by labels on the objects themselves, so that nothing else need be remembered. An annotation tells
# which environment keeps it: what is another's is never pruned, and not even told. Where there is none, since it was
# applied before there were any, it may be anyone's: that is told, and a person may agree all the same.
#
# In the namespaces of tenants our labels prove nothing: an object there is told, and holds up nobody's pipeline.
#
# An empty wish prunes nothing, not even what a person agreed to lose: a folder that was not mounted, a branch that was
# not checked out and a wish for nothing at all look the same from here, and the agreement may stand in a pipeline since
# long ago.


def prune(context: ManifestContext, left_out: Set[str] = frozenset()) -> Iterator[Verdict]:
    """For each object of the inventory that no manifest yields, in order; without those of pools that are left out."""
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
    """No manifest yields smart pods: they are made as they are needed, and cleared away by whoever made them."""
    return live.kind == "Pod" and names.COMPONENT in live.metadata.labels


def _orphan(context: ManifestContext, live: Unstructured) -> Verdict:
    subject = Ref(live.kind, live.metadata.namespace, live.name, live.metadata.uid)
    pool = live.metadata.labels.get(names.POOL, "")
    if why := _in_the_way(context, live, subject):
        return Verdict((Decision(reasons.PLANNER, subject, Hold(), why, pool),))
    takes = context.fates(live, None, Drift(), pool) if live.kind == NODE_POOL else ()
    agreed = context.approvals.losses.get(subject.title, "")
    if agreed:
        delete = Delete(presumes=Preconditions(resource_version=live.metadata.resource_version))
        pruned = Reason(_pruned(subject, agreed, takes))
        return Verdict((Decision(reasons.PLANNER, subject, delete, pruned, pool),), takes)
    if live.metadata.namespace not in context.own_namespaces:
        stays: CodeFacts = reasons.ObjectOnlyLabelled(object=subject)
    elif names.ENVIRONMENT in live.metadata.annotations:
        stays = _undeclared(subject, takes)
    else:
        stays = _unclaimed(subject, context.environment, takes)
    return Verdict((Decision(reasons.PLANNER, subject, Hold(), Reason(stays), pool),))


def _in_the_way(context: ManifestContext, live: Unstructured, subject: Ref) -> Reason | None:
    """What forbids it, agreed or not; the first that applies."""
    if live.metadata.deletion_timestamp:
        return Reason(reasons.BeingDeleted(object=subject))
    if not context.inputs.desired.pools:
        return Reason(reasons.NothingDeclared(object=subject))
    why = context.why_unread(live.kind)
    if live.kind == NODE_POOL:
        why = why or context.why_fleet_unread
    return Reason(reasons.PruneUnread(object=subject, why=why)) if why else None


def _pruned(subject: Ref, agreed: str, takes: tuple[Consequence, ...]) -> CodeFacts:
    if subject.kind != NODE_POOL:
        return reasons.ObjectPruned(object=subject, by=agreed)
    nodes, gpus, pods = _lost(takes)
    return reasons.NodePoolPruned(object=subject, by=agreed, nodes=nodes, gpus=gpus, pods=pods)


def _undeclared(subject: Ref, takes: tuple[Consequence, ...]) -> CodeFacts:
    """Of an object that says which environment keeps it: the one that is planned for."""
    if subject.kind != NODE_POOL:
        return reasons.ObjectNotDeclared(object=subject)
    nodes, gpus, pods = _lost(takes)
    return reasons.NodePoolNotDeclared(object=subject, nodes=nodes, gpus=gpus, pods=pods)


def _unclaimed(subject: Ref, environment: str, takes: tuple[Consequence, ...]) -> CodeFacts:
    """Of an object that does not say which environment keeps it."""
    if subject.kind != NODE_POOL:
        return reasons.ObjectUnclaimed(environment=environment, object=subject)
    nodes, gpus, pods = _lost(takes)
    return reasons.NodePoolUnclaimed(environment=environment, object=subject, nodes=nodes, gpus=gpus, pods=pods)


def _lost(takes: tuple[Consequence, ...]) -> tuple[int, int, int]:
    """Nodes, GPUs and pods that go with a NodePool."""
    nodes, gpus = sum(len(each.nodes) for each in takes), sum(each.gpus for each in takes)
    return nodes, gpus, sum(each.pods for each in takes)


# --- Node classes that NodePools name and the cluster does not have: of such a NodePool Karpenter launches nothing.

_CLASSES = {(each.group, each.kind): each for each in RESOURCE_KINDS if each.field == "node_classes"}


def unknown_node_classes(inputs: Inputs) -> Iterator[str]:
    """A sentence for each NodePool that policies yield with such a class; of kinds that were not read, none."""
    there = {(each.kind, each.metadata.name) for each in inputs.observed.node_classes}
    for manifest in inputs.desired.manifests:
        if manifest.kind != "NodePool":
            continue
        named = json.loads(manifest.body)["spec"]["template"]["spec"]["nodeClassRef"]
        resource_kind = _CLASSES.get((named["group"], named["kind"]))
        if resource_kind and _was_read(inputs.observed, resource_kind) and (named["kind"], named["name"]) not in there:
            what = f"{named['kind']}/{named['name']}"
            yield f"NodePool/{manifest.name} names {what}, which the cluster does not have: Karpenter launches nothing"


def _was_read(observed: Observed, resource_kind: ResourceKind) -> bool:
    return not observed.why_unread(resource_kind.title)
