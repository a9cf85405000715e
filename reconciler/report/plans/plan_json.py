"""JSON of a plan, and the change digest, which does not depend on the state of the cluster."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from reconciler.model.bundle import PolicyChange
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.consequence import Cause, Consequence
from reconciler.model.plan.decision import Facts, Hold, Obstacle, Reason, Ref
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.plan.capacity.words import limit_words, obstacle_words, obstacles_words
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.impact.blame import Blame, blame
from reconciler.plan.impact.pricing import Bills
from reconciler.report.decision_text import DecisionText
from reconciler.report.header import time_json
from reconciler.report.json_schema import Tool, told
from reconciler.report.plans.changed import change_origin, verb_of
from reconciler.report.plans.plan_shape import (
    FORMAT_VERSION,
    Amount,
    ChangeTold,
    ClusterSeen,
    ConsequenceTold,
    DecisionTold,
    FreezeTold,
    GuardTold,
    HeldBy,
    HomelessTold,
    Impact,
    KindUnread,
    LimitTold,
    PlanTold,
)
from reconciler.report.plans.planned import Planned, blocked_titles
from reconciler.report.sentences import sentence
from reconciler.report.wording import canonical_json


def payload(planned: Planned) -> dict[str, Any]:
    """The payload, as described by schemas/plan.json."""
    entries: dict[str, Any] = msgspec.to_builtins(_plan(planned, blame(planned.plan, planned.base)))
    return entries


def change_digest(planned: Planned) -> str:
    """Digest of the changes only: stable while the edit does not change."""
    written = canonical_json(msgspec.to_builtins(_changes(planned)))
    return f"sha256:{sha256(written.encode()).hexdigest()}"


def _plan(planned: Planned, blamed: Blame) -> PlanTold:
    setting, plan = planned.setting, planned.plan
    return PlanTold(
        format_version=FORMAT_VERSION,
        tool=Tool("reconciler", setting.tool_version),
        environment=setting.environment,
        revision=setting.revision,
        base_revision=setting.base_revision or None,
        cluster=ClusterSeen(setting.cluster, setting.cluster_uid, time_json(setting.seen_at or None)),
        now=timestamp(setting.now),
        digest=plan.digest,
        change_digest=change_digest(planned),
        saved_digest=planned.saved_digest or None,
        changes=_changes(planned),
        decisions=[decision_json(each) for each in planned.decision_texts],
        blocked=blocked_titles(planned.decision_texts),
        impact=impact(planned, blamed),
        consequences=[
            *_consequences(blamed.without, "standing"),
            *_consequences(blamed.causes, "change"),
            *_consequences(blamed.spared, "spared"),
        ],
        forecast=None,
        guards=guards_json(plan.guarded),
        freezes=freezes_json(planned.freezes),
        unread=[KindUnread(each.kind, each.why) for each in sorted(planned.unread)],
        notices=[*planned.warnings, *planned.notices],
        wake_at=time_json(plan.wake_at),
        memory=plan.memory,
    )


def _changes(planned: Planned) -> list[ChangeTold]:
    if planned.base is not None:
        return [_policy_change(each) for each in planned.changes]
    return [_written(each) for each in planned.acted]


def _policy_change(change: PolicyChange) -> ChangeTold:
    origin = change_origin(change)
    before = None if change.verb == "add" else _words((field.path, field.before) for field in change.fields)
    after = None if change.verb == "remove" else _words((field.path, field.after) for field in change.fields)
    return ChangeTold(change.kind, change.name, change.verb, before, after, origin.file, origin.line)


def _words(fields: Iterator[tuple[str, str | None]]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path, words in fields:
        if words is not None:
            found[path].append(words)
    return dict(found)


def _written(decision_text: DecisionText) -> ChangeTold:
    decision, origin = decision_text.decision, decision_text.decision.reason.origin
    verb = verb_of(decision)
    before = None if verb == "add" else _words((each.path, each.before) for each in decision_text.edited)
    after = None if verb == "remove" else _words((each.path, each.after) for each in decision_text.edited)
    file, line = (origin.file, origin.line) if origin else ("", 0)
    return ChangeTold(decision.subject.kind, decision.subject.name, verb, before, after, file, line)


def decision_json(decision_text: DecisionText) -> DecisionTold:
    """One decision; the same wherever decisions are listed."""
    decision, reason = decision_text.decision, decision_text.decision.reason
    act = decision.act
    return DecisionTold(
        planner=decision.planner,
        subject=decision.subject,
        pool=decision.pool,
        action=None if isinstance(act, Hold) else act,
        would=decision.would,
        observed_because=decision_text.observation.causes_text if decision_text.observation is not None else "",
        reason=reason.code,
        facts=facts_document(reason.facts),
        sentence=decision_text.sentence,
        remedy=decision_text.remedy,
        hold=decision_text.hold,
        held=decision_text.held_by_someone,
        hold_until=time_json(decision_text.until),
        edits=list(decision_text.edited),
        file=reason.origin.file if reason.origin else None,
        line=reason.origin.line if reason.origin else None,
    )


def _consequences(consequences: tuple[Consequence, ...], cause: Cause | Literal["spared"]) -> Iterator[ConsequenceTold]:
    for each in consequences:
        order = each.order
        yield told(
            ConsequenceTold,
            each,
            cause=cause,
            instance_type=(order.instance_type or None) if order else None,
            capacity_type=(order.capacity_type or None) if order else None,
            stage=order.stage if order else None,
            bought_for=order.why if order else None,
            pods_served=each.serves,
            limit=limit_words(order.limit) if order and order.limit else "",
            held_by=[HeldBy(hindrance.title, count) for hindrance, count in each.held_by],
            homeless=[told(HomelessTold, homeless, why=obstacles_words(homeless.why)) for homeless in each.homeless],
            begins_at=time_json(each.first_at),
        )


# --- Facts of a reason in a published format: objects by kind and name, times as RFC 3339.


def facts_document(facts: Facts) -> dict[str, Any]:
    """Facts by name, without empty optional facts."""
    return _fields(type(facts), facts.fields())


def _fields(of: Any, values: dict[str, Any]) -> dict[str, Any]:
    hints = _hints(of)
    return {name: _plain(value, hints.get(name)) for name, value in values.items() if value is not None}


def _plain(value: Any, hint: Any) -> Any:
    """`hint` is the declared type, which distinguishes a time from a number."""
    if isinstance(value, Reason):
        return {"reason": value.code, "facts": facts_document(value.facts), "sentence": sentence(value)}
    if isinstance(value, Obstacle):
        return obstacle_words(value)
    if isinstance(value, tuple):
        of = next(iter(get_args(hint)), None)
        return [_plain(each, of) for each in value]
    if isinstance(value, msgspec.Struct) and not isinstance(value, Ref):
        return _fields(type(value), {name: getattr(value, name) for name in value.__struct_fields__})
    return timestamp(value) if _is_time(hint) else msgspec.to_builtins(value)


@cache
def _hints(of: Any) -> dict[str, Any]:
    return get_type_hints(of)


def _is_time(hint: Any) -> bool:
    if hint is Instant:
        return True
    return get_origin(hint) in {Union, UnionType} and Instant in get_args(hint)


# --- JSON of guards and freezes.


def guards_json(guarded: Sequence[GuardVerdict]) -> list[GuardTold]:
    """Each guard in force."""
    return [
        told(
            GuardTold,
            each,
            until=time_json(each.until),
            approval=", ".join(each.approvals),
            limits=[
                told(LimitTold, count, parts=dict(count.parts), file=count.origin.file, line=count.origin.line)
                for count in each.counts
            ],
        )
        for each in guarded
    ]


def freezes_json(freezes: Sequence[Freeze]) -> list[FreezeTold]:
    """Each freeze in force."""
    return [FreezeTold(each.scope_text, each.written, each.reason) for each in freezes]


# --- Impact of a plan on the whole fleet.

_DISRUPTED = frozenset({"drained", "replaced", "blocked", "deleted"})


def impact(planned: Planned, blamed: Blame) -> Impact:
    """A replaced node counts as one removed and one added. Drift that cannot proceed now counts as if it were done."""
    disrupted = [each for each in blamed.causes if each.fate in _DISRUPTED]
    bought = [each for each in blamed.causes if each.fate == "bought"]
    cost = total_cost(planned)
    return Impact(
        nodes=planned.nodes,
        gpus=planned.gpus,
        gpus_disrupted=sum(each.gpus_in_use for each in disrupted),
        pods_evicted=sum(each.pods for each in disrupted),
        nodes_bought=sum(len(each.nodes) for each in bought),
        gpus_bought=sum(each.gpus for each in bought),
        micro_dollars_per_hour=Amount(cost.now, cost.without, cost.with_change),
        repriced_micro_dollars_per_hour=cost.repriced,
    )


def total_cost(planned: Planned) -> Bills:
    """Total over all pools."""
    costs = (msgspec.structs.astuple(pool.cost) for pool in planned.pools)
    return Bills(*map(sum, zip(*costs, strict=True)))
