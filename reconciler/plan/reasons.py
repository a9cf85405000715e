"""What a reason looks like: a code, a sentence, and the class of its holds; each planner lists its own in its
`reasons.py`.

A hold is `blocked` where a person must act before the held action can go on: approve it, edit the policy, or settle
who owns an object or a field. Every other hold is `waiting`: for a timer, a window, demand, a freeze, or because its
pool only observes. A blocked hold ends `plan` and `apply` with exit code 4 (see `holds/classes.py`).

Of the holds that are waiting, some last until a person takes back what they asked for, or does something: a freeze, a
suspension, a cordon, an opt-out. Reports list those beside the blocked ones, as held. All others go on by themselves.
"""

from collections.abc import Sequence
from typing import Literal

import msgspec

from reconciler.model.origin import Origin
from reconciler.model.planned.reason import Reason

HoldClass = Literal["blocked", "waiting"]


class Because(msgspec.Struct, frozen=True):
    """A code, and its sentence; what stands in braces is a fact."""

    code: str
    sentence: str
    hold: HoldClass = "waiting"  # the class of a hold with this reason
    by_person: bool = False  # a hold that is waiting lasts until a person acts
    asked: str = ""  # what a guard holds, in place of the sentence: without times that only come once it is let go

    @property
    def is_held(self) -> bool:
        """Whether a person or a guard holds what has this reason; else it goes on by itself."""
        return self.hold == "blocked" or self.by_person

    def reason(self, origin: Origin | None = None, **facts: str | int) -> Reason:
        """A reason with exactly the facts that the sentence names, and perhaps more."""
        return Reason(self.code, tuple(sorted(facts.items())), origin)

    def tell(self, reason: Reason) -> str:
        """The sentence, filled in."""
        return self.sentence.format_map(dict(reason.facts))

    def ask(self, reason: Reason) -> str:
        """The same of what a guard holds."""
        return (self.asked or self.sentence).format_map(dict(reason.facts))


def by_code(reasons: Sequence[Because]) -> dict[str, Because]:
    found = {each.code: each for each in reasons}
    if len(found) != len(reasons):
        raise ValueError("two reasons share a code")
    return found


def counted(number: int, noun: str) -> str:
    """A number and what it counts: 1 pod, 2 pods."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
