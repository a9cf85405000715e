"""Annotations of policy lines: effects of edits on nodes, and holds."""

from collections import Counter
from collections.abc import Iterator

import msgspec

from reconciler.model.bundle import PolicyChange
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.evaluation import DrainReport, ScalingReport
from reconciler.model.problem import Origin
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.impact.blame import Blame, pool_of
from reconciler.report.document import Finding, Severity
from reconciler.report.plans.changed import (
    ALREADY,
    HELD,
    IN_PLACE,
    buy_words,
    change_origin,
    drain_words,
    drained_pools,
    drift_words,
    effect,
    field_words,
    schedule_words,
)
from reconciler.report.plans.guard_section import approve_words, blocked_words
from reconciler.report.plans.planned import Planned, beside_guards, hold_findings, is_blocking
from reconciler.report.wording import counted, difference

HELD_UP = "HeldUp"

_BY_US: frozenset[Fate] = frozenset({"scaled", "drained", "bought"})
# Other fates do not remove nodes now.
_SUMMARIZED: frozenset[Fate] = frozenset({"scaled", "drained", "bought", "removed", "replaced", "blocked", "deleted"})


def annotations(planned: Planned, blamed: Blame) -> tuple[Finding, ...]:
    """One annotation per policy line with consequences; in-place changes get none."""
    found = _edited(planned, blamed) if planned.base else _written(planned, blamed)
    return tuple(sorted([*_blocked(planned), *hold_findings(beside_guards(planned.decision_texts)), *found]))


def findings(planned: Planned, blamed: Blame) -> tuple[Finding, ...]:
    """Held decisions, and nodes that this change would disrupt but that cannot be disrupted."""
    return tuple(sorted([*hold_findings((*planned.held, *planned.waiting)), *_held_up(planned, blamed)]))


def _blocked(planned: Planned) -> Iterator[Finding]:
    """At the line of the exceeded limit."""
    for each in planned.plan.guarded:
        if each.blocks:
            origin = each.exceeded[0].origin if each.exceeded else each.origin
            sentence = blocked_words(planned, each)
            remedy = approve_words(planned.setting, each)
            title = f"ChangeGuard/{each.guard}"
            severity: Severity = "error" if is_blocking(planned.decision_texts, each) else "warning"
            finding = _beside(origin, severity, title, sentence)
            yield msgspec.structs.replace(finding, remedy=f"to let the change pass: {remedy}" if remedy else "")


def _edited(planned: Planned, blamed: Blame) -> Iterator[Finding]:
    for change in planned.changes:
        title = f"{change.kind}/{change.name}"
        summary = _caused(planned, blamed, change)
        if change.verb != "change":
            words = drift_words(planned, blamed, change) or drain_words(planned, blamed, change)
            words = words or buy_words(planned, blamed, change) or schedule_words(planned, blamed, change)
            if words:
                yield _beside(change.origin, "warning", title, f"{title}: {words}; {summary}")
            continue
        for field in change.fields:
            words, tone = effect(planned, blamed, change, field)
            if tone != "dim" and words not in {IN_PLACE, HELD, ALREADY} and summary:
                yield _beside(field.origin, "warning", title, f"{field_words(field)}: {words}; {summary}")


def _caused(planned: Planned, blamed: Blame, change: PolicyChange) -> str:
    """Consequences that an edit of such a policy can cause."""
    fates = _BY_US
    match change.kind:
        case "NodeProvisioner":
            pools = {each.pool for each in planned.plan.report(ScalingReport).sizes if each.provisioner == change.name}
        case "DrainPolicy":
            pools, fates = set(drained_pools(planned, change.name)), frozenset({"drained"})
        case _:
            return _summary(blamed.causes, change.name)
    own = tuple(each for each in blamed.causes if each.fate in fates)
    return "; ".join(filter(None, (_summary(own, pool) for pool in sorted(pools))))


