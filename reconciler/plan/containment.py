"""Containment of planner exceptions: an exception affects one pool, or else one planner.

Theory of operation. A planner should never raise, whatever the cluster and the policies are; an exception is a bug
of reconciler. Code that plans for one pool runs within `planning_for(pool)`, which records the pool in the
exception. The planner then runs again from the same draft without that pool, until the planner returns. If an
exception names no pool, or names a pool that is left out already, the planner has no verdict at all.

The actions of a planner for a pool that is left out are held. The actions of later planners that take a node or a
pod of that pool away are held too, because the claims of the first planner are unknown.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from traceback import extract_tb
from types import TracebackType
from typing import Self, TypeVar

import msgspec

from reconciler.model.plan.decision import CodeFacts, Decision, Hold, PlannerFailure, Reason, Ref
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.draft import Draft, Planner, Verdict


class PlannerFailed(CodeFacts, frozen=True):
    template = (
        "{planner} could not plan for {object} ({error}, at {place}): this plan does nothing there. This is a bug of "
        "reconciler: please report the bug, with the output of reconciler dump."
    )
    hold = "blocked"

    planner: str
    object: Ref
    error: str
    place: str  # file and line of the code


REASONS = (PlannerFailed,)

T = TypeVar("T")

_MOST_POOLS = 20  # most pools left out one by one; each costs a further run of the planner
_TRACE = 12
_LONGEST = 500  # longest error text, in characters
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_PACKAGE = __file__.replace("\\", "/").rpartition("plan/")[0]  # folder where this package is installed


class PlanningFailed(Exception):
    """An exception in code that plans for one pool."""

    def __init__(self, pool: str) -> None:
        super().__init__(pool)
        self.pool = pool


class planning_for:  # noqa: N801 - read as a statement: with planning_for(pool)
    """Context manager that records the pool in an exception. Where several are nested, the innermost pool counts. A
    loop over nodes of several pools sets `pool` for each node.
    """

    __slots__ = ("pool",)

    def __init__(self, pool: str = "") -> None:
        self.pool = pool

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, PlanningFailed):
            raise PlanningFailed(self.pool) from error


class ContainedVerdict(msgspec.Struct, frozen=True):
    """The verdict of a planner, and the failures of the pools that were left out."""

    verdict: Verdict
    troubles: tuple[PlannerFailure, ...] = ()


def contained(planner: Planner, inputs: Inputs, draft: Draft) -> ContainedVerdict:
    """Run the planner, and turn every exception into a PlannerFailure."""
    before, troubles = draft.begin(), list[PlannerFailure]()
    while True:
        try:
            return ContainedVerdict(planner(inputs, draft), tuple(troubles))
        except Exception as error:  # noqa: BLE001 - other pools and planners must go on after any exception
            trouble = _trouble_of(planner, error)
        draft.restore(before)
        troubles.append(trouble)
        if not trouble.pool or trouble.pool in draft.left_out or len(troubles) > _MOST_POOLS:
            whole = msgspec.structs.replace(trouble, pool="")
            return ContainedVerdict(Verdict(), (*troubles[:-1], whole))
        draft.leave_out(trouble.pool)


class Troubles:
    """Failures of the planners in one plan, and the holds that follow from the failures."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.all: list[PlannerFailure] = []

    def add(self, troubles: Sequence[PlannerFailure]) -> Iterator[Decision]:
        """Record failures, and yield a hold with the reason for each affected pool."""
        self.all += troubles
        for trouble in troubles:
            pools = [trouble.pool] if trouble.pool else [each.name for each in self._inputs.desired.pools]
            for pool in pools:
                subject = Ref("GpuPool", "", pool)
                yield Decision(trouble.planner, subject, Hold(), self._reason(trouble, subject), pool)

    def attempt(self, part: str, run: Callable[[], T]) -> T | None:
        """Result of a step that all planners share, or None if the step raised. After None the caller must hold every
        decision, because the holds that the step would have made are unknown.
        """
        try:
            return run()
        except Exception as error:  # noqa: BLE001 - the plan must report any exception
            self.all.append(_trouble(part, "", error))
            return None

    def hold(self, part: str, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
        """All decisions as holds, after a shared step raised."""
        trouble = next(each for each in reversed(self.all) if each.planner == part)
        return tuple(
            each
            if isinstance(each.act, Hold)
            else msgspec.structs.replace(each, act=Hold(), reason=self._reason(trouble, each.subject))
            for each in decisions
        )

    def of_decision(self, part: str, decision: Decision, error: Exception) -> Reason:
        """Reason to hold a decision for which a shared step raised."""
        trouble = _trouble(part, decision.pool, error)
        if trouble not in self.all:
            self.all.append(trouble)
        return self._reason(trouble, decision.subject)

    def why_not(self, decision: Decision, *, takes_away: bool) -> Reason | None:
        """Reason to hold a decision, or None. `takes_away`: the action takes a node or a pod away."""
        for trouble in self.all:
            if trouble.pool in {"", decision.pool} and (takes_away or trouble.planner == decision.planner):
                return self._reason(trouble, decision.subject)
        return None

    @staticmethod
    def _reason(trouble: PlannerFailure, subject: Ref) -> Reason:
        place = trouble.trace[-1] if trouble.trace else "an unknown place"
        return Reason(PlannerFailed(planner=trouble.planner, object=subject, error=trouble.error, place=place))


def _trouble_of(planner: Planner, error: Exception) -> PlannerFailure:
    pool = error.pool if isinstance(error, PlanningFailed) else ""
    cause = error.__cause__ if isinstance(error, PlanningFailed) and error.__cause__ is not None else error
    return _trouble(getattr(planner, "__name__", type(planner).__name__), pool, cause)


def _trouble(name: str, pool: str, error: BaseException) -> PlannerFailure:
    text = _ADDRESS.sub("", f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    return PlannerFailure(name, pool, text[:_LONGEST], tuple(_places(error))[-_TRACE:])


def _places(error: BaseException) -> Iterator[str]:
    """Frames as file:line. Files of this package are relative to the package, other files have only their name, so the
    text does not depend on where the program is installed.
    """
    for frame in extract_tb(error.__traceback__):
        file = frame.filename.replace("\\", "/")
        inside = file.startswith(_PACKAGE)
        yield f"{file.removeprefix(_PACKAGE) if inside else file.rpartition('/')[2]}:{frame.lineno}"
