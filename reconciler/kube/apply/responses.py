"""What an answer to a write means, and what can be done about it: a table, the first line that fits."""

from collections.abc import Callable
from enum import Enum, auto

import msgspec

from reconciler.kube.api_server import Answer
from reconciler.kube.watch.list_result import said
from reconciler.protocol.conflicts import conflict


class Meaning(Enum):
    """What follows from an answer."""

    DONE = auto()
    MOVED = auto()  # the object is no longer what was seen: look again, at once
    LATER = auto()  # the API server asks for patience: look again after a while
    DOUBTFUL = auto()  # the same, and it may have taken effect
    BLOCKED = auto()  # not now, and waiting a moment won't help
    REFUSED = auto()


class _Cause(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""
    field: str = ""


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    causes: tuple[_Cause, ...] | None = ()
    retry_after_seconds: int = 0


class Refusal(msgspec.Struct, frozen=True):
    """Kubernetes' own Status, as far as it is gone by."""

    reason: str = ""
    message: str = ""
    details: _Details | None = None

    @property
    def causes(self) -> tuple[_Cause, ...]:
        return (self.details.causes or ()) if self.details else ()


class _Line(msgspec.Struct, frozen=True):
    fits: Callable[[int, Refusal], bool]
    meaning: Meaning


# A 500 is a fault of the server; these two say of themselves that they pass.
_PASSING = ("etcdserver: ", "please try again")
_OF_A_BUDGET = "DisruptionBudget"
_OF_A_FIELD = "FieldManagerConflict"

_TABLE = (
    _Line(lambda status, _: 200 <= status < 300, Meaning.DONE),
    _Line(lambda status, told: status == 429 and _has(told, _OF_A_BUDGET), Meaning.BLOCKED),
    _Line(lambda status, _: status == 429, Meaning.LATER),
    _Line(lambda status, told: status == 409 and _has(told, _OF_A_FIELD), Meaning.REFUSED),
    # 404: the object went away; the next look tells whether it was that, or a kind or subresource that is not served.
    _Line(lambda status, _: status in {404, 409, 410}, Meaning.MOVED),
    _Line(lambda status, _: status == 504, Meaning.DOUBTFUL),
    _Line(lambda status, _: status == 503, Meaning.LATER),
    _Line(lambda status, told: status == 500 and _passes(told), Meaning.DOUBTFUL),
    _Line(lambda *_: True, Meaning.REFUSED),
)


def meaning_of(answer: Answer) -> Meaning:
    """Total: every answer means something."""
    refusal = refusal_of(answer)
    return next(line.meaning for line in _TABLE if line.fits(answer.status, refusal))


def refusal_of(answer: Answer) -> Refusal:
    """What came with an answer; nothing where that is no Status."""
    try:
        return msgspec.json.decode(answer.body, type=Refusal)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return Refusal()


class _Metadata(msgspec.Struct, frozen=True):
    uid: str = ""


class _Written(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


def uid_in(answer: Answer) -> str:
    """Of the object that was written; nothing where the answer is no object."""
    try:
        return msgspec.json.decode(answer.body, type=_Written).metadata.uid
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def told(answer: Answer) -> str:
    """For people: whose field, or which budget; else what the API server says."""
    refusal = refusal_of(answer)
    if fields := [(each.message, each.field) for each in refusal.causes if each.reason == _OF_A_FIELD]:
        return conflict((_owner(message), field.removeprefix(".")) for message, field in fields)
    budgets = [each.message for each in refusal.causes if each.reason == _OF_A_BUDGET and each.message]
    return budgets[0] if budgets else f"the API server says {said(answer)}"


def _owner(message: str) -> str:
    """Of: conflict with "kubectl-edit" using v1 at ..."""
    return message.partition('"')[2].partition('"')[0] or message


def _has(refusal: Refusal, reason: str) -> bool:
    return any(each.reason == reason for each in refusal.causes)


def _passes(refusal: Refusal) -> bool:
    is_asked_again = refusal.details is not None and refusal.details.retry_after_seconds > 0
    return is_asked_again or refusal.reason == "ServerTimeout" or any(each in refusal.message for each in _PASSING)
