"""What an answer to a write means, and what can be done about it: a table, the first line that fits."""

from collections.abc import Callable
from enum import Enum, auto

import msgspec

from reconciler.kube.api_server import ApiResponse
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


class ApiStatus(msgspec.Struct, frozen=True):
    """Kubernetes' own Status, as far as it is gone by."""

    reason: str = ""
    message: str = ""
    details: _Details | None = None

    @property
    def causes(self) -> tuple[_Cause, ...]:
        return (self.details.causes or ()) if self.details else ()


class _ResponseRule(msgspec.Struct, frozen=True):
    fits: Callable[[int, ApiStatus], bool]
    meaning: Meaning


# A 500 is a fault of the server; these two say of themselves that they pass.
_PASSING = ("etcdserver: ", "please try again")
_OF_A_BUDGET = "DisruptionBudget"
_OF_A_FIELD = "FieldManagerConflict"

_TABLE = (
    _ResponseRule(lambda status, _: 200 <= status < 300, Meaning.DONE),
    _ResponseRule(lambda status, api_status: status == 429 and _has(api_status, _OF_A_BUDGET), Meaning.BLOCKED),
    _ResponseRule(lambda status, _: status == 429, Meaning.LATER),
    _ResponseRule(lambda status, api_status: status == 409 and _has(api_status, _OF_A_FIELD), Meaning.REFUSED),
    # 404: the object went away; the next look tells whether it was that, or a kind or subresource that is not served.
    _ResponseRule(lambda status, _: status in {404, 409, 410}, Meaning.MOVED),
    _ResponseRule(lambda status, _: status == 504, Meaning.DOUBTFUL),
    _ResponseRule(lambda status, _: status == 503, Meaning.LATER),
    _ResponseRule(lambda status, api_status: status == 500 and _passes(api_status), Meaning.DOUBTFUL),
    _ResponseRule(lambda *_: True, Meaning.REFUSED),
)


def meaning_of(answer: ApiResponse) -> Meaning:
    """Total: every answer means something."""
    refusal = refusal_of(answer)
    return next(line.meaning for line in _TABLE if line.fits(answer.status, refusal))


def refusal_of(answer: ApiResponse) -> ApiStatus:
    """What came with an answer; nothing where that is no Status."""
    try:
        return msgspec.json.decode(answer.body, type=ApiStatus)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ApiStatus()


class _UidMetadata(msgspec.Struct, frozen=True):
    uid: str = ""


class _WrittenObject(msgspec.Struct, frozen=True):
    metadata: _UidMetadata = _UidMetadata()


def uid_in(answer: ApiResponse) -> str:
    """Of the object that was written; nothing where the answer is no object."""
    try:
        return msgspec.json.decode(answer.body, type=_WrittenObject).metadata.uid
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return ""


def error_text(answer: ApiResponse) -> str:
    """For people: whose field, or which budget; else what the API server says."""
    refusal = refusal_of(answer)
    if fields := [(each.message, each.field) for each in refusal.causes if each.reason == _OF_A_FIELD]:
        return conflict((_owner(message), field.removeprefix(".")) for message, field in fields)
    budgets = [each.message for each in refusal.causes if each.reason == _OF_A_BUDGET and each.message]
    return budgets[0] if budgets else f"the API server says {said(answer)}"


def _owner(message: str) -> str:
    """Of: conflict with "kubectl-edit" using v1 at ..."""
    return message.partition('"')[2].partition('"')[0] or message


def _has(refusal: ApiStatus, reason: str) -> bool:
    return any(each.reason == reason for each in refusal.causes)


def _passes(refusal: ApiStatus) -> bool:
    is_asked_again = refusal.details is not None and refusal.details.retry_after_seconds > 0
    return is_asked_again or refusal.reason == "ServerTimeout" or any(each in refusal.message for each in _PASSING)
