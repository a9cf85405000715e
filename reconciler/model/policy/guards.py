"""The kinds that guard changes: ChangeGuard, ChangeApproval, and recurring windows of time."""

from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from reconciler.model.fields import NAME, MergeKey, Refers, Says, Shaped, Unit, Within
from reconciler.model.quantity import Duration


class Ceiling(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Limits; one that is absent does not limit."""

    max_removed_nodes: Annotated[
        int | None, Says("Most nodes removed that were empty."), Within(0, 100_000), Unit("nodes")
    ] = None
    max_removed_percent: Annotated[
        int | None,
        Says(
            "Most nodes of a pool removed, in percent of those it has as the plan or hour begins; one may go, unless 0."
        ),
        Within(0, 100),
        Unit("%"),
    ] = None
    max_disrupted_gpus: Annotated[
        int | None,
        Says("Most GPUs in use whose pods are moved, by us or by Karpenter."),
        Within(0, 1_000_000),
        Unit("GPUs"),
    ] = msgspec.field(name="maxDisruptedGPUs", default=None)
    max_deleted_node_pools: Annotated[
        int | None, Says("Most NodePools deleted."), Within(0, 1_000), Unit("NodePools")
    ] = None


class ChangeGuard(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Holds back what would remove or disrupt more than it allows, until it is approved."""

    suspend: Annotated[bool, Says("Set aside: it guards nothing until this is taken back.")] = False
    pool_names: Annotated[
        list[Annotated[str, Refers("GpuPool", all_as_star=True)]],
        Says('The pools it guards; "*" for all.'),
        Within(1, 1000),
    ]
    cluster_uid: Annotated[
        str | None,
        Says("The cluster it is for, by the uid of its namespace kube-system; any other is refused."),
        Shaped(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "a uid, such as 9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21"),
    ] = msgspec.field(name="clusterUID", default=None)
    per_plan: Annotated[Ceiling, Says("Limits of one plan.")] = Ceiling()
    per_hour: Annotated[Ceiling, Says("Limits of any hour.")] = Ceiling()


# --- ChangeApproval: what policies cause and may pass a guard, how far and how long; and objects that may be lost.

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


# --- Recurring times: a window opens whenever its schedule strikes, and stays open for its duration.


class Window(Struct, frozen=True, rename="camel", kw_only=True):
    """A recurring time in which nodes may begin to leave."""

    schedule: Annotated[
        str,
        Says("When it opens: minute, hour, day, month and weekday, as cron writes them."),
        Shaped(r"^\S+( +\S+){4}$", 'five fields, such as "0 20 * * *"'),
    ]
    time_zone: Annotated[
        str,
        Says("Time zone of the schedule."),
        Shaped(r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$", "a zone such as Europe/Berlin"),
    ] = "UTC"
    duration: Annotated[Duration, Says("How long it stays open.")]


class SizeSchedule(Window, frozen=True, rename="camel", kw_only=True):
    """Larger sizes of a pool at a recurring time."""

    min_size: Annotated[int | None, Says("Fewest nodes at this time."), Within(0, 100_000), Unit("nodes")] = None
    warm_nodes: Annotated[
        int | None, Says("Free nodes that are bought ahead at this time."), Within(0, 100_000), Unit("nodes")
    ] = None
