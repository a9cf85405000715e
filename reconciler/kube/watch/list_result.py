"""What comes of asking for a kind: a closed set, so that what follows from each can be a table."""

from enum import Enum, auto

import msgspec

from reconciler.kube.api_server import ApiResponse
from reconciler.model.cluster.kinds import ResourceKind


class ListEnding(Enum):
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


class ListResult(msgspec.Struct, frozen=True):
    """How it went, and why."""

    ending: ListEnding
    why: str = ""
    retry_after_seconds: float = 0.0  # asked for by the API server


class ListFailed(Exception):
    """Something else came of it than was hoped for."""

    def __init__(self, outcome: ListResult) -> None:
        super().__init__(outcome.why)
        self.outcome = outcome


class _Status(msgspec.Struct):
    message: str = ""


_BY_STATUS = {403: ListEnding.FORBIDDEN, 404: ListEnding.MISSING, 410: ListEnding.EXPIRED}


def setback_of(answer: ApiResponse, resource_kind: ResourceKind, verb: str) -> ListFailed:
    """What an answer other than 200 means for a kind that was to be listed or watched."""
    ending = _BY_STATUS.get(answer.status, ListEnding.FAILED)
    if ending is ListEnding.FORBIDDEN:
        # The kind is told beside it; without it here, the kinds that the role lacks are told in one sentence.
        where = " in our namespace" if resource_kind.namespace_for("ours") else ""
        why = f"may not {verb} them{where}: the role needs list and watch, and `reconciler rbac` prints one with both"
    else:
        why = f"to {verb} {resource_kind.resource} was answered with {said(answer)}"
    return ListFailed(ListResult(ending, why, answer.retry_after_seconds))


def said(answer: ApiResponse) -> str:
    """The status, and the sentence that came with it."""
    try:
        message = msgspec.json.decode(answer.body, type=_Status).message
    except (msgspec.MsgspecError, UnicodeDecodeError):
        message = ""
    return f"{answer.status}: {message}" if message else str(answer.status)
