"""The JSON of a plan, as structs: what `plan -o json` prints, and the one source of its schema."""

from typing import Annotated, Any, Literal

import msgspec

from reconciler.model.plan.capacity import Stage, Why
from reconciler.model.plan.consequence import Cause, Fate
from reconciler.model.plan.decision import Action, HoldClass, Ref
from reconciler.model.plan.guard_verdict import Measure, Needed, Period
from reconciler.model.plan.memory import Memory
from reconciler.report.json_schema import TIME_PATTERN, Keywords, Time, Tool, shape_schema
from reconciler.report.simulation.simulated_json import Summary

FORMAT_VERSION: Literal[2] = 2

# Any, of the forms that plan_shape.py describes: an object of another form differs from code to code.
Fact = Annotated[Any, msgspec.Meta(extra_json_schema={"$ref": "#/definitions/Fact"})]

Digest = Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}$")]
Words = Annotated[
    dict[str, list[str]],
    msgspec.Meta(description="By field, below spec: its value in the words that people write; of a list, its items."),
]


class ClusterSeen(msgspec.Struct, frozen=True):
    """The cluster that was planned for."""

    name: str
    uid: Annotated[str, msgspec.Meta(description="Of its namespace kube-system.")]
    seen_at: Annotated[Time | None, msgspec.Meta(description="Null where a file does not tell.")]


class KindUnread(msgspec.Struct, frozen=True):
    """A kind that could not be read: that none are seen does not mean there are none."""

    kind: str
    why: str


class ChangeTold(msgspec.Struct, frozen=True):
    """Compared with a base, a policy that is edited; else an object of the cluster that is written or deleted."""

    kind: str
    name: str
    verb: Literal["add", "change", "remove"]
    before: Annotated[Words | None, msgspec.Meta(description="Null where there was nothing.")]
    after: Annotated[Words | None, msgspec.Meta(description="Null where there is nothing any more.")]
    file: str
    line: int


class EditTold(msgspec.Struct, frozen=True):
    """A field of an object that is there, as it is and as it would be; of a list, one item that goes or comes."""

    path: str
    before: Annotated[str | None, msgspec.Meta(description="Null where there is nothing.")]
    after: Annotated[str | None, msgspec.Meta(description="Null where there is nothing any more.")]


class DecisionTold(msgspec.Struct, frozen=True):
    """What is done, or is not, and why."""

    planner: str
    subject: Ref
    pool: Annotated[str, msgspec.Meta(description="The GpuPool it is for.")]
    action: Annotated[Action | None, msgspec.Meta(description="Null where nothing is done yet.")]
    would: Annotated[bool, msgspec.Meta(description="The pool is only observed: nothing is carried out.")]
    observed_because: Annotated[
        str,
        msgspec.Meta(
            description="Why the pool is only observed, where the decision says what would be done or waited for; "
            "else empty."
        ),
    ]
    reason: Annotated[str, msgspec.Meta(description="A code.")]
    facts: Annotated[
        dict[str, Fact],
        msgspec.Meta(description="By name: which there are follows from the code (docs/reference/reasons.md)."),
    ]
    sentence: str
    remedy: str
    hold: Annotated[
        HoldClass | None,
        msgspec.Meta(description="Blocked: until a person acts. Waiting: for time, demand or a mode. Null: an action."),
    ]
    held: Annotated[
        bool,
        msgspec.Meta(description="A person or a guard holds it; false for an action, and a hold that ends by itself."),
    ]
    hold_until: Time | None
    edits: Annotated[
        list[EditTold], msgspec.Meta(description="What it changes in an object, or would change if it were not held.")
    ]
    file: Annotated[str | None, msgspec.Meta(description="The policy that asked for it.")]
    line: int | None


class Amount(msgspec.Struct, frozen=True):
    """As it is now, once all is done that comes without this change, and once all is done with it."""

    now: int
    before: int
    after: int


class Impact(msgspec.Struct, frozen=True):
    """What it does to the fleet, all pools together."""

    nodes: Amount
    gpus: Amount
    gpus_disrupted: Annotated[int, msgspec.Meta(description="GPUs in use on nodes that this change takes away.")]
    pods_evicted: Annotated[int, msgspec.Meta(description="Pods that this change makes move.")]
    nodes_bought: Annotated[int, msgspec.Meta(description="Nodes that are bought because of this change.")]
    gpus_bought: Annotated[int, msgspec.Meta(description="GPUs of these nodes.")]
    micro_dollars_per_hour: Annotated[
        Amount,
        msgspec.Meta(
            description="All three by the same prices and commitments: those of this change, and those of the base for "
            "machines that only the base prices. after - before is the money of the consequences caused by the change, "
            "less the money of those that it spares."
        ),
    ]
    repriced_micro_dollars_per_hour: Annotated[
        int,
        msgspec.Meta(
            description="What the fleet as it is costs more by the prices and commitments of this change than by those "
            "of the base; in no amount above. 0 without a base."
        ),
    ]


