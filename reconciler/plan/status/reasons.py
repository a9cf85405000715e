"""Why a status is written."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import msgspec

from reconciler.model.cluster.bundle_objects import BundleObjects
from reconciler.model.plan.capacity import Shortage
from reconciler.model.plan.decision import CodeFacts, Reason, Ref
from reconciler.model.plan.evaluation import LimitKind
from reconciler.model.problem import PolicyRef, Problem

PLANNER = "statuses"


class ProblemCount(msgspec.Struct, frozen=True, gc=False):
    """Of all policies together."""

    problems: int


class StatusTold(CodeFacts, frozen=True):
    template = "{object} is told how it stands: {standing}."

    object: Ref
    standing: str | ProblemCount  # the message that its status gets


REASONS: tuple[type[CodeFacts], ...] = (StatusTold,)


# --- What is said of statuses. Reasons hold these as data.


def problem_words(count: ProblemCount) -> str:
    """2 problems."""
    return f"{count.problems} problems" if count.problems else "no problem"


WORDS: Mapping[type, Callable[[Any], str]] = {ProblemCount: problem_words}


# --- Why a condition of a policy is as it is, where no decision says so: one class a case, whose name is published as
# the reason of the condition.

# Problems that no single object causes.
NOT_WHOLE, SEVERAL, UNREAD = "RC521", "RC522", "RC523"


class Message(msgspec.Struct, frozen=True, tag=True):
    """Words of each are in reconciler/report/conditions.py."""

    @property
    def code(self) -> str:
        return type(self).__name__


Why = Message | Reason


class Invalid(Message, frozen=True):
    problems: tuple[Problem, ...]  # at least one


class BundleIncomplete(Message, frozen=True):
    """The bundle is still being applied."""

    bundle: BundleObjects


class WaitingForBundle(Message, frozen=True):
    """Others are to be corrected first."""

    culprit: PolicyRef
    others: int  # that have problems besides
    problem: Problem
    bundle: BundleObjects | None


class PoliciesRefused(Message, frozen=True):
    """By a problem that no object causes by itself."""

    codes: ClassVar[dict[str, str]] = {
        NOT_WHOLE: WaitingForBundle.__name__,
        SEVERAL: "SeveralBundles",
        UNREAD: "PoliciesUnread",
    }

    problem: Problem

    @property
    def code(self) -> str:
        return self.codes.get(self.problem.code, "PoliciesRefused")


class NotInBundle(Message, frozen=True):
    pass


class BundleReceived(Message, frozen=True):
    """The bundle is judged next."""

    bundle: BundleObjects | None


class Suspended(Message, frozen=True):
    pass


class Observed(Message, frozen=True):
    suppressed: int  # decisions about what its template yields


class Followed(Message, frozen=True):
    pass


class NotLimited(Message, frozen=True):
    kind: LimitKind


class NothingRefused(Message, frozen=True):
    """Every way to buy may be tried."""


class MachinesRefused(Message, frozen=True):
    shortages: tuple[Shortage, ...]  # at least one

    @property
    def code(self) -> str:
        """Of the last one."""
        return self.shortages[-1].why
