"""Structs of the JSON that `plan -o json` prints; the only source of its schema."""

from typing import Annotated, Any, Literal

import msgspec

from reconciler.model.plan.capacity import Stage, Why
from reconciler.model.plan.consequence import Cause, Fate
from reconciler.model.plan.decision import Action, HoldClass, Ref
from reconciler.model.plan.guard_verdict import Measure, Needed, Period
from reconciler.model.plan.memory import Memory
from reconciler.report.json_schema import TIME_PATTERN, Keywords, Time, Tool, says, shape_schema
from reconciler.report.simulation.simulated_json import Summary

FORMAT_VERSION: Literal[2] = 2

# Any, in one of the forms described in plan_shape.py: objects of other forms differ by code.
Fact = Annotated[Any, msgspec.Meta(extra_json_schema={"$ref": "#/definitions/Fact"})]

Digest = Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}$")]
Words = Annotated[
    dict[str, list[str]], says("Values by field below spec, as written in a policy; for a list, its items.")
]


class ClusterSeen(msgspec.Struct, frozen=True):
    """The cluster that the plan is for."""

    name: str
    uid: Annotated[str, says("UID of the namespace kube-system.")]
    seen_at: Annotated[Time | None, says("Snapshot time; null if unknown.")]


class KindUnread(msgspec.Struct, frozen=True):
    """A kind that could not be read: objects of this kind may exist."""

    kind: str
    why: str


class ChangeTold(msgspec.Struct, frozen=True):
    """With a base, an edited policy; otherwise an object of the cluster that is written or deleted."""

    kind: str
    name: str
    verb: Literal["add", "change", "remove"]
    before: Annotated[Words | None, says("Null if new.")]
    after: Annotated[Words | None, says("Null if deleted.")]
    file: str
    line: int


class EditTold(msgspec.Struct, frozen=True):
    """An edited field of an existing object, before and after; for a list, one item that is added or removed."""

    path: str
    before: Annotated[str | None, says("Null if absent.")]
    after: Annotated[str | None, says("Null if removed.")]

    @property
    def words(self) -> str:
        """Such as spec.limits.nodes: 8 -> 10, or spec.template.spec.taints: + {effect: NoSchedule, key: dedicated}."""
        if self.before is None:
            return f"{self.path}: + {self.after}"
        if self.after is None:
            return f"{self.path}: - {self.before}"
        return f"{self.path}: {self.before} -> {self.after}"


class DecisionTold(msgspec.Struct, frozen=True):
    """A decision, and its reason."""

    planner: str
    subject: Ref
    pool: Annotated[str, says("The GpuPool of the decision.")]
    action: Annotated[Action | None, says("Null for a hold.")]
    would: Annotated[bool, says("Suppressed: the pool is in Observe mode.")]
    observed_because: Annotated[str, says("Why the decision is suppressed; otherwise empty.")]
    reason: Annotated[str, says("Code of the reason.")]
    facts: Annotated[dict[str, Fact], says("Facts by name; the code determines which (docs/reference/reasons.md).")]
    sentence: str
    remedy: str
    hold: Annotated[
        HoldClass | None, says("Blocked: until a person acts. Waiting: for time, demand or a mode. Null: an action.")
    ]
    held: Annotated[
        bool, says("A person or a guard holds the decision; false for actions and holds that end by themselves.")
    ]
    hold_until: Time | None
    edits: Annotated[list[EditTold], says("Edits of an existing object, carried out or held.")]
    file: Annotated[str | None, says("File of the policy that causes the decision.")]
    line: int | None


class Amount(msgspec.Struct, frozen=True):
    """Now, after all that happens without this change, and after all that happens with it."""

    now: int
    before: int
    after: int