class HeldBy(msgspec.Struct, frozen=True):
    """What holds nodes up."""

    name: str
    nodes: int


class HomelessTold(msgspec.Struct, frozen=True):
    """Pods of one owner that would fit nowhere."""

    owner: Annotated[str, msgspec.Meta(description="namespace/name of what made them.")]
    why: str
    pods: int


class ConsequenceTold(msgspec.Struct, frozen=True):
    """Nodes that share a fate."""

    pool: str
    node_pool: str
    cause: Annotated[
        Cause | Literal["spared"],
        msgspec.Meta(
            description="standing: comes without this change too. spared: would come without it, and does not with it."
        ),
    ]
    fate: Fate
    nodes: Annotated[
        list[str],
        msgspec.Meta(
            description="Names; for each node that is not there yet that of its NodeClaim, or one with slashes that "
            "stands for it. Of what a limit holds back at least so many."
        ),
    ]
    gpus: int
    gpus_in_use: int
    pods: Annotated[int, msgspec.Meta(description="Pods that must move.")]
    micro_dollars_per_hour: Annotated[
        int,
        msgspec.Meta(
            description="What the bill changes by; negative is saved. What is scheduled is in no amount of the impact."
        ),
    ]
    unpriced: Annotated[int, msgspec.Meta(description="Nodes without a declared price: not in the money.")]
    instance_type: Annotated[
        str | None,
        msgspec.Meta(description="Of machines that come: bought, or in place of others of another sort; else null."),
    ]
    capacity_type: str | None
    stage: Annotated[
        Stage | None,
        msgspec.Meta(
            description="How far a purchase is. machine: a NodeClaim is there. asked: a smart pod asks for it. "
            "request: a smart pod of this plan does. karpenter: Karpenter is left to buy it, for pods that it sees. "
            "attempt: asked for at the next attempt. node_pool: once the NodePool is there. refill: once nodes that "
            "Karpenter removes are gone. schedule: when a schedule begins. limit: not while a limit allows no more."
        ),
    ]
    bought_for: Annotated[Why | None, msgspec.Meta(description="What asks for the nodes; else null.")]
    pods_served: Annotated[int, msgspec.Meta(description="Pods that nodes are bought for.")]
    limit: Annotated[str, msgspec.Meta(description="What allows no more nodes.")]
    wave: Annotated[int, msgspec.Meta(description="Nodes at once; 0 where nothing limits them.")]
    seconds: Annotated[int | None, msgspec.Meta(description="Roughly how long; null where no end is known.")]
    held_by: list[HeldBy]
    homeless: Annotated[list[HomelessTold], msgspec.Meta(description="Of the pods, those that would fit nowhere.")]
    begins_at: Annotated[
        Time | None,
        msgspec.Meta(
            description="When the first node is deleted, if scaled, emptied, if drained, or asked for, if bought; else "
            "null, as where a guard holds it."
        ),
    ]


class LimitTold(msgspec.Struct, frozen=True):
    """One limit of a guard."""

    measure: Measure
    period: Annotated[Period, msgspec.Meta(description="Of this plan, or of the hour that ends with it.")]
    counted: int
    before: Annotated[int, msgspec.Meta(description="Of an hour: what there was without this plan.")]
    expected: Annotated[
        int,
        msgspec.Meta(
            description="What drains will take later, once the timers of their candidates are over; not in counted. "
            "Drains wait for room within the limit."
        ),
    ]
    allowed: int
    exceeded: bool
    pool: Annotated[str, msgspec.Meta(description="Of a percentage: the pool that loses most.")]
    parts: Annotated[dict[str, int], msgspec.Meta(description="What it is made of, in words.")]
    file: str
    line: int


