"""A plan for programs: its JSON, and the digest by which a change is known however the fleet moves."""

from collections import defaultdict
from collections.abc import Iterator
from hashlib import sha256
from typing import Any, Literal

import msgspec

from reconciler.model.change import PolicyChange
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.action import Hold
from reconciler.model.plan.consequence import Cause, Consequence
from reconciler.plan.capacity.words import limit_words
from reconciler.plan.impact.blame import Blame, blame
from reconciler.plan.obstacle_words import obstacles_words
from reconciler.report.canonical_json import canonical_json
from reconciler.report.decision_text import DecisionText
from reconciler.report.plans.blocked import blocked_titles
from reconciler.report.plans.changed import change_origin, verb_of
from reconciler.report.plans.facts_document import facts_document
from reconciler.report.plans.guard_json import freezes_json, guards_json
from reconciler.report.plans.impact import impact
from reconciler.report.plans.plan_shape import (
    FORMAT_VERSION,
    ChangeTold,
    ClusterSeen,
    ConsequenceTold,
    DecisionTold,
    EditTold,
    HeldBy,
    HomelessTold,
    KindUnread,
    PlanTold,
)
from reconciler.report.plans.planned import Planned
from reconciler.report.schema.json_parts import Tool
from reconciler.report.setting import snapshot_time


def payload(planned: Planned) -> dict[str, Any]:
    """As schemas/plan.json says."""
    entries: dict[str, Any] = msgspec.to_builtins(_plan(planned, blame(planned.plan, planned.base)))
    return entries


def change_digest(planned: Planned) -> str:
    """Of the changes only: as long as a person's edit stays the same, so does this."""
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
        cluster=ClusterSeen(setting.cluster, setting.cluster_uid, snapshot_time(setting)),
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
        wake_at=_time(plan.wake_at),
        memory=plan.memory,
    )


def _time(moment: Instant | None) -> str | None:
    return None if moment is None else timestamp(moment)


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
        hold_until=_time(decision_text.until),
        edits=[EditTold(each.path, each.before, each.after) for each in decision_text.edited],
        file=reason.origin.file if reason.origin else None,
        line=reason.origin.line if reason.origin else None,
    )


def _consequences(consequences: tuple[Consequence, ...], cause: Cause | Literal["spared"]) -> Iterator[ConsequenceTold]:
    for each in consequences:
        order = each.order
        yield ConsequenceTold(
            pool=each.pool,
            node_pool=each.node_pool,
            cause=cause,
            fate=each.fate,
            nodes=list(each.nodes),
            gpus=each.gpus,
            gpus_in_use=each.gpus_in_use,
            pods=each.pods,
            micro_dollars_per_hour=each.micro_dollars_per_hour,
            unpriced=each.unpriced,
            instance_type=(order.instance_type or None) if order else None,
            capacity_type=(order.capacity_type or None) if order else None,
            stage=order.stage if order else None,
            bought_for=order.why if order else None,
            pods_served=each.serves,
            limit=limit_words(order.limit) if order and order.limit else "",
            wave=each.wave,
            seconds=each.seconds,
            held_by=[HeldBy(hindrance.title, count) for hindrance, count in each.held_by],
            homeless=[
                HomelessTold(homeless.owner, obstacles_words(homeless.why), homeless.pods) for homeless in each.homeless
            ],
            begins_at=_time(each.first_at),
        )
