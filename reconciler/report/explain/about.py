"""Explanation of a subject: a headline, the outcome, and rows of details."""

from collections import Counter
from collections.abc import Iterable, Iterator

import msgspec

from reconciler.model.bundle import short_revision
from reconciler.model.instant import clock
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Decision, Hold, Ref
from reconciler.model.plan.guard_verdict import GuardVerdict
from reconciler.model.problem import Origin
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.frozen import Freeze
from reconciler.plan.guards.observing import Observation, inaction_of, observation_behind
from reconciler.plan.guards.reasons import MEASURES, HeldByGuard
from reconciler.plan.holds.classes import is_at_rest, is_held, supposed_by
from reconciler.plan.impact.purchases import bought_when, bought_words
from reconciler.report.sentences import sentence
from reconciler.report.wording import counted, grouped

Row = tuple[str, str]  # label and text


class ExplainedObject(msgspec.Struct, frozen=True):
    """The subject of an explanation."""

    kind: str
    name: str
    namespace: str = ""

    @property
    def title(self) -> str:
        return "/".join(part for part in (self.kind, self.namespace, self.name) if part)


class Explanation(msgspec.Struct, frozen=True):
    """Explanation of one subject."""

    title: str
    headline: str
    outcome: str
    rows: tuple[Row, ...] = ()
    decisions: tuple[Decision, ...] = ()


class UnknownSubject(ValueError):
    """The subject does not exist or has a wrong form; the message says which."""


def unread(scene: PlanningResult, *kinds: str) -> str:
    """The first of the kinds that could not be read, and why; objects of this kind may exist unseen. Empty if all were
    read."""
    found = next((each for each in scene.inputs.observed.unread if each.kind in kinds), None)
    return f"{found.kind} are unknown: {found.why}" if found else ""


def decisions_about(scene: PlanningResult, *subjects: ExplainedObject) -> tuple[Decision, ...]:
    """Decisions about objects of these kinds and names, and about pods evicted together with others, in plan order."""
    wanted = {(each.kind.lower(), each.namespace, each.name) for each in subjects}
    return tuple(
        each
        for each in scene.plan.decisions
        if any((ref.kind.lower(), ref.namespace, ref.name) in wanted for ref in each.refs)
    )


def placed(origin: Origin | None) -> str:
    """Such as file:line @ revision."""
    if origin is None:
        return ""
    return origin.place + (f" @ {short_revision(origin.revision)}" if origin.revision else "")


def decision_sentence(scene: PlanningResult, decision: Decision) -> str:
    """A decision as one sentence, with its origin."""
    place = placed(decision.reason.origin)
    state = ""
    if isinstance(decision.act, Hold) and not is_at_rest(decision):
        state = "Held: " if is_held(decision) else "Waiting: "
    return f"{would(scene, decision)}{state}{sentence(decision.reason)}" + (f" {place}" if place else "")


def would(scene: PlanningResult, decision: Decision) -> str:
    """Prefix of a suppressed decision, with the condition under which it would apply; empty otherwise."""
    return would_if(supposed_by(scene.inputs, decision))


def would_if(observation: Observation | None) -> str:
    """Prefix of a sentence about a suppressed change."""
    return f"Would apply if {observation.unless}: " if observation is not None else ""


def would_be(scene: PlanningResult, consequence: Consequence, words: str) -> str:
    """The sentence with its condition: the pool is in Observe mode, or a guard holds the change. Changes that happen
    independently have no condition."""
    condition = condition_of(scene, consequence)
    return f"{condition}{words[0].lower()}{words[1:]}" if condition else words


def condition_of(scene: PlanningResult, consequence: Consequence) -> str:
    """Condition of a consequence, as the beginning of a sentence; empty if unconditional."""
    if consequence.cause == "standing":
        return ""
    if inaction := inaction_of(scene.inputs, scene.fleet, consequence.pool):
        return would_if(inaction)
    guard = guard_holding(scene, consequence)
    return f"Once {guard.title} allows the change: " if guard is not None else ""


FATES: dict[Fate, str] = {
    "scaled": "is empty and surplus, and is deleted when its timer ends",
    "removed": "is empty and drifts, so Karpenter deletes the node and does not replace it",
    "replaced": "drifts, so Karpenter launches a new node, evicts the pods and deletes the old node",
    "blocked": "drifts, but cannot be disrupted now",
    "deleted": "is deleted with its NodePool, ignoring all budgets",
    "undrifted": "is drifted now, but not after the change",
    "exchanged": "is replaced by a different machine type than before",
    "bought": "is bought",
    "scheduled": "is bought by a schedule",
    "limited": "is needed, but not bought because of a limit",
}


def fate_of(scene: PlanningResult, consequence: Consequence) -> str:
    """Planned change of a node, for a sentence that begins with the node. `consequence` covers one node, or all."""
    if consequence.fate == "drained":
        return _drained(scene, consequence)
    waves = ""
    if consequence.wave and consequence.fate in {"removed", "replaced"}:
        waves = f", {counted(consequence.wave, 'node')} at a time"
    if consequence.order is not None:
        waves += f", by {consequence.order.words}"
    is_one = len(consequence.nodes) == 1
    holders = ((each.title, counted(nodes, "node")) for each, nodes in consequence.held_by)
    held = ", ".join(title if is_one else f"{nodes} because of {title}" for title, nodes in holders)
    return FATES[consequence.fate] + waves + (f" ({held})" if held else "")


