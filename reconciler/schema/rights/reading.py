"""What looking needs: the kinds that an Observed is made of, and of node classes those that the pools name."""

from collections import defaultdict
from collections.abc import Sequence

from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.desired import Desired
from reconciler.model.right import Right

LOOK = ("get", "list", "watch")
_CLASSES = "node_classes"
_OWN_LEASES = "own_leases"

# Why a kind is looked at, by the field of Observed that it becomes.
_WHY = {
    "nodes": "What each pool has, and which nodes are in other hands.",
    "pods": "What runs where, and so what would have to move.",
    "budgets": "Which evictions a PodDisruptionBudget holds up.",
    "workloads": "What a pod belongs to, and so whether it comes back elsewhere.",
    "node_pools": "What Karpenter has been told, to be compared with what the policies yield.",
    "node_claims": "What Karpenter is buying, and which of its nodes have drifted.",
    _CLASSES: "How the machines of the pools are made: a change there drifts nodes too.",
    "resource_claims": "Which devices pods hold by dynamic resource allocation.",
    "resource_slices": "Which devices nodes offer to dynamic resource allocation.",
    "volume_claims": "Which volumes pods claim, and so where they can go.",
    "volumes": "Where volumes are, and so where their pods can go.",
    "storage_classes": "Where volumes that are still to be made can be.",
    "csi_nodes": "How many volumes a node can hold.",
    "csi_drivers": "Which drivers of volumes have only so much room on a node.",
    "attachments": "Which volumes a node holds already.",
    "namespaces": "Which cluster this is: the uid of kube-system. And the labels of all of them: pods keep near to or "
    "away from pods of namespaces that they choose by label.",
    "policies": "Policies, approvals, claims and reports, where they are kept as custom resources.",
    "leases": "Which GPUs are lent. Only here: node heartbeats are leases too, 500 a second at 5,000 nodes.",
    _OWN_LEASES: "Who leads, and since when.",
    "kept": "What templates yielded once, to be kept up to date or taken away.",
}


def reading_rights(wishes: Sequence[Desired], namespace: str) -> tuple[Right, ...]:
    """For the policies of all these environments; without any, for whatever policies there may be."""
    granted: set[tuple[str, str, str]] = set()
    plurals: dict[tuple[str, str, str], list[str]] = defaultdict(list)  # by field, group and namespace
    for resource_kind in RESOURCE_KINDS:
        where = resource_kind.namespace_for(namespace)
        resource = (resource_kind.group, resource_kind.plural, where)
        if resource_kind.field != _CLASSES and resource not in granted:
            granted.add(resource)
            plurals[
                _OWN_LEASES if resource_kind.own_namespace else resource_kind.field, resource_kind.group, where
            ].append(resource_kind.plural)
    looked_at = [
        Right(group, tuple(sorted(names)), LOOK, _WHY[field], namespace=where)
        for (field, group, where), names in plurals.items()
    ]
    return (*looked_at, *_node_classes(wishes))


def _node_classes(wishes: Sequence[Desired]) -> list[Right]:
    """One right a group. Policies name a kind, and rights its plural: of a kind that is not known, that is a guess."""
    known = {
        (resource_kind.group, resource_kind.kind): resource_kind.plural
        for resource_kind in RESOURCE_KINDS
        if resource_kind.field == _CLASSES
    }
    named = {(ref.group, ref.kind) for wish in wishes for pool in wish.pools for ref in [pool.spec.node_class_ref]}
    plurals: dict[str, set[str]] = defaultdict(set)
    guesses: dict[str, list[str]] = defaultdict(list)
    for group, kind in sorted(named if wishes else known):
        plural = known.get((group, kind), f"{kind.lower()}es")
        plurals[group].add(plural)
        if (group, kind) not in known:
            guesses[group].append(
                f"{plural} is guessed from {kind}: compare `kubectl api-resources --api-group={group}`."
            )
    return [
        Right(group, tuple(sorted(names)), LOOK, " ".join([_WHY[_CLASSES], *guesses[group]]))
        for group, names in plurals.items()
    ]
