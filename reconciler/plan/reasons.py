"""What reasons have in common; each planner declares its own as classes of facts in its `reasons.py`.

A hold is `blocked` where a person must act before the held action can go on: approve it, edit the policy, or settle
who owns an object or a field. Every other hold is `waiting`: for a timer, a window, demand, a freeze, or because its
pool only observes. A blocked hold ends `plan` and `apply` with exit code 4 (see `holds/classes.py`).

Of the holds that are waiting, some last until a person takes back what they asked for, or does something: a freeze, a
suspension, a cordon, an opt-out. Reports list those beside the blocked ones, as held. All others go on by themselves.
"""

from collections.abc import Sequence

from reconciler.model.plan.decision import CodeFacts, Facts


class OfPaths(CodeFacts, frozen=True):
    """What an edit is about: fields of an object, by their paths. No code of its own."""

    paths: tuple[str, ...]


Declared = type[Facts]


def by_code(reasons: Sequence[Declared]) -> dict[str, Declared]:
    result = {code_of(each): each for each in reasons}
    if len(result) != len(reasons):
        raise ValueError("two reasons share a code")
    return result


def code_of(declared: Declared) -> str:
    return declared.__name__


def is_held(declared: Declared) -> bool:
    """Whether a person or a guard holds what has this reason; else it goes on by itself."""
    return declared.hold == "blocked" or declared.by_person


def counted(number: int, noun: str) -> str:
    """A number and what it counts: 1 pod, 2 pods."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
