"""RBAC rules: rights to read and to write with their reasons, limits of writes, and rights of people."""

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
from reconciler.policy.rules.kinds import POLICY_KINDS
from reconciler.policy.shape import GROUP

LOOK = ("get", "list", "watch")
_CLASSES = "node_classes"
_OWN_LEASES = "own_leases"

# Why a kind is read, by its field of Observed.
_WHY = {
    "nodes": "Nodes of each pool, and nodes managed by others.",
    "pods": "Pods on each node, and which of them would have to move.",
    "budgets": "Evictions that a PodDisruptionBudget blocks.",
    "workloads": "Owners of pods, and whether they recreate a pod elsewhere.",
    "node_pools": "NodePools in the cluster, to compare with the rendered policies.",
    "node_claims": "Nodes that Karpenter is launching, and nodes that have drifted.",
    _CLASSES: "Machine configuration of the pools: a change there drifts nodes too.",
    "resource_claims": "Devices allocated to pods by dynamic resource allocation.",
    "resource_slices": "Devices that nodes offer for dynamic resource allocation.",
    "device_classes": "Whether dynamic resource allocation serves requests for nvidia.com/gpu.",
    "volume_claims": "Volumes that pods use, which restrict their nodes.",
    "volumes": "Locations of volumes, which restrict the nodes of their pods.",
    "storage_classes": "Possible locations of volumes that do not exist yet.",
    "csi_nodes": "Maximum number of volumes on a node.",
    "csi_drivers": "Volume drivers with limited capacity.",
    "attachments": "Volumes attached to a node.",
    "namespaces": "Identity of the cluster: the uid of kube-system. Also labels of namespaces, which pod affinity and "
    "anti-affinity can select.",
    "policies": "Policies, approvals, claims and reports as custom resources.",
    "leases": "Lent GPUs. Only in this namespace: node heartbeats are Leases too, 500 per second at 5,000 nodes.",
    _OWN_LEASES: "The leader, and since when it leads.",
    "kept": "Objects rendered from templates, to update or delete them.",
}


def reading_rights(wishes: Sequence[Desired], namespace: str) -> tuple[Right, ...]:
    """Rights for the policies of all these environments; without environments, for any policies."""
    granted: set[tuple[str, str, str]] = set()
    plurals: dict[tuple[str, str, str], list[str]] = defaultdict(list)  # by field, group and namespace
    for resource_kind in RESOURCE_KINDS:
        where = resource_kind.namespace_for(namespace)
        resource = (resource_kind.group, resource_kind.plural, where)
        if resource_kind.field != _CLASSES and resource not in granted:
            granted.add(resource)
            field = _OWN_LEASES if resource_kind.own_namespace else resource_kind.field
            plurals[field, resource_kind.group, where].append(resource_kind.plural)
    looked_at = [
        Right(group, tuple(sorted(names)), LOOK, _WHY[field], namespace=where)
        for (field, group, where), names in plurals.items()
    ]
    return (*looked_at, *_node_classes(wishes))


def _node_classes(wishes: Sequence[Desired]) -> list[Right]:
    """One right per group. Policies name a kind, rights its plural; the plural of an unknown kind is guessed."""
    known = {(each.group, each.kind): each.plural for each in RESOURCE_KINDS if each.field == _CLASSES}
    named = {(ref.group, ref.kind) for wish in wishes for pool in wish.pools for ref in [pool.spec.node_class_ref]}
    plurals: dict[str, set[str]] = defaultdict(set)
    guesses: dict[str, list[str]] = defaultdict(list)
    for group, kind in sorted(named if wishes else known):
        plural = known.get((group, kind), f"{kind.lower()}es")
        plurals[group].add(plural)
        if (group, kind) not in known:
            compared = f"compare `kubectl api-resources --api-group={group}`."
            guesses[group].append(f"{plural} is guessed from {kind}: {compared}")
    return [
        Right(group, tuple(sorted(names)), LOOK, " ".join([_WHY[_CLASSES], *guesses[group]]))
        for group, names in plurals.items()
    ]


