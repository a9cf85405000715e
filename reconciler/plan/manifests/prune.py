"""What of ours no policy yields any more: it stays until a person agrees by its title, and goes only when all is known.

A ChangeApproval agrees to the loss, or `--prune` of the command that plans.

What is ours is told by labels on the objects themselves, so that nothing else need be remembered. An annotation tells
which environment keeps it: what is another's is never pruned, and not even told. Where there is none, since it was
applied before there were any, it may be anyone's: that is told, and a person may agree all the same.

In the namespaces of tenants our labels prove nothing: an object there is told, and holds up nobody's pipeline.

An empty wish prunes nothing, not even what a person agreed to lose: a folder that was not mounted, a branch that was
not checked out and a wish for nothing at all look the same from here, and the agreement may stand in a pipeline since
long ago.
"""

from collections.abc import Iterator, Set

from reconciler.model import names
from reconciler.model.cluster.whole import Whole
from reconciler.model.planned.action import Delete, Hold, Presumes, Ref
from reconciler.model.planned.consequence import Consequence
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.reason import Reason
from reconciler.plan.containment import planning_for
from reconciler.plan.draft import Verdict
from reconciler.plan.karpenter.drift import Drift
from reconciler.plan.manifests import reasons
from reconciler.plan.manifests.sight import NODE_POOL, Sight
from reconciler.plan.reasons import Because

# By whether it is a NodePool.
_GONE = {True: reasons.NODE_POOL_GONE, False: reasons.OBJECT_GONE}
_UNCLAIMED = {True: reasons.NODE_POOL_UNCLAIMED, False: reasons.OBJECT_UNCLAIMED}
_PRUNED = {True: reasons.PRUNED_NODE_POOL, False: reasons.PRUNED_OBJECT}


def prune(sight: Sight, left_out: Set[str] = frozenset()) -> Iterator[Verdict]:
    """For each object of the inventory that no manifest yields, in order; without those of pools that are left out."""
    wished = {(each.kind, each.namespace, each.name) for each in sight.inputs.desired.manifests}
    for key in sorted(sight.objects.keys() - wished):
        live = sight.objects[key]
        if live.is_ours and not sight.other_environment(live) and not _comes_and_goes(live):
            pool = live.metadata.labels.get(names.POOL, "")
            if pool not in left_out:
                with planning_for(pool):
                    orphan = _orphan(sight, live)
                yield orphan


def _comes_and_goes(live: Whole) -> bool:
    """No manifest yields smart pods: they are made as they are needed, and cleared away by whoever made them."""
    return live.kind == "Pod" and names.COMPONENT in live.metadata.labels


def _orphan(sight: Sight, live: Whole) -> Verdict:
    subject = Ref(live.kind, live.metadata.namespace, live.name, live.metadata.uid)
    pool = live.metadata.labels.get(names.POOL, "")
    if why := _in_the_way(sight, live, subject):
        return Verdict((Decision(reasons.PLANNER, subject, Hold(), why, pool),))
    takes = sight.fates(live, None, Drift(), pool) if live.kind == NODE_POOL else ()
    agreed = sight.approvals.losses.get(subject.title, "")
    says_whose = names.ENVIRONMENT in live.metadata.annotations
    because = _PRUNED if agreed else _GONE if says_whose else _UNCLAIMED
    if not agreed and live.metadata.namespace not in sight.own_namespaces:
        only_labelled = reasons.OBJECT_ONLY_LABELLED.reason(object=subject.title)
        return Verdict((Decision(reasons.PLANNER, subject, Hold(), only_labelled, pool),))
    facts: dict[str, str | int] = {"environment": sight.environment}
    if agreed:
        facts["by"] = agreed
    why = _told(because[live.kind == NODE_POOL], live, facts, takes)
    if not agreed:
        return Verdict((Decision(reasons.PLANNER, subject, Hold(), why, pool),))
    delete = Delete(presumes=Presumes(resource_version=live.metadata.resource_version))
    return Verdict((Decision(reasons.PLANNER, subject, delete, why, pool),), takes)


def _in_the_way(sight: Sight, live: Whole, subject: Ref) -> Reason | None:
    """What forbids it, agreed or not; the first that applies."""
    if live.metadata.deletion_timestamp:
        return reasons.LEAVING.reason(object=subject.title)
    if not sight.inputs.desired.pools:
        return reasons.NOTHING_DECLARED.reason(object=subject.title)
    why = sight.why_unread(live.kind)
    if live.kind == NODE_POOL:
        why = why or sight.why_fleet_unread
    return reasons.PRUNE_UNREAD.reason(object=subject.title, why=why) if why else None


def _told(because: Because, live: Whole, facts: dict[str, str | int], takes: tuple[Consequence, ...]) -> Reason:
    title = Ref(live.kind, live.metadata.namespace, live.name).title
    if live.kind != NODE_POOL:
        return because.reason(None, object=title, **facts)
    return because.reason(
        None,
        object=title,
        **facts,
        nodes=sum(len(each.nodes) for each in takes),
        gpus=sum(each.gpus for each in takes),
        pods=sum(each.pods for each in takes),
    )
