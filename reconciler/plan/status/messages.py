"""Why a condition of a policy is as it is, where no decision says so: one class a case, whose name is published as the
reason of the condition."""

from typing import ClassVar

import msgspec

from reconciler.model.cluster.bundle_objects import BundleObjects
from reconciler.model.plan.reason import Reason
from reconciler.model.plan.shortage import Shortage
from reconciler.model.plan.size_evaluation import LimitKind
from reconciler.model.problem import PolicyRef, Problem

# Problems that no single object causes.
NOT_WHOLE, SEVERAL, UNREAD = "RC521", "RC522", "RC523"


class Message(msgspec.Struct, frozen=True, tag=True):
    """Words of each are in reconciler/report/conditions/messages.py."""

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
