"""Order in which the decisions of a plan are carried out. Owns the waiting decisions.

A decision names the subjects that must be done before it. A decision that waits for something that is not in the
plan, that failed, or that waits for it in turn is never begun: the next plan decides again.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from reconciler.model.plan.decision import Decision, Hold, Outcome


def verb_of(decision: Decision) -> str:
    """The tag of its action."""
    return str(type(decision.act).__struct_config__.tag)


class WriteOrder:
    """Call `ready` for decisions to begin and `ended` for each result, repeatedly; `left` returns the rest."""

    def __init__(self, decisions: Iterable[Decision]) -> None:
        acted = [each for each in decisions if not isinstance(each.act, Hold) and not each.would]
        self._lacking = {number: {ref.title for ref in each.after} for number, each in enumerate(acted)}
        self._waiting = dict(enumerate(acted))
        self._followers: defaultdict[str, list[int]] = defaultdict(list)
        for number, lacking in self._lacking.items():
            for title in lacking:
                self._followers[title].append(number)
        self._free = [number for number, lacking in self._lacking.items() if not lacking]

    def ready(self) -> list[Decision]:
        """Decisions that may begin now, each returned once."""
        decisions = [self._waiting.pop(number) for number in self._free]
        self._free.clear()
        return decisions

    def ended(self, outcome: Outcome) -> None:
        if outcome.result != "done":
            return
        title = outcome.subject.title
        for number in self._followers.pop(title, ()):
            lacking = self._lacking[number]
            lacking.discard(title)
            if not lacking:
                self._free.append(number)

    def left(self) -> Iterator[Outcome]:
        """Decisions that never began, once nothing is in progress."""
        for number, each in self._waiting.items():
            first = min(self._lacking[number])
            detail = f"it depends on {first}, which was not done"
            yield Outcome(each.subject, verb_of(each), "stale", detail)
        self._waiting.clear()