class GuardTold(msgspec.Struct, frozen=True):
    """What a guard says."""

    guard: str
    blocks: Annotated[bool, msgspec.Meta(description="It holds something, and nobody has approved that.")]
    would: Annotated[bool, msgspec.Meta(description="Of pools that are only observed: nothing is held.")]
    held: Annotated[int, msgspec.Meta(description="Decisions that it holds.")]
    until: Annotated[Time | None, msgspec.Meta(description="When there is room again, where only the hour is full.")]
    approval: Annotated[str, msgspec.Meta(description="The names of `approvals`, with commas between them.")]
    approvals: Annotated[list[str], msgspec.Meta(description="The ChangeApprovals that let something pass.")]
    needed: Annotated[Needed, msgspec.Meta(description="Ceilings of an approval that would let it pass.")]
    needed_objects: Annotated[list[str], msgspec.Meta(description="Policies that it would have to name.")]
    needed_losses: Annotated[list[str], msgspec.Meta(description="Objects whose loss it would have to agree to.")]
    alone: Annotated[list[str], msgspec.Meta(description="What would pass by itself.")]
    by_the_hour: Annotated[
        list[str],
        msgspec.Meta(description="Limits of perPlan that would let all go bit by bit, if they stood below perHour."),
    ]
    too_large: Annotated[
        int,
        msgspec.Meta(description="Nodes to be drained later that exceed a limit each by itself: they will be held."),
    ]
    limits: list[LimitTold]


class FreezeTold(msgspec.Struct, frozen=True):
    """What is frozen: only untainting and releasing go on there."""

    what: str
    until: Annotated[str, msgspec.Meta(description="As it stands in the annotation.")]
    reason: str


class ForecastTold(msgspec.Struct, frozen=True):
    """What would come of it in some hours, if the present load goes on."""

    seconds: Annotated[int, msgspec.Meta(description="How far it looks ahead.")]
    without: Annotated[Summary | None, msgspec.Meta(description="Without this change; null where there is no base.")]
    with_it: Annotated[Summary, msgspec.Meta(description="With it, as far as guards allow it now.")] = msgspec.field(
        name="with"
    )
    approved: Annotated[
        Summary | None,
        msgspec.Meta(description="With it, once all that guards hold is approved; null: they hold nothing."),
    ]


class PlanTold(msgspec.Struct, frozen=True):
    """What would happen, and why."""

    format_version: Literal[2]
    tool: Tool
    environment: str
    revision: str
    base_revision: Annotated[str | None, msgspec.Meta(description="What the changes are compared with.")]
    cluster: ClusterSeen
    now: Time
    digest: Annotated[Digest, msgspec.Meta(description="Of the plan: the same inputs give the same.")]
    change_digest: Annotated[Digest, msgspec.Meta(description="Of the changes only, however the fleet moves.")]
    saved_digest: Annotated[
        Digest | None,
        msgspec.Meta(description="Of the whole file that --out wrote: what `apply --digest` is to be given."),
    ]
    changes: list[ChangeTold]
    decisions: list[DecisionTold]
    blocked: Annotated[
        list[str], msgspec.Meta(description="Subjects of the blocked holds that count: any ends with exit code 4.")
    ]
    impact: Impact
    consequences: list[ConsequenceTold]
    forecast: Annotated[ForecastTold | None, msgspec.Meta(description="Where --forecast asked for it.")]
    guards: list[GuardTold]
    freezes: list[FreezeTold]
    unread: list[KindUnread]
    notices: list[str]
    wake_at: Annotated[Time | None, msgspec.Meta(description="When to plan again, if nothing changes before.")]
    memory: Memory


# --- The JSON Schema of a plan's JSON, from the structs it is made of.

_FACT = {"$ref": "#/definitions/Fact"}
_FACTS = {"type": "object", "additionalProperties": _FACT}
FORMS: tuple[Keywords, ...] = (
    {"description": "A time.", "type": "string", "pattern": TIME_PATTERN},
    {"description": "Text.", "type": "string"},
    {"description": "A number.", "type": "integer"},
    {"type": "boolean"},
    {"description": "An object of the cluster.", "$ref": "#/definitions/Ref"},
    {
        "description": "A cause, or the reason of what is held.",
        "type": "object",
        "properties": {"reason": {"type": "string"}, "facts": _FACTS, "sentence": {"type": "string"}},
        "required": ["facts", "reason", "sentence"],
        "additionalProperties": False,
    },
    {"description": "Several.", "type": "array", "items": _FACT},
    {"description": "Fields by name, as docs/reference/reasons.md says of the code.", **_FACTS},
)


def plan_schema() -> Keywords:
    """As it is published."""
    schema = shape_schema(PlanTold, "Plan", "reconciler/report/plans/plan_shape.py")
    fact = {"description": "One fact of a reason, in one of these forms.", "anyOf": list(FORMS)}
    return schema | {"definitions": dict(sorted({**schema["definitions"], "Fact": fact}.items()))}
