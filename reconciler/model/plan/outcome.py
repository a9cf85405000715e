"""What came of one action: whether it took effect, and if not, whether to try again."""

from typing import Literal

import msgspec

from reconciler.model.plan.action import Ref

Result = Literal[
    "done",  # it took effect, or had before
    "stale",  # what it presumes is no longer so: the next plan looks again
    "refused",  # the API server will not have it, now or later, as things stand
    "retry",  # not now: a budget, a rate limit, an API server in trouble
    "unknown",  # it was sent, and no answer came: it may have taken effect
]


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """Of one decision."""

    subject: Ref
    verb: str  # the tag of its action
    result: Result
    detail: str = ""  # a sentence, where it is not done
