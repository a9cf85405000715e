"""ChangeApproval: what policies cause and may pass a guard, how far and how long; and objects that may be lost."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import NAME, MergeKey, Refers, Says, Shaped, Within
from reconciler.model.policy.change_guard import Ceiling

ApprovedKind = Literal["GpuPool", "NodeProvisioner", "DrainPolicy", "PressurePolicy"]


class ApprovedObject(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A policy at exactly one content."""

    kind: Annotated[ApprovedKind, Says("Kind of the policy.")]
    name: Annotated[str, Says("Name of the policy."), Within(1, 253), NAME]
    digest: Annotated[
        str,
        Says("Of its resolved result, spec and rendering, whole: with any other content it is not approved."),
        Shaped(r"^sha256:[0-9a-f]{64}$", "sha256: and 64 hexadecimal digits, as reconciler approve writes it"),
    ]


class ChangeApproval(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Lets what named policies or a revision cause pass a guard, within ceilings; agrees to the loss of objects."""

    suspend: Annotated[bool, Says("Set aside: it approves nothing until this is taken back.")] = False
    guard_name: Annotated[
        str | None,
        Says("The guard that is passed; absent, only the loss of objects is agreed to."),
        Refers("ChangeGuard"),
    ] = None
    objects: Annotated[
        list[ApprovedObject],
        Says(
            "The policies whose consequences pass, each by the digest of its content: over rebases, squash merges and "
            "commits that leave it as it is, until its content changes. Absent, those of all policies of the revision."
        ),
        Within(0, 1000),
        MergeKey(("kind", "name")),
    ] = msgspec.field(default_factory=list)
    prune: Annotated[
        list[
            Annotated[
                str,
                Shaped(
                    r"^[A-Za-z][A-Za-z0-9]*(/[a-z0-9][-a-z0-9.]*){1,2}$",
                    "KIND/NAME or KIND/NAMESPACE/NAME, as plan tells it",
                ),
                Within(1, 600),
            ]
        ],
        Says("Objects that no policy declares any more and that may be deleted, such as NodePool/old."),
        Within(0, 1000),
    ] = msgspec.field(default_factory=list)
    revision: Annotated[
        str | None,
        Says(
            "Only policies of this revision, whole: what begins alike is another. Absent, the revision does not matter."
        ),
        Within(1, 253),
        Shaped(r"^[A-Za-z0-9][A-Za-z0-9:._/-]*$", "a commit's whole id, or a revision as plan tells it"),
    ] = None
    ceilings: Annotated[
        Ceiling, Says("What the approved consequences may come to; where one is absent, the guard's own limit stays.")
    ] = Ceiling()
    expires: Annotated[
        str,
        Says("When it ends."),
        Within(20, 35),
        Shaped(
            r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[-+][0-9]{2}:[0-9]{2})$",
            "a time, such as 2026-11-02T08:00:00Z",
        ),
    ]
    reason: Annotated[str, Says("Why it was given, for people."), Within(0, 1024)] = ""
