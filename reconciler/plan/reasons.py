"""Base of all reasons. Each planner declares its reasons as classes of facts in its `reasons.py`.

A hold is `blocked` if a person must act before the held action can go on: approve the action, edit the policy, or
settle who owns an object or a field. Every other hold is `waiting`: for a timer, a window, demand, the end of a
freeze, or because its pool is in Observe mode. A blocked hold ends `plan` and `apply` with exit code 4 (see
`holds/classes.py`).

Some waiting holds last until a person acts or withdraws a request: a freeze, a suspension, a cordon, an opt-out.
Reports list these holds as held, beside the blocked ones. All other waiting holds end without anybody's action.
"""

from collections.abc import Sequence

from reconciler.model.plan.decision import CodeFacts, Facts, Ref

# --- Bases of reasons with equal facts. None has a code of its own.


class OfObject(CodeFacts, frozen=True):
    """Base of reasons about one object."""

    object: Ref


class OfNode(CodeFacts, frozen=True):
    """Base of reasons about one node."""

    node: str


class OfPaths(CodeFacts, frozen=True):
    """Base of reasons about fields of an object, given by their paths."""

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
    """Whether a person or a guard holds decisions with this reason. Other holds end without anybody's action."""
    return declared.hold == "blocked" or declared.by_person


def counted(number: int, noun: str) -> str:
    """A number with its noun: 1 pod, 2 pods."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
