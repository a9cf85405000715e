"""What writing needs: a table of what asks for a right, and only policies in mode Enforce ask for any.

Each line is a kind of write that a planner decides on. What has no line is never written, so a new action of a planner
comes with its line here. A kind that no template yields any more is taken away with the rights from before that change.
"""

from collections.abc import Callable, Sequence

import msgspec

from reconciler.model.desired import Declared, Desired, Manifest
from reconciler.model.kinds.gpu_pool import GpuPool
from reconciler.policy.manifests.check import KINDS
from reconciler.policy.published.rights.right import Right

# Server-side apply is a patch, and where the object is not there yet, its maker must be allowed to create it too.
_KEEP = ("create", "delete", "patch")


class Enforced(msgspec.Struct, frozen=True):
    """The pools that are acted on, and what their templates yield; or any that there may be, seen from a namespace."""

    pools: tuple[Declared[GpuPool], ...] = ()
    manifests: tuple[Manifest, ...] = ()
    any_from: str = ""


class Line(msgspec.Struct, frozen=True):
    """What asks for a right, as the namespaces it asks for, where nothing is the whole cluster; and the right."""

    asked_for: Callable[[Enforced], set[str]]
    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str


def _yielded(kind: str) -> Callable[[Enforced], set[str]]:
    """The templates of pools yield objects of a kind."""

    def asked_for(enforced: Enforced) -> set[str]:
        if enforced.any_from:
            # Whoever may make pods in every namespace may become anybody there: that is for policies to ask for.
            return {enforced.any_from if KINDS[kind].namespaced else ""}
        return {manifest.namespace for manifest in enforced.manifests if manifest.kind == kind}

    return asked_for


def _adopted(enforced: Enforced) -> set[str]:
    """A pool takes over a NodePool that someone else made."""
    return {""} if enforced.any_from or any(pool.spec.adopt for pool in enforced.pools) else set()


TABLE = (
    Line(
        _adopted, "", ("nodes",), ("patch",), "Labels of adopted pools' nodes: in the template they would drift them."
    ),
    Line(_yielded("NodePool"), "karpenter.sh", ("nodepools",), _KEEP, "What the pools' templates yield for Karpenter."),
    Line(
        _yielded("PriorityClass"),
        "scheduling.k8s.io",
        ("priorityclasses",),
        _KEEP,
        "PriorityClasses that the pools' templates yield.",
    ),
    Line(
        _yielded("PodDisruptionBudget"),
        "policy",
        ("poddisruptionbudgets",),
        _KEEP,
        "PodDisruptionBudgets that the pools' templates yield.",
    ),
    Line(_yielded("Pod"), "", ("pods",), _KEEP, "Pods that the pools' templates yield."),
)


def writing_rights(wishes: Sequence[Desired], namespace: str) -> tuple[Right, ...]:
    """For the policies of all these environments; without any, for whatever policies there may be."""
    enforced = _enforced(wishes) if wishes else Enforced(any_from=namespace)
    return tuple(
        Right(line.group, line.resources, line.verbs, line.why, namespace=where)
        for line in TABLE
        for where in sorted(line.asked_for(enforced))
    )


def _enforced(wishes: Sequence[Desired]) -> Enforced:
    pools: list[Declared[GpuPool]] = []
    manifests: list[Manifest] = []
    for wish in wishes:
        acted_on = [pool for pool in wish.pools if pool.spec.mode == "Enforce" and not pool.spec.suspend]
        names = {pool.name for pool in acted_on}
        pools += acted_on
        manifests += [manifest for manifest in wish.manifests if manifest.pool in names]
    return Enforced(tuple(pools), tuple(manifests))
