"""The kinds that guard changes: ChangeGuard, ChangeApproval, and recurring time windows."""

from typing import Annotated, Literal

import msgspec
from msgspec import Struct

from reconciler.model.fields import NAME, RFC_3339, MergeKey, Refers, Says, Shaped, Unit, Within
from reconciler.model.quantity import Duration

PoolNames = Annotated[list[Annotated[str, Refers("GpuPool", all_as_star=True)]], Within(1, 1000)]
Nodes = Annotated[int, Within(0, 100_000), Unit("nodes")]
NodesIfAny = Annotated[int | None, Within(0, 100_000), Unit("nodes")]


class Ceiling(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Limits; an absent limit does not apply."""

    max_removed_nodes: Annotated[NodesIfAny, Says("Maximum number of empty nodes removed.")] = None
    max_removed_percent: Annotated[
        int | None,
        Says(
            "Maximum share of a pool's nodes removed, of those at the start of the plan or hour. One node may always "
            "be removed, unless the share is 0."
        ),
        Within(0, 100),
        Unit("%"),
    ] = None
    max_disrupted_gpus: Annotated[
        int | None,
        Says("Maximum number of GPUs in use whose pods are moved, by reconciler or Karpenter."),
        Within(0, 1_000_000),
        Unit("GPUs"),
    ] = msgspec.field(name="maxDisruptedGPUs", default=None)
    max_deleted_node_pools: Annotated[
        int | None, Says("Maximum number of NodePools deleted."), Within(0, 1_000), Unit("NodePools")
    ] = None


class ChangeGuard(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Holds decisions that remove or disrupt more than its limits, until the decisions are approved."""

    suspend: Annotated[bool, Says("Suspends the guard.")] = False
    pool_names: Annotated[PoolNames, Says('Names of the guarded pools; "*" for all.')]
    cluster_uid: Annotated[
        str | None,
        Says("Uid of the namespace kube-system of the intended cluster; any other cluster is refused."),
        Shaped(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "a uid, such as 9b3c6f0e-52d1-4c0a-9f5e-0d6f6a1c7e21"),
    ] = msgspec.field(name="clusterUID", default=None)
    per_plan: Annotated[Ceiling, Says("Limits of one plan.")] = Ceiling()
    per_hour: Annotated[Ceiling, Says("Limits of one hour.")] = Ceiling()


# --- ChangeApproval: policies whose consequences may pass a guard, with ceilings and expiry; and objects that may be
# lost.

ApprovedKind = Literal["GpuPool", "NodeProvisioner", "DrainPolicy", "PressurePolicy"]


OBJECT_TITLE = Shaped(
    r"^[A-Za-z][A-Za-z0-9]*(/[a-z0-9][-a-z0-9.]*){1,2}$", "KIND/NAME or KIND/NAMESPACE/NAME, as printed by plan"
)


class ApprovedObject(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A policy with exactly one content."""

    kind: Annotated[ApprovedKind, Says("Kind of the policy.")]
    name: Annotated[str, Says("Name of the policy."), Within(1, 253), NAME]
    digest: Annotated[
        str,
        Says("Digest of its resolved spec and rendering; any other content is not approved."),
        Shaped(r"^sha256:[0-9a-f]{64}$", "sha256: and 64 hexadecimal digits, as reconciler approve writes it"),
    ]


class ChangeApproval(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Lets consequences of policies or a revision pass a guard, within ceilings; accepts the loss of objects."""

    suspend: Annotated[bool, Says("Suspends the approval.")] = False
    guard_name: Annotated[
        str | None,
        Says("Guard that is passed; absent, only the loss of objects is accepted."),
        Refers("ChangeGuard"),
    ] = None
    objects: Annotated[
        list[ApprovedObject],
        Says(
            "Policies whose consequences pass, each with the digest of its content: valid across rebases, "
            "squash merges and other commits, until the content changes. Absent: all policies of the revision."
        ),
        Within(0, 1000),
        MergeKey(("kind", "name")),
    ] = msgspec.field(default_factory=list)
    prune: Annotated[
        list[
            Annotated[
                str,
                OBJECT_TITLE,
                Within(1, 600),
            ]
        ],
        Says("Objects that no policy declares any more and that may be deleted, such as NodePool/old."),
        Within(0, 1000),
    ] = msgspec.field(default_factory=list)
    revision: Annotated[
        str | None,
        Says("The full revision of the policies; a prefix does not match. Absent: any revision."),
        Within(1, 253),
        Shaped(r"^[A-Za-z0-9][A-Za-z0-9:._/-]*$", "a full commit id, or a revision as printed by plan"),
    ] = None
    ceilings: Annotated[
        Ceiling, Says("Ceilings of the approved consequences; an absent one keeps the guard's own limit.")
    ] = Ceiling()
    expires: Annotated[str, Says("Expiry time."), Within(20, 35), RFC_3339]
    reason: Annotated[str, Says("Human-readable reason of the approval."), Within(0, 1024)] = ""


# --- Recurring times: a window opens at each time of its schedule, and stays open for its duration.


class Window(Struct, frozen=True, rename="camel", kw_only=True):
    """A recurring time window in which nodes may begin to leave."""

    schedule: Annotated[
        str,
        Says("Opening times in cron syntax: minute, hour, day, month and weekday."),
        Shaped(r"^\S+( +\S+){4}$", 'five fields, such as "0 20 * * *"'),
    ]
    time_zone: Annotated[
        str,
        Says("Time zone of the schedule."),
        Shaped(r"^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+){0,2}$", "a zone such as Europe/Berlin"),
    ] = "UTC"
    duration: Annotated[Duration, Says("How long the window stays open.")]


class SizeSchedule(Window, frozen=True, rename="camel", kw_only=True):
    """Larger sizes of a pool during a recurring time window."""

    min_size: Annotated[NodesIfAny, Says("Minimum nodes in the window.")] = None
    warm_nodes: Annotated[NodesIfAny, Says("Free nodes launched in advance in the window.")] = None