def coming_words(scene: PlanningResult, consequence: Consequence) -> str:
    """Such as 48 nodes, 384 GPUs: bought for minSize, p4d.24xlarge (reserved); at once. Includes known costs."""
    nodes, gpus = counted(len(consequence.nodes), "node"), counted(consequence.gpus, "GPU")
    when = "; ".join(bought_when(consequence, scene.inputs.now))
    cents = consequence.micro_dollars_per_hour // 10_000
    cost = f"; +${cents // 100:,}.{cents % 100:02d}/h" if cents else ""
    unpriced = f"; {consequence.unpriced} of them without a declared price" if consequence.unpriced else ""
    return f"{nodes}, {gpus}: {bought_words(consequence)}; {when}{cost}{unpriced}"


def _drained(scene: PlanningResult, consequence: Consequence) -> str:
    now, first = scene.inputs.now, consequence.first_at
    is_empty = not consequence.pods
    begins = "is empty and not needed" if is_empty else "is not needed"
    becomes = "the node is deleted" if is_empty else "the pods on the node are evicted, and then the node is deleted"
    if first is None:
        return f"{begins}: when a guard or window allows the drain, or pods have completed, {becomes}"
    if first > now:
        return f"{begins}, so from {clock(first, now)} on, {becomes}"
    return f"{begins}, and its drain began at {clock(first, now)}: {becomes}"


# --- Sentences for decisions, equal ones grouped.


def decided_rows(scene: PlanningResult, decisions: Iterable[Decision]) -> Iterator[Row]:
    """One row per decision; decisions with the same reason share a row with the first of them as an example."""

    def key(decision: Decision) -> tuple[str, str, str, bool, bool]:
        is_hold = isinstance(decision.act, Hold)
        return decision.planner, decision.subject.kind, decision.reason.code, is_hold, decision.would

    for (_, kind, *_), alike in grouped(decisions, key).items():
        first = alike[0]
        example = f"{counted(len(alike), kind)}, such as {first.subject.name}: " if len(alike) > 1 else ""
        yield "decided", f"{example}{decision_sentence(scene, first)}"


def tally(scene: PlanningResult, decisions: Iterable[Decision]) -> str:
    """Such as 3 actions to carry out, 2 held, 4 waiting."""
    every = tuple(decisions)
    holds = [each for each in every if isinstance(each.act, Hold)]
    held = sum(is_held(each) and not is_at_rest(each) for each in holds)
    supposed = Counter(observation_behind(scene.inputs, each) for each in every if each.would)
    acts = len(every) - len(holds) - supposed.total()
    parts = [(acts, "action to carry out" if acts == 1 else "actions to carry out")]
    parts += [
        (number, f"suppressed (would apply if {each.unless})") for each, number in supposed.items() if each is not None
    ]
    parts += [(held, "held"), (len(holds) - held, "waiting")]
    return f"{', '.join(f'{number} {what}' for number, what in parts if number)}."


# --- Freezes of a node or a pool, and the remaining limits of guards in the last hour.


def freeze_rows(freeze: Freeze | None) -> Iterator[Row]:
    """The widest freeze, if any."""
    if freeze is not None:
        frozen = f"{freeze.scope_text}, {freeze.until_text}"
        yield "frozen", f"{frozen}: the controller only removes its own taints, gates, Leases and eviction times"


def guard_rows(scene: PlanningResult, pool: str) -> Iterator[Row]:
    """Each guard of the pool, with its counts of the last hour and its limits."""
    said = {each.guard: each for each in scene.plan.guarded if not each.would}
    for guard in scene.inputs.desired.guards:
        if {"*", pool} & set(guard.spec.pool_names):
            without = "suspended" if guard.spec.suspend else "for another cluster"
            text = _hour(said[guard.name]) if guard.name in said else without
            yield "guard", f"ChangeGuard/{guard.name}: {text}, {placed(guard.origin())}"


def _hour(guarded: GuardVerdict) -> str:
    hour = [each for each in guarded.counts if each.period == "hour"]
    counts = ", ".join(f"{MEASURES[each.measure]} {each.before} of {each.allowed}" for each in hour)
    return f"in the last hour: {counts}" if counts else "no limit per hour"


# --- Guards that hold a consequence, or a part of it.

# Fates of nodes that do not exist yet.
COMES: frozenset[Fate] = frozenset({"bought", "scheduled", "limited"})


def by_guard(scene: PlanningResult, consequence: Consequence) -> Iterator[tuple[Ref | None, Consequence]]:
    """Parts of the consequence by guard; the part that no guard holds comes first."""
    groups: dict[Ref | None, list[str]] = {}
    for name in consequence.nodes if consequence.cause == "change" else ():
        own = consequence.only((name,))
        groups.setdefault(guard_holding(scene, own) if own is not None else None, []).append(name)
    if len(groups) <= 1:
        yield next(iter(groups), None), consequence
        return
    for guard, nodes in sorted(groups.items(), key=lambda each: each[0].title if each[0] is not None else ""):
        part = consequence.only(nodes)
        if part is not None:
            yield guard, part


def guard_holding(scene: PlanningResult, consequence: Consequence) -> Ref | None:
    """The guard that holds the cause: the edit of the NodePool, or the actions on its nodes. No guard holds a purchase,
    except replacements of nodes removed by an edit."""
    if consequence.fate in COMES and (consequence.order is None or consequence.order.stage != "refill"):
        return None
    is_ours = consequence.fate in {"scaled", "drained"}
    kind, names = ("Node", set(consequence.nodes)) if is_ours else ("NodePool", {consequence.node_pool})
    for each in scene.plan.decisions:
        if each.subject.kind == kind and each.subject.name in names:
            facts = each.reason.facts if isinstance(each.act, Hold) else None
            if isinstance(facts, HeldByGuard):
                return facts.guard
            if not is_ours:
                return None
    return None
