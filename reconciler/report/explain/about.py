"""What is told of a subject: a headline, what will happen, and rows of what is behind it."""

import msgspec

from reconciler.model.human_time import clock
from reconciler.model.origin import Origin
from reconciler.model.plan.action import Hold
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Decision
from reconciler.model.revision import short_revision
from reconciler.plan.explain.consequences import guard_holding
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.plan.guards.observing import Observation, inaction_of
from reconciler.plan.holds.classes import is_held
from reconciler.plan.holds.resting import is_at_rest, supposed_by
from reconciler.plan.impact.words import bought_when, bought_words
from reconciler.report.sentences import sentence
from reconciler.report.wording import counted

Row = tuple[str, str]  # its label, and what it says


class Explanation(msgspec.Struct, frozen=True):
    """The answer."""

    title: str
    headline: str
    outcome: str
    rows: tuple[Row, ...] = ()
    decisions: tuple[Decision, ...] = ()


class UnknownSubject(ValueError):
    """There is no such thing, or it was not named as one is; the sentence says how."""


def unread(scene: PlanningResult, *kinds: str) -> str:
    """That one of the kinds could not be read, and why: what is not seen then may be there. Nothing when all could."""
    found = next((each for each in scene.inputs.observed.unread if each.kind in kinds), None)
    return f"{found.kind} could not be read: {found.why}" if found else ""


def placed(origin: Origin | None) -> str:
    """file:line @ revision."""
    if origin is None:
        return ""
    return origin.place + (f" @ {short_revision(origin.revision)}" if origin.revision else "")


def decision_sentence(scene: PlanningResult, decision: Decision) -> str:
    """What a decision says, as one sentence with the place that it goes back to."""
    place = placed(decision.reason.origin)
    return f"{would(scene, decision)}{_hold_state(decision)}{sentence(decision.reason)}" + (
        f" {place}" if place else ""
    )


def _hold_state(decision: Decision) -> str:
    """Of a hold, whether somebody holds it, or it waits by itself."""
    if not isinstance(decision.act, Hold) or is_at_rest(decision):
        return ""
    return "Held: " if is_held(decision) else "Waiting: "


def would(scene: PlanningResult, decision: Decision) -> str:
    """That a decision is not carried out, and what would have to be for that; nothing where it is carried out."""
    return would_if(supposed_by(scene.inputs, decision))


def would_if(observation: Observation | None) -> str:
    """How a sentence begins about what would be done in a pool that is only observed."""
    return f"Would, if {observation.unless}: " if observation is not None else ""


def would_be(scene: PlanningResult, consequence: Consequence, words: str) -> str:
    """The same, as what would be where the pool only observes, or a guard holds it. What stands happens anyway."""
    condition = condition_of(scene, consequence)
    return f"{condition}{words[0].lower()}{words[1:]}" if condition else words


def condition_of(scene: PlanningResult, consequence: Consequence) -> str:
    """On what it depends, as a sentence begins with it; empty where it comes as it is."""
    if consequence.cause == "standing":
        return ""
    if inaction := inaction_of(scene.inputs, scene.fleet, consequence.pool):
        return would_if(inaction)
    guard = guard_holding(scene, consequence)
    return f"Once {guard.title} lets it: " if guard is not None else ""


FATES: dict[Fate, str] = {
    "scaled": "is empty and more than its pool needs: it is deleted at its time",
    "drained": "is not needed: its pods are evicted, and it is deleted",
    "removed": "drifts and is empty: Karpenter deletes it and does not replace it",
    "replaced": "drifts: Karpenter launches a new node, evicts its pods and deletes it",
    "blocked": "drifts, and stays until what holds it up gives way",
    "deleted": "is deleted with its NodePool, outside all budgets",
    "undrifted": "is drifted now, and no longer will be",
    "exchanged": "is replaced by another machine than before",
    "bought": "is bought",
    "scheduled": "is bought by a schedule",
    "limited": "is wanted, and held back by a limit",
}


def fate_of(scene: PlanningResult, consequence: Consequence) -> str:
    """What becomes of a node, for a sentence that begins with the node. `consequence`: of one node, or of all."""
    if consequence.fate == "drained":
        words = FATES["drained"] if consequence.pods else "is empty and not needed: it is deleted"
        return words + _drained_from(scene, consequence)
    waves = ""
    if consequence.wave and consequence.fate in {"removed", "replaced"}:
        waves = f", {counted(consequence.wave, 'node')} at a time"
    if consequence.order is not None:
        waves += f", by {consequence.order.words}"
    is_one = len(consequence.nodes) == 1
    held = ", ".join(
        each.title if is_one else f"{each.title} on {counted(nodes, 'node')}" for each, nodes in consequence.held_by
    )
    return FATES[consequence.fate] + waves + (f" ({held})" if held else "")


def coming_words(scene: PlanningResult, consequence: Consequence) -> str:
    """48 nodes, 384 GPUs: bought for minSize, p4d.24xlarge (reserved); at once. With its money, where that is known."""
    nodes, gpus = counted(len(consequence.nodes), "node"), counted(consequence.gpus, "GPU")
    when = "; ".join(bought_when(consequence, scene.inputs.now))
    cents = consequence.micro_dollars_per_hour // 10_000
    cost = f"; +${cents // 100:,}.{cents % 100:02d}/h" if cents else ""
    unpriced = f"; {consequence.unpriced} of them without a declared price" if consequence.unpriced else ""
    return f"{nodes}, {gpus}: {bought_words(consequence)}; {when}{cost}{unpriced}"


def _drained_from(scene: PlanningResult, consequence: Consequence) -> str:
    now, first = scene.inputs.now, consequence.first_at
    if first is None:
        return ", once a guard or a window allows, or pods have completed"
    return f", since {clock(first, now)}" if first <= now else f", from {clock(first, now)} on"