# --- Rights of people who approve, freeze or release with their own account; the controller may not do that.

_POLICIES = tuple(sorted(kind.plural for kind in POLICY_KINDS))


class Person(msgspec.Struct, frozen=True):
    sentence: str
    rights: Callable[[str], tuple[Right, ...]]  # for the controller's namespace


def _approver(_: str) -> tuple[Right, ...]:
    """The controller has none of these rights, so that it cannot approve its own changes."""
    return (
        Right(
            GROUP,
            ("changeapprovals",),
            ("create", "delete", "get", "list"),
            "Let changes of policies pass a guard, allow deletion of objects, and revoke approvals.",
        ),
        Right(GROUP, _POLICIES, ("get", "list"), "Approved policies, if they are custom resources."),
    )


def _freezer(namespace: str) -> tuple[Right, ...]:
    why = "Kubernetes cannot grant less than all of metadata and spec."
    return (
        Right("", ("nodes",), ("patch",), f"The annotation on a node. {why}"),
        Right("karpenter.sh", ("nodepools",), ("patch",), f"The annotation on a pool's NodePool. {why}"),
        Right(
            GROUP, ("changeguards", "gpupools"), ("patch",), f"The annotation on a policy as a custom resource. {why}"
        ),
        Right("", ("namespaces",), ("patch",), "The annotation that freezes everything.", names=(namespace,)),
    )


def _releaser(namespace: str) -> tuple[Right, ...]:
    return (
        *reading_rights((), namespace),
        Right("", ("nodes",), ("patch",), "Remove the reconciler's taints, labels and freezes."),
        Right(
            "",
            ("pods",),
            ("delete", "patch"),
            "Delete the reconciler's pods, and remove its gates and annotations from others.",
        ),
        Right("policy", ("poddisruptionbudgets",), ("delete",), "Delete those rendered from templates."),
        Right(
            "scheduling.k8s.io",
            ("priorityclasses",),
            ("delete",),
            "Delete the reconciler's unless pods of others use them.",
        ),
        Right("", ("namespaces",), ("patch",), "Remove the freeze of everything.", names=(namespace,)),
        Right("events.k8s.io", ("events",), ("create", "patch"), "Record the removals on the objects."),
        Right(
            "coordination.k8s.io",
            ("leases",),
            ("create", "update"),
            "Leadership, so that no controller recreates the objects meanwhile.",
            namespace=namespace,
        ),
    )


PEOPLE: Mapping[str, Person] = {
    "approver": Person("Rights for `reconciler approve`.", _approver),
    "freezer": Person("Rights for `reconciler freeze`, for everything that can be frozen.", _freezer),
    "releaser": Person("Rights for `reconciler release --yes`.", _releaser),
}


# --- Rights of the admission webhook: `run --webhook`. Policies do not say whether there is one.

CERTIFICATES = RightLimits("write the Secret with its certificates", names=(names.WEBHOOK_CERTIFICATES,))


WEBHOOK = RightLimits("change the configuration of its own webhook", names=(names.WEBHOOK_CONFIGURATION,))


def webhook_rights(namespace: str) -> tuple[Right, ...]:
    """Rights for the certificates of the webhook, and to publish their authority."""
    return (
        Right(
            "",
            ("secrets",),
            ("create",),
            "Certificates of the webhook. RBAC cannot restrict the creation to a name; the admission policy does.",
            namespace=namespace,
            limits=CERTIFICATES,
        ),
        Right(
            "",
            ("secrets",),
            ("get", "update"),
            "Read and renew these certificates, in every replica.",
            namespace=namespace,
            names=(names.WEBHOOK_CERTIFICATES,),
            limits=CERTIFICATES,
        ),
        Right(
            "admissionregistration.k8s.io",
            ("mutatingwebhookconfigurations",),
            ("get", "patch"),
            "Publish the certificate authority to the API servers.",
            names=(names.WEBHOOK_CONFIGURATION,),
            limits=WEBHOOK,
        ),
    )


