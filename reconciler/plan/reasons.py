"""What reasons have in common; each planner declares its own as classes of facts in its `reasons.py`.

A hold is `blocked` where a person must act before the held action can go on: approve it, edit the policy, or settle
who owns an object or a field. Every other hold is `waiting`: for a timer, a window, demand, a freeze, or because its
pool only observes. A blocked hold ends `plan` and `apply` with exit code 4 (see `holds/classes.py`).

Of the holds that are waiting, some last until a person takes back what they asked for, or does something: a freeze, a
suspension, a cordon, an opt-out. Reports list those beside the blocked ones, as held. All others go on by themselves.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from reconciler.model.origin import Origin
from reconciler.model.planned.reason import CodeFacts, Facts, HoldClass, Reason

__all__ = ["Because", "HoldClass", "Pairs", "by_code", "counted", "is_held"]


class OfPaths(CodeFacts, frozen=True):
    """What an edit is about: fields of an object, by their paths. No code of its own."""

    paths: tuple[str, ...]


class Pairs(CodeFacts, frozen=True):
    """Facts without types, of a code that is still declared by a Because."""

    name: str
    pairs: tuple[tuple[str, str | int], ...] = ()

    @property
    def code(self) -> str:
        return self.name

    def fields(self) -> dict[str, Any]:
        return dict(self.pairs)


class Because(msgspec.Struct, frozen=True):
    """A code with facts that have no types, and its sentence; what stands in braces is a fact."""

    code: str
    template: str
    hold: HoldClass = "waiting"
    by_person: bool = False
    while_held: str = ""

    def reason(self, origin: Origin | None = None, **facts: str | int) -> Reason:
        """A reason with exactly the facts that the sentence names, and perhaps more."""
        return Reason(Pairs(self.code, tuple(sorted(facts.items()))), origin)


Declared = Because | type[Facts]


def by_code(reasons: Sequence[Declared]) -> dict[str, Declared]:
    found = {code_of(each): each for each in reasons}
    if len(found) != len(reasons):
        raise ValueError("two reasons share a code")
    return found


def code_of(declared: Declared) -> str:
    return declared.code if isinstance(declared, Because) else declared.__name__


def is_held(declared: Declared) -> bool:
    """Whether a person or a guard holds what has this reason; else it goes on by itself."""
    return declared.hold == "blocked" or declared.by_person


def counted(number: int, noun: str) -> str:
    """A number and what it counts: 1 pod, 2 pods."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
