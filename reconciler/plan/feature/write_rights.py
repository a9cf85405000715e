"""A feature's rights to write: which policies require a right, and the right itself."""

from collections.abc import Callable

import msgspec

from reconciler.model import names
from reconciler.model.desired import Declared, Manifest
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.right import RightLimits

# Server-side apply is a patch, and creating an absent object also requires the create verb.
APPLY_AND_DELETE = ("create", "delete", "patch")


# These labels make a node part of a pool. The controller writes neither, so it cannot add nodes to a pool.
NODES_OF_POOLS = (names.KARPENTER_POOL, names.POOL)
OWN_OBJECTS = ((names.MANAGED, "true"),)
LEFT_BEHIND = RightLimits("delete objects of older versions", labels=OWN_OBJECTS)


class Enforced(msgspec.Struct, frozen=True):
    """Enforced pools, and their rendered objects; or any possible ones."""

    namespace: str  # namespace of the reconciler
    pools: tuple[Declared[GpuPool], ...] = ()
    scaled: frozenset[str] = frozenset()  # pools with a NodeProvisioner
    drained: frozenset[str] = frozenset()  # pools with a DrainPolicy
    pressed: frozenset[str] = frozenset()  # pools from which a PressurePolicy moves pods
    elastic: frozenset[str] = frozenset()  # pools with a PressurePolicy in force
    manifests: tuple[Manifest, ...] = ()
    is_any: bool = False
    resources: bool | None = None  # whether policies are custom resources; None: unknown


class WriteRight(msgspec.Struct, frozen=True):
    """`asked_for`: namespaces that need the right; empty means the whole cluster."""

    asked_for: Callable[[Enforced], set[str]]
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str
    limits: RightLimits | None = None


def where_acted_on(enforced: Enforced) -> set[str]:
    """The whole cluster, if any pool is in mode Enforce."""
    return {""} if enforced.is_any or enforced.pools else set()


def where_left_by_older_versions(enforced: Enforced) -> set[str]:
    """Our own namespace, where older versions created smart pods and rendered objects."""
    return {enforced.namespace} if enforced.is_any or enforced.pools else set()
