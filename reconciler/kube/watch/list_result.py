"""What comes of asking for a kind: a closed set, so that what follows from each can be a table."""

from enum import Enum, auto

import msgspec

from reconciler.kube.api_server import Answer
from reconciler.model.cluster.kinds import ResourceKind


class What(Enum):
    """How it went."""

    SERVED = auto()  # there is such a kind, at a path
    NOT_SERVED = auto()  # there is none, which is an answer
    UNSUITED = auto()  # there is none, or not as we read it, which is no answer
    LISTED = auto()
    ENDED = auto()  # a watch came to its end, as each does
    BROKEN = auto()  # a watch said what is no event, or told of an error
    EXPIRED = auto()  # what was asked for is too old: 410
    MISSING = auto()  # nothing at this path any more: 404
    FORBIDDEN = auto()
    OLDER = auto()  # a list that is older than what was seen
    FAILED = auto()  # no answer, or one that helps nobody


class Outcome(msgspec.Struct, frozen=True):
    """How it went, and why."""

    what: What
    why: str = ""
    retry_after_seconds: float = 0.0  # asked for by the API server


class Setback(Exception):
    """Something else came of it than was hoped for."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.why)
        self.outcome = outcome


class _Status(msgspec.Struct):
    message: str = ""


_BY_STATUS = {403: What.FORBIDDEN, 404: What.MISSING, 410: What.EXPIRED}


def setback_of(answer: Answer, seen: ResourceKind, verb: str) -> Setback:
    """What an answer other than 200 means for a kind that was to be listed or watched."""
    what = _BY_STATUS.get(answer.status, What.FAILED)
    if what is What.FORBIDDEN:
        # The kind is told beside it; without it here, the kinds that the role lacks are told in one sentence.
        where = " in our namespace" if seen.namespace_for("ours") else ""
        why = f"may not {verb} them{where}: the role needs list and watch, and `reconciler rbac` prints one with both"
    else:
        why = f"to {verb} {seen.resource} was answered with {said(answer)}"
    return Setback(Outcome(what, why, answer.retry_after_seconds))


def said(answer: Answer) -> str:
    """The status, and the sentence that came with it."""
    try:
        message = msgspec.json.decode(answer.body, type=_Status).message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = ""
    return f"{answer.status}: {message}" if message else str(answer.status)
