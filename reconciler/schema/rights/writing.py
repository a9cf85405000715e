"""What writing needs: a table of what asks for a right. What is kept for itself anybody needs who acts at all, in
whatever mode; of the cluster, only what policies in mode Enforce ask for. RBAC grants verbs on whole objects; which
objects, and which of their fields, are the limits of a line, which the admission policy enforces.

Each line is a kind of write that a planner decides on, or that acting brings with it. What has no line is never
written, so a new action of a planner comes with its line here. A kind that no template yields any more is taken away
with the rights from before that change.
"""

from collections.abc import Sequence

import msgspec

from reconciler.model.desired import Declared, Desired, Manifest
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.model.right import Right
from reconciler.plan.feature.write_rights import Enforced, WriteRight, where_acted_on
from reconciler.plan.features import FEATURES
from reconciler.policy.kind import GROUP
from reconciler.policy.rules.kinds import KINDS as ALL_KINDS
from reconciler.schema.rights import limits

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
        limits.LEADERSHIP,
    ),
    WriteRight(
        _at_home,
        "",
        ("configmaps",),
        ("create", "delete", "get", "list", "update"),
        "Its memory, which must outlive a restart, in as many parts as it needs.",
        limits.MEMORY,
    ),
    WriteRight(
        _status_in_config_map,
        "",
        ("configmaps",),
        ("patch",),
        "How the policies stand, in reconciler-status.",
        limits.MEMORY,
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
        limits.EVENTS,
    ),
    WriteRight(
        where_acted_on,
        "",
        ("nodes",),
        ("patch",),
        "The startup taint of new nodes comes off when they can be used. Beside that, labels of adopted pools' nodes: "
        "in the template they would drift them; and the taints and the label of those of scaled and drained pools.",
        limits.NODE_CHANGES,
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
        limits.POD_CHANGES,
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
