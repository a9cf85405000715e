"""Decisions in words, and how many of them are worth a line each."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from reconciler.model.human_time import moment
from reconciler.model.instant import Instant
from reconciler.model.origin import Origin
from reconciler.model.plan.action import Apply, Delete, Hold
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import HoldClass, Reason
from reconciler.plan.guards.observing import Observation
from reconciler.plan.holds.classes import is_held
from reconciler.report.blocks import Detail, Item, Tone
from reconciler.report.edited import Edited
from reconciler.report.sentences import sentence

# More decisions for one and the same reason say no more.
MOST_ALIKE = 5


class DecisionText(msgspec.Struct, frozen=True):
    """A decision, its reason as a sentence, and what a person can do about it, where that is not in the sentence."""

    decision: Decision
    sentence: str
    remedy: str = ""
    edited: tuple[Edited, ...] = ()  # what it changes in an object that is there
    hold: HoldClass | None = None  # None for an action
    blocks: bool = False  # a blocked hold that counts for the change: the command ends with exit code 4
    observation: Observation | None = None  # why the decision is only supposed; None where it stands as it is

    @property
    def held(self) -> bool:
        return isinstance(self.decision.act, Hold)

    @property
    def held_by_someone(self) -> bool:
        """Whether a person or a guard holds it."""
        return is_held(self.decision)

    @property
    def waits(self) -> bool:
        """Whether it is a hold that goes on by itself."""
        return self.held and not self.held_by_someone

    @property
    def is_supposed(self) -> bool:
        """Whether it says what would be done, or waited for."""
        return self.decision.would or self.observation is not None

    @property
    def until(self) -> Instant | None:
        """When what is held is looked at again."""
        return self.decision.act.until if isinstance(self.decision.act, Hold) else None

    @property
    def place(self) -> str:
        """The line of policy that asked for it."""
        return place_of(self.decision.reason.origin)


def note_of(reason: Reason) -> str:
    """What an Event says of what was done, or is not, for a reason."""
    try:
        return sentence(reason)
    except KeyError:  # a reason without a sentence is a fault, but what was done is no less done
        return reason.code


def place_of(origin: Origin | None) -> str:
    """File and line; nothing where nobody wrote it."""
    if origin is None or not origin.file:
        return ""
    return origin.place


def decision_items(decision_texts: Sequence[DecisionText], now: Instant) -> Iterator[Item]:
    """Of decisions for one reason the first few, and how many more there are."""
    alike: defaultdict[tuple[str, bool], list[DecisionText]] = defaultdict(list)
    for each in decision_texts:
        alike[each.decision.reason.code, each.is_supposed].append(each)
    for (code, _), group in alike.items():
        yield from (_item(each, now) for each in group[:MOST_ALIKE])
        if len(group) > MOST_ALIKE:
            yield Item("", f"and {len(group) - MOST_ALIKE} more: {code}")


def _item(decision_text: DecisionText, now: Instant) -> Item:
    decision = decision_text.decision
    mark, tone = mark_of(decision_text)
    details = [Detail(decision_text.sentence)]
    details += [Detail(each.words) for each in decision_text.edited]
    if decision_text.remedy:
        details.append(Detail(f"remedy: {decision_text.remedy}"))
    if decision_text.until is not None:
        details.append(Detail(f"looked at again {moment(decision_text.until, now)}"))
    return Item(
        mark, would(decision.subject.title, decision_text.is_supposed), decision_text.place, tuple(details), tone
    )


def mark_of(decision_text: DecisionText) -> tuple[str, Tone]:
    """What stands before its title, and how that is coloured."""
    match decision_text.decision.act:
        case Hold():
            return ("!", "warn") if decision_text.held_by_someone else (".", "dim")
        case Delete():
            return "-", "bad"
        case Apply(presumes=presumes) if presumes.absent:
            return "+", "good"
        case _:
            return "~", "warn"


def would(title: str, marked: bool) -> str:
    """What a pool that only observes would have done bears the word."""
    return f"{title} (would)" if marked else title