# --- Rights of the scheduler extender: `run --extender`. The Secret with the authorities is that of the webhook.

SCHEDULER_SECRET = RightLimits("write the Secret of the second scheduler", names=(names.SCHEDULER_CERTIFICATES,))


def extender_rights(namespace: str) -> tuple[Right, ...]:
    """Rights for the certificates of the extender and of the scheduler, beside those of the webhook. The rights to
    write Leases of GPUs and to bind pods are those of the gpu planner."""
    return (
        Right(
            "",
            ("secrets",),
            ("create",),
            "Client certificate of the scheduler. RBAC cannot restrict the creation to a name; the admission policy "
            "does.",
            namespace=namespace,
            limits=SCHEDULER_SECRET,
        ),
        Right(
            "",
            ("secrets",),
            ("get", "update"),
            "Read and renew this certificate, in every replica.",
            namespace=namespace,
            names=(names.SCHEDULER_CERTIFICATES,),
            limits=SCHEDULER_SECRET,
        ),
        Right(
            "",
            ("pods/eviction",),
            ("create",),
            "Replace pods of the scheduler after a new certificate authority, which they read only when they start.",
            namespace=namespace,
        ),
    )


# --- Rights to answer agents of elastic pods: `run --agents`. The Secret with the authorities is that of the webhook.
# Every ServiceAccount may read the public keys of the API server.

PERMIT_KEYS = RightLimits("write the Secret with the keys of permits", names=(names.PERMIT_KEYS,))


def agents_rights(namespace: str) -> tuple[Right, ...]:
    """Rights for the keys that sign permits, beside those of the webhook."""
    return (
        Right(
            "",
            ("secrets",),
            ("create",),
            "Keys that sign permits of agents. RBAC cannot restrict the creation to a name; the admission policy does.",
            namespace=namespace,
            limits=PERMIT_KEYS,
        ),
        Right(
            "",
            ("secrets",),
            ("get", "update"),
            "Read these keys, and rotate them every week.",
            namespace=namespace,
            names=(names.PERMIT_KEYS,),
            limits=PERMIT_KEYS,
        ),
    )


# --- Limits of the controller's write rights to objects and fields, which RBAC cannot express.
#
# Keys are listed by the features that write them, instead of allowing our whole domain: the holder of the controller's
# token must not be able to lift a freeze, or write what is lent to a pod.

LEADERSHIP = RightLimits("write the Lease of the leader", names=(names.LEADER_LEASE,))
MEMORY = RightLimits("write its own ConfigMaps", names=("reconciler-",))
EVENTS = RightLimits("write Events of its own", fields=((("reportingController",), names.EVENT_SOURCE),))
NODE_CHANGES = RightLimits(
    "change its own taints and labels, on nodes of pools",
    any_label=NODES_OF_POOLS,
    changes=Changes(
        labels=(names.OURS,), kept_labels=(names.POOL,), annotations=(names.PODS_WOKEN_AT,), taints=names.OURS
    ),
)
POD_CHANGES = RightLimits(
    "remove its own scheduling gate, and write its own annotations",
    changes=Changes(
        annotations=tuple(key for feature in FEATURES for key in feature.pod_annotations),
        gates=names.OURS,
    ),
)


# --- Rights to write: a table by use. Rights for the controller's own objects are needed in any mode; rights for others
# only with policies in mode Enforce. RBAC grants verbs on whole objects; the limits of a line name the objects and
# fields, and the admission policy enforces them.
#
# Each line is a kind of write that a planner decides on, or that execution needs. Nothing else is written, so a new
# action of a planner needs a line here. Objects of a kind that templates no longer render are deleted with the rights
# from before that change.


def _at_home(enforced: Enforced) -> set[str]:
    return {enforced.namespace}


def _status_in_config_map(enforced: Enforced) -> set[str]:
    return set() if enforced.resources else {enforced.namespace}


def _status_on_objects(enforced: Enforced) -> set[str]:
    return set() if enforced.resources is False else {""}


