"""What a parent and its planner say to one another: lengths and JSON over two pipes, one answer a question.

A question is a Successor: the inputs, told by what is different from the question before.
"""

from typing import IO

import msgspec

from reconciler.model.plan.inputs_delta import Successor
from reconciler.model.plan.plan import Plan

_LENGTH_BYTES = 8


class PlanAnswer(msgspec.Struct, frozen=True):
    """A plan, or why there is none."""

    plan: Plan | None = None
    broken: str = ""  # the invariants that it would break
    fault: str = ""  # whatever else went wrong


class Ended(Exception):
    """Nobody is at the other end."""


def say(pipe: IO[bytes], message: Successor | PlanAnswer) -> None:
    """Raises Ended."""
    content = msgspec.json.encode(message)
    try:
        pipe.write(len(content).to_bytes(_LENGTH_BYTES, "big"))
        pipe.write(content)
        pipe.flush()
    except (OSError, ValueError) as fault:
        raise Ended from fault


def hear(pipe: IO[bytes]) -> bytes:
    """One message. Raises Ended."""
    try:
        length = pipe.read(_LENGTH_BYTES)
        content = pipe.read(int.from_bytes(length, "big")) if len(length) == _LENGTH_BYTES else b""
    except (OSError, ValueError) as fault:
        raise Ended from fault
    if not content or len(content) < int.from_bytes(length, "big"):
        raise Ended
    return content
