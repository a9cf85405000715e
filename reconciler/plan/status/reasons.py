"""Reasons for writing a status."""

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
    """Problems of all policies."""

    problems: int


class StatusTold(CodeFacts, frozen=True):
    template = "The status of {object} is updated: {standing}."

    object: Ref
    standing: str | ProblemCount  # the message of the status


REASONS: tuple[type[CodeFacts], ...] = (StatusTold,)


# --- Text of statuses. Reasons hold these as data.


def problem_words(count: ProblemCount) -> str:
    """Such as 2 problems."""
    return f"{count.problems} problems" if count.problems else "no problem"


WORDS: Mapping[type, Callable[[Any], str]] = {ProblemCount: problem_words}


# --- Reasons of policy conditions without a decision: one class per case, whose name is the published reason.

# Problems that belong to no single object.
NOT_WHOLE, SEVERAL, UNREAD = "RC521", "RC522", "RC523"


class Message(msgspec.Struct, frozen=True, tag=True):
    """Texts are in reconciler/report/conditions.py."""

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
    """Other policies must be corrected first."""

    culprit: PolicyRef
    others: int  # number of other policies with problems
    problem: Problem
    bundle: BundleObjects | None


class PoliciesRefused(Message, frozen=True):
    """Refused because of a problem that belongs to no single object."""

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
    """The bundle will be checked next."""

    bundle: BundleObjects | None


class Suspended(Message, frozen=True):
    pass


class Observed(Message, frozen=True):
    suppressed: int  # decisions about its rendered objects


class Followed(Message, frozen=True):
    pass


class NotLimited(Message, frozen=True):
    kind: LimitKind


class NothingRefused(Message, frozen=True):
    """Every launch option is available."""


class MachinesRefused(Message, frozen=True):
    shortages: tuple[Shortage, ...]  # at least one

    @property
    def code(self) -> str:
        """The code of the last shortage."""
        return self.shortages[-1].why
