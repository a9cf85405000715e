"""What people need who do with their own rights what the controller may not: approve, freeze, release."""

from collections.abc import Callable, Mapping

import msgspec

from reconciler.model.right import Right
from reconciler.policy.kind import GROUP
from reconciler.policy.rules.kinds import KINDS
from reconciler.schema.rights.reading import reading_rights

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