# Rights for all features; each feature declares its own.
SHARED = (
    WriteRight(
        _at_home,
        "coordination.k8s.io",
        ("leases",),
        ("create", "update"),
        "Leadership: one replica, or one person who applies by hand, acts at a time.",
        LEADERSHIP,
    ),
    WriteRight(
        _at_home,
        "",
        ("configmaps",),
        ("create", "delete", "get", "list", "update"),
        "Memory that survives a restart, in as many parts as needed.",
        MEMORY,
    ),
    WriteRight(
        _status_in_config_map,
        "",
        ("configmaps",),
        ("patch",),
        "Status of the policies, in reconciler-status.",
        MEMORY,
    ),
    WriteRight(
        _status_on_objects,
        GROUP,
        tuple(f"{plural}/status" for plural in _POLICIES),
        ("patch",),
        "Status of each policy, if policies are custom resources.",
    ),
    WriteRight(
        where_acted_on,
        "events.k8s.io",
        ("events",),
        ("create", "patch"),
        "Events about actions on their objects, and about capacity on waiting pods.",
        EVENTS,
    ),
    WriteRight(
        where_acted_on,
        "",
        ("nodes",),
        ("patch",),
        "Remove the startup taint of usable new nodes. Label nodes of adopted pools, because a label "
        "in the template would drift them. Taint and label nodes of scaled and drained pools.",
        NODE_CHANGES,
    ),
    WriteRight(
        where_acted_on,
        "",
        ("pods",),
        ("patch",),
        "Pods that wait for capacity, in any namespace: remove our gate when there is capacity, and until then "
        "annotate the state, as on smart pods. Pods that save their work before an eviction: annotate the "
        "time of the eviction. RBAC cannot grant less than all mutable fields of a pod; "
        "the admission policy does.",
        POD_CHANGES,
    ),
)
TABLE = (*SHARED, *(right for feature in FEATURES for right in feature.rights))


def writing_rights(wishes: Sequence[Desired], namespace: str, resources: bool | None = None) -> tuple[Right, ...]:
    """Rights for the policies of all these environments; without environments, for any policies."""
    enforced = msgspec.structs.replace(_enforced(wishes, namespace), is_any=not wishes, resources=resources)
    return tuple(
        Right(line.group, line.resources, line.verbs, line.why, namespace=where, limits=line.limits)
        for line in TABLE
        for where in sorted(line.asked_for(enforced))
    )


def enforces(wishes: Sequence[Desired]) -> bool:
    """Whether anything besides the controller's own objects is written."""
    return bool(_enforced(wishes, "").pools)


def _enforced(wishes: Sequence[Desired], namespace: str) -> Enforced:
    pools: list[Declared[GpuPool]] = []
    scaled: set[str] = set()
    drained: set[str] = set()
    pressed: set[str] = set()
    elastic: set[str] = set()
    manifests: list[Manifest] = []
    for wish in wishes:
        acted_on = [pool for pool in wish.pools if pool.spec.is_enforced]
        names = {pool.name for pool in acted_on}
        pools += acted_on
        scaling = (each for each in wish.provisioners if not each.spec.suspend)
        scaled |= {each.spec.pool_name for each in scaling if each.spec.pool_name in names}
        draining = (each for each in wish.drains if not each.spec.suspend)
        drained |= {name for each in draining for name in names if {"*", name} & set(each.spec.pool_names)}
        for policy in (each.spec for each in wish.pressures if not each.spec.suspend):
            named = {name for name in names if {"*", name} & set(policy.pool_names)}
            elastic |= named
            pressed |= named if policy.migration != "None" else set()
        # Objects without a pool are for all enforced pools.
        manifests += [each for each in wish.manifests if each.pool in names or (names and not each.pool)]
    limited = frozenset(scaled), frozenset(drained)
    of_pressure = frozenset(pressed), frozenset(elastic)
    return Enforced(namespace, tuple(pools), *limited, *of_pressure, tuple(manifests))
