"""RBAC rules: rights to read and to write with the reason of each, what limits writes, and the rights of people."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.desired import Declared, Desired, Manifest
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.right import Changes, Right, RightLimits
from reconciler.plan.feature.write_rights import NODES_OF_POOLS, Enforced, WriteRight, where_acted_on
from reconciler.plan.features import FEATURES
from reconciler.policy.rules.kinds import KINDS
from reconciler.policy.rules.kinds import KINDS as ALL_KINDS
from reconciler.policy.shape import GROUP

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


# --- What people need who do with their own rights what the controller may not: approve, freeze, release.

_POLICIES = tuple(sorted(kind.plural for kind in KINDS if kind.is_policy))


class Person(msgspec.Struct, frozen=True):
    """A part that people play."""

    sentence: str
    rights: Callable[[str], tuple[Right, ...]]  # in a cluster with the reconciler in this namespace


def _approver(_: str) -> tuple[Right, ...]:
    """The controller itself has none of this: it must not let itself pass."""
    return (
        Right(
            GROUP,
            ("changeapprovals",),
            ("create", "delete", "get", "list"),
            "To let what policies cause pass a guard, to agree to the loss of objects, and to take that back.",
        ),
        Right(GROUP, _POLICIES, ("get", "list"), "The policies that are approved, where they are custom resources."),
    )


def _freezer(namespace: str) -> tuple[Right, ...]:
    why = "Kubernetes can't grant less than all of its metadata and spec."
    return (
        Right("", ("nodes",), ("patch",), f"The annotation on a node. {why}"),
        Right("karpenter.sh", ("nodepools",), ("patch",), f"The annotation on a pool's NodePool. {why}"),
        Right(GROUP, ("changeguards", "gpupools"), ("patch",), f"The same where policies are custom resources. {why}"),
        Right("", ("namespaces",), ("patch",), "The annotation that freezes everything.", names=(namespace,)),
    )


def _releaser(namespace: str) -> tuple[Right, ...]:
    return (
        *reading_rights((), namespace),
        Right("", ("nodes",), ("patch",), "Our taints, labels and freezes come off."),
        Right(
            "",
            ("pods",),
            ("delete", "patch"),
            "Our pods go, those of others pass our gates, and none is told any more when it is evicted.",
        ),
        Right("policy", ("poddisruptionbudgets",), ("delete",), "Those that templates yielded go."),
        Right("scheduling.k8s.io", ("priorityclasses",), ("delete",), "Ours go that nobody else's pods name."),
        Right("", ("namespaces",), ("patch",), "What froze everything comes off.", names=(namespace,)),
        Right("events.k8s.io", ("events",), ("create", "patch"), "What was taken off is told on whatever it was on."),
        Right(
            "coordination.k8s.io",
            ("leases",),
            ("create", "update"),
            "Leadership: no controller may put it all back meanwhile.",
            namespace=namespace,
        ),
    )


PEOPLE: Mapping[str, Person] = {
    "approver": Person("What `reconciler approve` needs.", _approver),
    "freezer": Person("What `reconciler freeze` needs, for whatever may be frozen.", _freezer),
    "releaser": Person("What `reconciler release --yes` needs.", _releaser),
}


# --- Of which objects, and of what of them, the controller's rights to write are: beside what RBAC can say.
#
# Keys are listed where a feature writes them, and not by our domain alone: who holds the token of the controller must
# not let itself pass a freeze, or write what a pod is lent.

LEADERSHIP = RightLimits("write the Lease of the leader", names=(names.LEADER_LEASE,))
MEMORY = RightLimits("write its own ConfigMaps", names=("reconciler-",))
EVENTS = RightLimits("write Events of its own", fields=((("reportingController",), names.EVENT_SOURCE),))
NODE_CHANGES = RightLimits(
    "change its own taints and labels, on nodes of pools",
    any_label=NODES_OF_POOLS,
    changes=Changes(labels=(names.OURS,), kept_labels=(names.POOL,), taints=names.OURS),
)
POD_CHANGES = RightLimits(
    "take its own scheduling gate off, and write its own annotations",
    changes=Changes(
        annotations=tuple(key for feature in FEATURES for key in feature.pod_annotations),
        gates=names.OURS,
    ),
)


# --- What writing needs: a table of what asks for a right. What is kept for itself anybody needs who acts at all, in
# whatever mode; of the cluster, only what policies in mode Enforce ask for. RBAC grants verbs on whole objects; which
# objects, and which of their fields, are the limits of a line, which the admission policy enforces.
#
# Each line is a kind of write that a planner decides on, or that acting brings with it. What has no line is never
# written, so a new action of a planner comes with its line here. A kind that no template yields any more is taken away
# with the rights from before that change.

# Those that people write: what users and agents ask and tell has statuses of its own.
POLICIES = tuple(kind for kind in ALL_KINDS if kind.is_policy)
# Server-side apply is a patch, and where the object is not there yet, its maker must be allowed to create it too.
_KEEP = ("create", "delete", "patch")


def _at_home(enforced: Enforced) -> set[str]:
    return {enforced.namespace}


def _status_in_config_map(enforced: Enforced) -> set[str]:
    return set() if enforced.resources else {enforced.namespace}


def _status_on_objects(enforced: Enforced) -> set[str]:
    return set() if enforced.resources is False else {""}


# What all features need; each feature declares its own.
SHARED = (
    WriteRight(
        _at_home,
        "coordination.k8s.io",
        ("leases",),
        ("create", "update"),
        "Leadership: of all replicas, and of people who apply by hand, one acts at a time.",
        LEADERSHIP,
    ),
    WriteRight(
        _at_home,
        "",
        ("configmaps",),
        ("create", "delete", "get", "list", "update"),
        "Its memory, which must outlive a restart, in as many parts as it needs.",
        MEMORY,
    ),
    WriteRight(
        _status_in_config_map,
        "",
        ("configmaps",),
        ("patch",),
        "How the policies stand, in reconciler-status.",
        MEMORY,
    ),
    WriteRight(
        _status_on_objects,
        GROUP,
        tuple(sorted(f"{kind.plural}/status" for kind in POLICIES)),
        ("patch",),
        "How each policy stands, where policies are custom resources.",
    ),
    WriteRight(
        where_acted_on,
        "events.k8s.io",
        ("events",),
        ("create", "patch"),
        "What was done, and why, on whatever it was done to; and what pods that wait for capacity are told.",
        EVENTS,
    ),
    WriteRight(
        where_acted_on,
        "",
        ("nodes",),
        ("patch",),
        "The startup taint of new nodes comes off when they can be used. Beside that, labels of adopted pools' nodes: "
        "in the template they would drift them; and the taints and the label of those of scaled and drained pools.",
        NODE_CHANGES,
    ),
    WriteRight(
        where_acted_on,
        "",
        ("pods",),
        ("patch",),
        "Pods that wait for capacity, wherever they are: our gate comes off them when there is some, and until then an "
        "annotation says how that stands, as it does on smart pods; and pods that save their work before they are "
        "moved off a drained node, which are told when that is. RBAC can't grant less than what may change of a pod; "
        "the admission policy does.",
        POD_CHANGES,
    ),
)
TABLE = (*SHARED, *(right for feature in FEATURES for right in feature.rights))


def writing_rights(wishes: Sequence[Desired], namespace: str, resources: bool | None = None) -> tuple[Right, ...]:
    """For the policies of all these environments; without any, for whatever policies there may be."""
    enforced = msgspec.structs.replace(_enforced(wishes, namespace), is_any=not wishes, resources=resources)
    return tuple(
        Right(line.group, line.resources, line.verbs, line.why, namespace=where, limits=line.limits)
        for line in TABLE
        for where in sorted(line.asked_for(enforced))
    )


def enforces(wishes: Sequence[Desired]) -> bool:
    """Whether anything is written that is not kept for itself."""
    return bool(_enforced(wishes, "").pools)


def _enforced(wishes: Sequence[Desired], namespace: str) -> Enforced:
    pools: list[Declared[GpuPool]] = []
    scaled: set[str] = set()
    drained: set[str] = set()
    manifests: list[Manifest] = []
    for wish in wishes:
        acted_on = [pool for pool in wish.pools if pool.spec.mode == "Enforce" and not pool.spec.suspend]
        names = {pool.name for pool in acted_on}
        pools += acted_on
        scaling = (each for each in wish.provisioners if not each.spec.suspend)
        scaled |= {each.spec.pool_name for each in scaling if each.spec.pool_name in names}
        draining = (each for each in wish.drains if not each.spec.suspend)
        drained |= {name for each in draining for name in names if {"*", name} & set(each.spec.pool_names)}
        # What belongs to no pool is for all that are acted on.
        manifests += [each for each in wish.manifests if each.pool in names or (names and not each.pool)]
    return Enforced(namespace, tuple(pools), frozenset(scaled), frozenset(drained), tuple(manifests))