def _written(planned: Planned, blamed: Blame) -> Iterator[Finding]:
    by_karpenter = tuple(each for each in blamed.causes if each.fate not in _BY_US)
    for decision_text in planned.decision_texts:
        decision = decision_text.decision
        if decision_text.held and not isinstance(decision.reason.facts, HeldByGuard):
            continue
        summary = _summary(by_karpenter, decision.pool) if decision.subject.kind == "NodePool" else ""
        if summary and decision.reason.origin:
            text = f"{decision_text.sentence} {summary}"
            yield _beside(decision.reason.origin, "warning", decision.subject.title, text)
    yield from _drained(planned, tuple(each for each in blamed.causes if each.fate == "drained"))
    yield from _bought(planned, tuple(each for each in blamed.causes if each.fate == "bought"))


def _drained(planned: Planned, drained: tuple[Consequence, ...]) -> Iterator[Finding]:
    """At the DrainPolicy of each pool whose nodes are drained."""
    policies = {each.pool: each for each in planned.plan.report(DrainReport).weighed}
    for each in drained:
        weighed = policies.get(each.pool)
        if weighed is not None and weighed.reason.origin is not None:
            title = f"DrainPolicy/{weighed.policy}"
            yield _beside(weighed.reason.origin, "warning", title, _summary((each,), each.pool))


def _bought(planned: Planned, bought: tuple[Consequence, ...]) -> Iterator[Finding]:
    """At the policy that sets the size of each pool with bought nodes."""
    for evaluated in planned.plan.report(ScalingReport).sizes:
        summary = _summary(bought, evaluated.pool)
        if summary and evaluated.reason.origin is not None:
            yield _beside(evaluated.reason.origin, "warning", f"NodeProvisioner/{evaluated.provisioner}", summary)


def _summary(consequences: tuple[Consequence, ...], pool: str) -> str:
    """Counts, the same as in every other report."""
    own = [each for each in consequences if pool_of(each) == pool and each.fate in _SUMMARIZED]
    fates: Counter[Fate] = Counter()
    for each in own:
        fates[each.fate] += len(each.nodes)
    lines = [f"{counted(nodes, 'node')} {fate}" for fate, nodes in fates.items()]
    if pods := sum(each.pods for each in own):
        lines.append(f"{counted(pods, 'pod')} must move")
    if gpus := sum(each.gpus_in_use for each in own):
        lines.append(f"{counted(gpus, 'GPU')} in use")
    if money := sum(each.micro_dollars_per_hour for each in own):
        lines.append(f"{difference(money)} $/h")
    return ", ".join(lines)


def _held_up(planned: Planned, blamed: Blame) -> Iterator[Finding]:
    for each in blamed.causes:
        if each.fate == "blocked":
            by = ", ".join(
                f"{counted(count, 'node')} because of {hindrance.title}" for hindrance, count in each.held_by
            )
            sentence = f"{counted(len(each.nodes), 'node')} of NodePool/{each.node_pool} drift but cannot be disrupted"
            finding = _beside(_cause(planned, each), "warning", f"NodePool/{each.node_pool}", sentence)
            yield msgspec.structs.replace(finding, code=HELD_UP, sentence=f"{sentence}: {by}" if by else sentence)


def _cause(planned: Planned, consequence: Consequence) -> Origin | None:
    """The edited line; otherwise the line that the NodePool is rendered from."""
    for change in planned.changes:
        if change.kind == "GpuPool" and change.name == pool_of(consequence):
            return change_origin(change)
    for decision_text in planned.acted:
        subject = decision_text.decision.subject
        if subject.kind == "NodePool" and subject.name == consequence.node_pool:
            return decision_text.decision.reason.origin
    return None


def _beside(origin: Origin | None, severity: Severity, title: str, sentence: str) -> Finding:
    file, line = (origin.file, origin.line) if origin else ("", 0)
    return Finding(file, line, 0, title, sentence.rstrip("; "), severity=severity, subject=title)
