"""What changes, as a list: policies and their fields; without a base to compare with, what is written and deleted."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Literal

import msgspec

from reconciler.model.change import FieldChange, PolicyChange
from reconciler.model.origin import Origin
from reconciler.model.plan.action import Apply, Delete, Evict, Hold
from reconciler.model.plan.decision import Decision
from reconciler.plan.drain.codes.candidacy import DrainCandidateNext
from reconciler.plan.drain.reasons import PLANNER as DRAIN
from reconciler.plan.guards.observing import Observation
from reconciler.plan.impact.blame import Blame
from reconciler.plan.scaling.reasons import PLANNER as SCALING
from reconciler.plan.smart_pods.reasons import PLANNER as SMART_PODS
from reconciler.report.blocks import Detail, Item, Tone
from reconciler.report.decision_text import DecisionText, decision_items, place_of, would
from reconciler.report.plans.effects import SWITCHES, drain_words, drift_words, effect
from reconciler.report.plans.planned import Planned
from reconciler.report.plans.purchases import buy_words, schedule_words

Verb = Literal["add", "change", "remove"]

_MARKS: dict[Verb, tuple[str, Tone]] = {"add": ("+", "good"), "change": ("~", "warn"), "remove": ("-", "bad")}


class ChangeCount(msgspec.Struct, frozen=True):
    """How much changes."""

    change: int = 0
    add: int = 0
    remove: int = 0
    supposed: Mapping[Observation, int] = {}  # objects of pools that are only observed


def count(planned: Planned) -> ChangeCount:
    """Of policies, compared with a base; else of objects in the cluster."""
    verbs: list[Verb] = [each.verb for each in planned.changes]
    supposed: Counter[Observation] = Counter()
    if planned.base is None:
        # One plan writes to some of the candidates of a drain, and its counts are of all.
        later = [each for each in planned.decision_texts if isinstance(each.decision.reason.facts, DrainCandidateNext)]
        verbs = [verb_of(each.decision) for each in planned.acted if each.observation is None]
        verbs += ["change" for each in later if each.observation is None]
        supposed = Counter(each.observation for each in (*planned.acted, *later) if each.observation is not None)
    return ChangeCount(verbs.count("change"), verbs.count("add"), verbs.count("remove"), supposed)


def verb_of(decision: Decision) -> Verb:
    """What an action does to its subject."""
    match decision.act:
        case Delete():
            return "remove"
        case Apply(presumes=presumes) if presumes.absent:
            return "add"
        case _:
            return "change"


def changed_items(planned: Planned, blame: Blame) -> Iterator[Item]:
    """Policies first; then what is written although no policy of its pool was edited: a template was, say."""
    for change in planned.changes:
        yield _policy_item(planned, blame, change)
    if planned.base is None:
        yield from _scaled_items(planned)
    yield from decision_items(unexplained(planned), planned.setting.now)


def _scaled_items(planned: Planned) -> Iterator[Item]:
    """What is done to nodes and pods as they come and go, alike ones of a pool in one line."""
    alike: dict[tuple[str, str, str, bool], list[DecisionText]] = {}
    for each in planned.acted:
        if _of_the_day(each):
            decision = each.decision
            key = decision.pool, decision.subject.kind, decision.reason.code, decision.would
            alike.setdefault(key, []).append(each)
    nexts = ((each.decision.pool, each.decision.reason.facts) for each in planned.decision_texts)
    later = Counter((pool, facts.candidacy.code) for pool, facts in nexts if isinstance(facts, DrainCandidateNext))
    for (pool, kind, code, would_be), group in alike.items():
        first, more = group[0], later[pool, code]
        total = len(group) + more
        title = first.decision.subject.title if total == 1 else f"{total} {kind}s of {pool}"
        details = [Detail(first.sentence if total == 1 else f"one of them: {first.sentence}")]
        if more:
            details.append(Detail(f"{len(group)} of them in this plan, {more} in the plans after it"))
        mark, tone = _MARKS[verb_of(first.decision)] if kind == "Pod" else ("~", "warn")
        yield Item(mark, would(title, would_be), first.place, tuple(details), tone)


def unexplained(planned: Planned) -> tuple[DecisionText, ...]:
    """What is done because of this change, and that the list of changed policies does not lead to."""
    # Where a pool is acted on that was not before, the fields that changed do not say what is written.
    pools = (each for each in planned.changes if each.kind == "GpuPool")
    edited = {each.name for each in pools if SWITCHES.isdisjoint(field.path for field in each.fields)}
    anyway = _deeds(planned)
    return tuple(
        each
        for each in planned.acted
        if each.decision.pool not in edited and _deed(each.decision) not in anyway and not _of_the_day(each)
    )


def anyway(planned: Planned) -> tuple[DecisionText, ...]:
    """What is done with this change just as without it."""
    deeds = _deeds(planned)
    return tuple(each for each in planned.acted if _deed(each.decision) in deeds and not _of_the_day(each))


def _of_the_day(decision_text: DecisionText) -> bool:
    """What follows from how a pool is used, whoever edits what: nodes that scaling or drains take away and pods that
    are evicted for it, of which the section of their pool tells, and what smart pods ask for."""
    decision = decision_text.decision
    is_departure = decision.planner in {SCALING, DRAIN} and decision.subject.kind in {"Node", "Pod"}
    return decision.planner == SMART_PODS or is_departure


def _deeds(planned: Planned) -> frozenset[bytes]:
    decisions = planned.base.decisions if planned.base else ()
    return frozenset(_deed(each) for each in decisions if not isinstance(each.act, Hold))


def _deed(decision: Decision) -> bytes:
    """What would be done in a pool that is only observed is not done."""
    act = decision.act.api_request if isinstance(decision.act, Evict) else decision.act
    return msgspec.json.encode((decision.subject, act, decision.would))


def _policy_item(planned: Planned, blame: Blame, change: PolicyChange) -> Item:
    mark, tone = _MARKS[change.verb]
    line = planned.pool(change.name) if change.kind == "GpuPool" else None
    title = f"{change.kind}/{change.name}"
    buys = "; ".join(filter(None, (buy_words(planned, blame, change), schedule_words(planned, blame, change))))
    if change.verb == "remove":
        words = "; ".join(
            filter(None, (drift_words(planned, blame, change) or drain_words(planned, blame, change), buys))
        )
        details: tuple[Detail, ...] = (Detail("no longer declared", words, "bad"),) if words else ()
    elif change.verb == "add":
        details = tuple(Detail(f"{field.path}: {field.after}") for field in change.fields if field.after is not None)
        if words := drain_words(planned, blame, change) or buys:
            details = (*details, Detail("", words, "warn"))
    else:
        details = tuple(Detail(field_words(field), *effect(planned, blame, change, field)) for field in change.fields)
    observed = line is not None and line.observation is not None
    observed = observed and SWITCHES.isdisjoint(field.path for field in change.fields)
    return Item(mark, would(title, observed), place_of(change_origin(change)), details, tone)


def change_origin(change: PolicyChange) -> Origin:
    """The first line that was edited; of what is new or gone, where it begins."""
    lines = [field.origin for field in change.fields if field.origin.file == change.origin.file]
    return min(lines, default=change.origin) if change.verb == "change" else change.origin


def field_words(field: FieldChange) -> str:
    """minSize: 8 -> 10, taints: + dedicated=training:NoSchedule."""
    if field.before is None:
        return f"{field.path}: + {field.after}"
    if field.after is None:
        return f"{field.path}: - {field.before}"
    return f"{field.path}: {field.before} -> {field.after}"
