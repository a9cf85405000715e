"""What writing needs: a table of what asks for a right. What is kept for itself anybody needs who acts at all, in
whatever mode; of the cluster, only what policies in mode Enforce ask for. RBAC grants verbs on whole objects; which
objects, and which of their fields, are the limits of a line, which the admission policy enforces.

Each line is a kind of write that a planner decides on, or that acting brings with it. What has no line is never
written, so a new action of a planner comes with its line here. A kind that no template yields any more is taken away
with the rights from before that change.
"""

from collections.abc import Callable, Sequence

import msgspec

from reconciler.model import names
from reconciler.model.desired import Declared, Desired, Manifest
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.policy.kind import GROUP
from reconciler.policy.rules.kinds import KINDS as ALL_KINDS
from reconciler.schema.rights import limits
from reconciler.schema.rights.right import Limits, Right

# Those that people write: what users and agents ask and tell has statuses of its own.
POLICIES = tuple(kind for kind in ALL_KINDS if kind.is_policy)
# Server-side apply is a patch, and where the object is not there yet, its maker must be allowed to create it too.
_KEEP = ("create", "delete", "patch")


class Enforced(msgspec.Struct, frozen=True):
    """The pools that are acted on, and what their templates yield; or any that there may be."""

    namespace: str  # where the reconciler runs
    pools: tuple[Declared[GpuPool], ...] = ()
    scaled: frozenset[str] = frozenset()  # of these, those that a NodeProvisioner scales
    drained: frozenset[str] = frozenset()  # and those that a DrainPolicy names
    manifests: tuple[Manifest, ...] = ()
    is_any: bool = False
    resources: bool | None = None  # whether policies are custom resources; None: they may be


class Line(msgspec.Struct, frozen=True):
    """What asks for a right, as the namespaces it asks for, where nothing is the whole cluster; and the right."""

    asked_for: Callable[[Enforced], set[str]]
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    limits: Limits | None = None


def _yielded(kind: str) -> Callable[[Enforced], set[str]]:
    """The templates of pools yield objects of a kind."""

    def asked_for(enforced: Enforced) -> set[str]:
        return {""} if enforced.is_any or any(each.kind == kind for each in enforced.manifests) else set()

    return asked_for


def _acted_on(enforced: Enforced) -> set[str]:
    """Any pool is."""
    return {""} if enforced.is_any or enforced.pools else set()


def _scaled(enforced: Enforced) -> set[str]:
    """A pool is scaled or drained."""
    return {""} if enforced.is_any or enforced.scaled or enforced.drained else set()


def _drained(enforced: Enforced) -> set[str]:
    """A pool is drained."""
    return {""} if enforced.is_any or enforced.drained else set()


def _smart_pods(enforced: Enforced) -> set[str]:
    """Where the pools have theirs; without policies, in the default namespace."""
    named = {pool.spec.smart_pods.namespace for pool in enforced.pools}
    return {names.SMART_PODS_NAMESPACE} if enforced.is_any else named


def _left_by_older_versions(enforced: Enforced) -> set[str]:
    """Older versions made smart pods, and what templates yielded, in our own namespace."""
    return {enforced.namespace} if enforced.is_any or enforced.pools else set()


def _at_home(enforced: Enforced) -> set[str]:
    return {enforced.namespace}


def _told_in_a_config_map(enforced: Enforced) -> set[str]:
    return set() if enforced.resources else {enforced.namespace}


def _told_on_themselves(enforced: Enforced) -> set[str]:
    return set() if enforced.resources is False else {""}


TABLE = (
    Line(
        _at_home,
        "coordination.k8s.io",
        ("leases",),
        ("create", "update"),
        "Leadership: of all replicas, and of people who apply by hand, one acts at a time.",
        limits.LEADERSHIP,
    ),
    Line(
        _at_home,
        "",
        ("configmaps",),
        ("create", "delete", "get", "list", "update"),
        "Its memory, which must outlive a restart, in as many parts as it needs.",
        limits.MEMORY,
    ),
    Line(
        _told_in_a_config_map,
        "",
        ("configmaps",),
        ("patch",),
        "How the policies stand, in reconciler-status.",
        limits.MEMORY,
    ),
    Line(
        _told_on_themselves,
        GROUP,
        tuple(sorted(f"{kind.plural}/status" for kind in POLICIES)),
        ("patch",),
        "How each policy stands, where policies are custom resources.",
    ),
    Line(
        _acted_on,
        "events.k8s.io",
        ("events",),
        ("create", "patch"),
        "What was done, and why, on whatever it was done to; and what pods that wait for capacity are told.",
        limits.EVENTS,
    ),
    Line(
        _acted_on,
        "",
        ("nodes",),
        ("patch",),
        "The startup taint of new nodes comes off when they can be used. Beside that, labels of adopted pools' nodes: "
        "in the template they would drift them; and the taints and the label of those of scaled and drained pools.",
        limits.NODE_CHANGES,
    ),
    Line(
        _scaled,
        "",
        ("nodes",),
        ("delete",),
        "Nodes of scaled and drained pools that go when they are empty.",
        limits.NODE_DELETIONS,
    ),
    Line(
        _drained,
        "",
        ("pods/eviction",),
        ("create",),
        "Pods on nodes of drained pools are asked to leave: the API server minds PodDisruptionBudgets.",
    ),
    Line(
        _smart_pods,
        "",
        ("pods",),
        ("create", "delete"),
        "Smart pods, which ask Karpenter for nodes: they go when their node is there, or none comes.",
        limits.SMART_PODS,
    ),
    Line(
        _left_by_older_versions,
        "",
        ("pods",),
        ("delete",),
        "Smart pods that an older version made, in the namespace of the controller.",
        limits.LEFT_BEHIND,
    ),
    Line(
        _left_by_older_versions,
        "policy",
        ("poddisruptionbudgets",),
        ("delete",),
        "PodDisruptionBudgets that templates yielded for an older version.",
        limits.LEFT_BEHIND,
    ),
    Line(
        _acted_on,
        "",
        ("pods",),
        ("patch",),
        "Pods that wait for capacity, wherever they are: our gate comes off them when there is some, and until then an "
        "annotation says how that stands, as it does on smart pods; and pods that save their work before they are "
        "moved off a drained node, which are told when that is. RBAC can't grant less than what may change of a pod; "
        "the admission policy does.",
        limits.POD_CHANGES,
    ),
    Line(
        _yielded("NodePool"),
        "karpenter.sh",
        ("nodepools",),
        _KEEP,
        "What the pools' templates yield for Karpenter.",
        limits.NODE_POOLS,
    ),
    Line(
        _yielded("PriorityClass"),
        "scheduling.k8s.io",
        ("priorityclasses",),
        _KEEP,
        "That of smart pods, below all others; and those that the pools' templates yield.",
        limits.PRIORITY_CLASSES,
    ),
)


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
