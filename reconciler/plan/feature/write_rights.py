"""What a feature declares of the rights that writing needs: which policies ask for a right, and what the right is."""

from collections.abc import Callable

import msgspec

from reconciler.model import names
from reconciler.model.desired import Declared, Manifest
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.right import RightLimits

# Server-side apply is a patch, and where the object is not there yet, its maker must be allowed to create it too.
APPLY_AND_DELETE = ("create", "delete", "patch")


# By these a node is of a pool. The controller writes neither, so no other node becomes one.
NODES_OF_POOLS = (names.KARPENTER_POOL, names.POOL)
OWN_OBJECTS = ((names.MANAGED, "true"),)
LEFT_BEHIND = RightLimits("delete what an older version made", labels=OWN_OBJECTS)


class Enforced(msgspec.Struct, frozen=True):
    """The pools that are acted on, and what their templates yield; or any that there may be."""

    namespace: str  # where the reconciler runs
    pools: tuple[Declared[GpuPool], ...] = ()
    scaled: frozenset[str] = frozenset()  # of these, those that a NodeProvisioner scales
    drained: frozenset[str] = frozenset()  # and those that a DrainPolicy names
    manifests: tuple[Manifest, ...] = ()
    is_any: bool = False
    resources: bool | None = None  # whether policies are custom resources; None: they may be


class WriteRight(msgspec.Struct, frozen=True):
    """`asked_for`: the namespaces for which the right is needed; nothing stands for the whole cluster."""

    asked_for: Callable[[Enforced], set[str]]
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    limits: RightLimits | None = None


def where_acted_on(enforced: Enforced) -> set[str]:
    """In the whole cluster, where any pool is in mode Enforce."""
    return {""} if enforced.is_any or enforced.pools else set()


def where_left_by_older_versions(enforced: Enforced) -> set[str]:
    """In our own namespace, where older versions made smart pods, and what templates yielded."""
    return {enforced.namespace} if enforced.is_any or enforced.pools else set()