class Impact(msgspec.Struct, frozen=True):
    """Impact on the whole fleet."""

    nodes: Amount
    gpus: Amount
    gpus_disrupted: Annotated[int, says("GPUs in use on nodes that this change removes.")]
    pods_evicted: Annotated[int, says("Pods that this change evicts.")]
    nodes_bought: Annotated[int, says("Nodes bought because of this change.")]
    gpus_bought: Annotated[int, says("GPUs of these nodes.")]
    micro_dollars_per_hour: Annotated[
        Amount,
        says(
            "All use the same prices and commitments: those of this change, and those of the base for machines that "
            "only the base prices. after - before is the cost of the consequences caused by the change, minus the cost "
            "of those that the change spares."
        ),
    ]
    repriced_micro_dollars_per_hour: Annotated[
        int,
        says(
            "Additional cost of the current fleet by the prices and commitments of this change, over those of the base;"
            " not included in the amounts above. 0 without a base."
        ),
    ]


class HeldBy(msgspec.Struct, frozen=True):
    """A reason why nodes cannot be disrupted."""

    name: str
    nodes: int


class HomelessTold(msgspec.Struct, frozen=True):
    """Pods of one owner that fit on no node."""

    owner: Annotated[str, says("namespace/name of the owner.")]
    why: str
    pods: int


class ConsequenceTold(msgspec.Struct, frozen=True):
    """Nodes with the same fate."""

    pool: str
    node_pool: str
    cause: Annotated[
        Cause | Literal["spared"],
        says("standing: happens also without this change. spared: happens only without this change."),
    ]
    fate: Fate
    nodes: Annotated[
        list[str],
        says(
            "Node names. For a node that does not exist yet, its NodeClaim's name, or a placeholder with slashes. Under"
            " a limit, the list is a lower bound."
        ),
    ]
    gpus: int
    gpus_in_use: int
    pods: Annotated[int, says("Pods that are evicted.")]
    micro_dollars_per_hour: Annotated[
        int, says("Change of the cost; negative values are savings. Scheduled purchases are not in the impact.")
    ]
    unpriced: Annotated[int, says("Nodes without a declared price, excluded from the cost.")]
    instance_type: Annotated[str | None, says("Machine type of bought or exchanged nodes; otherwise null.")]
    capacity_type: str | None
    stage: Annotated[
        Stage | None,
        says(
            "Stage of a purchase. machine: a NodeClaim exists. asked: a smart pod requests the node. request: a smart "
            "pod of this plan requests the node. karpenter: Karpenter buys for pods it sees. attempt: requested at the "
            "next attempt. node_pool: once the NodePool exists. refill: once nodes that Karpenter removes are deleted. "
            "schedule: when a schedule begins. limit: not bought because of a limit."
        ),
    ]
    bought_for: Annotated[Why | None, says("Why nodes are bought; otherwise null.")]
    pods_served: Annotated[int, says("Pods for which nodes are bought.")]
    limit: Annotated[str, says("The limit that prevents more nodes.")]
    wave: Annotated[int, says("Nodes at a time; 0 if unlimited.")]
    seconds: Annotated[int | None, says("Estimated duration; null if unknown.")]
    held_by: list[HeldBy]
    homeless: Annotated[list[HomelessTold], says("Pods that fit on no node.")]
    begins_at: Annotated[
        Time | None,
        says(
            "When the first node is deleted (scaled), drained (drained) or requested (bought); otherwise null, for "
            "example if a guard holds the change."
        ),
    ]


class LimitTold(msgspec.Struct, frozen=True):
    """One limit of a guard."""

    measure: Measure
    period: Annotated[Period, says("This plan, or the hour that ends with it.")]
    counted: int
    before: Annotated[int, says("For an hour: the count without this plan.")]
    expected: Annotated[
        int,
        says(
            "Later drains, once the timers of their candidates end; not part of counted. Drains wait until the limit "
            "allows them."
        ),
    ]
    allowed: int
    exceeded: bool
    pool: Annotated[str, says("For a percentage: the pool with the highest value.")]
    parts: Annotated[dict[str, int], says("Parts of the count, with their descriptions.")]
    file: str
    line: int


class GuardTold(msgspec.Struct, frozen=True):
    """Verdict of a guard."""

    guard: str
    blocks: Annotated[bool, says("The guard holds something that is not approved.")]
    would: Annotated[bool, says("For pools in Observe mode: nothing is held.")]
    held: Annotated[int, says("Number of held decisions.")]
    until: Annotated[Time | None, says("When the limit has room again, if only limits per hour are exceeded.")]
    approval: Annotated[str, says("The names in `approvals`, separated by commas.")]
    approvals: Annotated[list[str], says("ChangeApprovals that let changes pass.")]
    needed: Annotated[Needed, says("Ceilings of an approval that would let the change pass.")]
    needed_objects: Annotated[list[str], says("Policies that the approval must name.")]
    needed_losses: Annotated[list[str], says("Objects whose deletion the approval must allow.")]
    alone: Annotated[list[str], says("Objects that would pass alone.")]
    by_the_hour: Annotated[
        list[str], says("Limits of perPlan that, under perHour, would let the change pass in steps.")
    ]
    too_large: Annotated[
        int, says("Nodes to be drained later that each exceed a limit alone: the guard will hold them.")
    ]
    limits: list[LimitTold]


class FreezeTold(msgspec.Struct, frozen=True):
    """A freeze: the controller only removes its own taints, gates, Leases and eviction times."""

    what: str
    until: Annotated[str, says("Value of the annotation.")]
    reason: str


class ForecastTold(msgspec.Struct, frozen=True):
    """Simulated result after some hours, if the present load continues."""

    seconds: Annotated[int, says("Simulated time.")]
    without: Annotated[Summary | None, says("Without this change; null without a base.")]
    with_it: Annotated[Summary, says("With this change, as far as guards allow it now.")] = msgspec.field(name="with")
    approved: Annotated[
        Summary | None, says("With this change, once all held changes are approved; null if none is held.")
    ]


class PlanTold(msgspec.Struct, frozen=True):
    """A plan and its reasons."""

    format_version: Literal[2]
    tool: Tool
    environment: str
    revision: str
    base_revision: Annotated[str | None, says("Revision that the changes are compared with.")]
    cluster: ClusterSeen
    now: Time
    digest: Annotated[Digest, says("Digest of the plan; depends only on its inputs.")]
    change_digest: Annotated[Digest, says("Digest of the changes only, independent of the cluster state.")]
    saved_digest: Annotated[Digest | None, says("Digest of the file written by --out, for `apply --digest`.")]
    changes: list[ChangeTold]
    decisions: list[DecisionTold]
    blocked: Annotated[list[str], says("Subjects of the blocked holds that count: if any, the exit code is 4.")]
    impact: Impact
    consequences: list[ConsequenceTold]
    forecast: Annotated[ForecastTold | None, says("Only with --forecast.")]
    guards: list[GuardTold]
    freezes: list[FreezeTold]
    unread: list[KindUnread]
    notices: list[str]
    wake_at: Annotated[Time | None, says("When to plan again, if nothing changes before.")]
    memory: Memory


# --- JSON Schema of a plan's JSON, from its structs.

_FACT = {"$ref": "#/definitions/Fact"}
_FACTS = {"type": "object", "additionalProperties": _FACT}
FORMS: tuple[Keywords, ...] = (
    {"description": "A time.", "type": "string", "pattern": TIME_PATTERN},
    {"description": "Text.", "type": "string"},
    {"description": "A number.", "type": "integer"},
    {"type": "boolean"},
    {"description": "An object of the cluster.", "$ref": "#/definitions/Ref"},
    {
        "description": "A cause, or the reason of the held decision.",
        "type": "object",
        "properties": {"reason": {"type": "string"}, "facts": _FACTS, "sentence": {"type": "string"}},
        "required": ["facts", "reason", "sentence"],
        "additionalProperties": False,
    },
    {"description": "Several.", "type": "array", "items": _FACT},
    {"description": "Fields by name, as in docs/reference/reasons.md.", **_FACTS},
)


def plan_schema() -> Keywords:
    """The published schema."""
    schema = shape_schema(PlanTold, "Plan", "reconciler/report/plans/plan_shape.py")
    fact = {"description": "One fact of a reason, in one of these forms.", "anyOf": list(FORMS)}
    return schema | {"definitions": dict(sorted({**schema["definitions"], "Fact": fact}.items()))}
