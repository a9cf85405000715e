"""A planner that raises is contained to the pool that it was planning for, or else to itself.

Theory of operation. No planner should raise, whatever the cluster and the policies are: one that does is a fault of
ours. Code that plans for one pool runs within `planning_for(pool)`, which notes the pool on an exception. Then the
planner is run again from the same draft without that pool, until it returns. Where an exception tells no pool, or the
planner raises again for a pool that is left out, the planner has no verdict at all.

What a planner would do for a pool that is left out is held. So is what later planners would take away from that pool,
a node or a pod: what the first one would have claimed there is not known.
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
        "{planner} could not plan for {object} ({error}, at {place}): nothing is done there in this plan. This is a "
        "fault of reconciler: please report it, with what reconciler dump writes."
    )
    hold = "blocked"

    planner: str
    object: Ref
    error: str
    place: str  # file and line of the code


REASONS = (PlannerFailed,)

T = TypeVar("T")

_MOST_POOLS = 20  # that are left out one by one, each at the cost of a further run
_TRACE = 12
_LONGEST = 500  # characters of an error
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")
_PACKAGE = __file__.replace("\\", "/").rpartition("plan/")[0]  # where this package is installed


class PlanningFailed(Exception):
    """An exception in code that plans for one pool."""

    def __init__(self, pool: str) -> None:
        super().__init__(pool)
        self.pool = pool


class planning_for:  # noqa: N801 - read as a statement: with planning_for(pool)
    """Notes the pool on whatever is raised within; of several around each other the innermost counts."""

    __slots__ = ("_pool",)

    def __init__(self, pool: str) -> None:
        self._pool = pool

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, PlanningFailed):
            raise PlanningFailed(self._pool) from error


class ContainedVerdict(msgspec.Struct, frozen=True):
    """What a planner came to, and where it could not plan."""

    verdict: Verdict
    troubles: tuple[PlannerFailure, ...] = ()


def contained(planner: Planner, inputs: Inputs, draft: Draft) -> ContainedVerdict:
    """Runs the planner; raises nothing that the planner raises."""
    before, troubles = draft.checkpoint(), list[PlannerFailure]()
    while True:
        try:
            return ContainedVerdict(planner(inputs, draft), tuple(troubles))
        except Exception as error:  # noqa: BLE001 - whatever it is, other pools and planners go on
            trouble = _trouble_of(planner, error)
        draft.restore(before)
        troubles.append(trouble)
        if not trouble.pool or trouble.pool in draft.left_out or len(troubles) > _MOST_POOLS:
            whole = msgspec.structs.replace(trouble, pool="")
            return ContainedVerdict(Verdict(), (*troubles[:-1], whole))
        draft.leave_out(trouble.pool)


class Troubles:
    """Owner of what could not be planned in one plan."""

    def __init__(self, inputs: Inputs) -> None:
        self._inputs = inputs
        self.all: list[PlannerFailure] = []

    def add(self, troubles: Sequence[PlannerFailure]) -> Iterator[Decision]:
        """Tells of each pool that is concerned why nothing is done."""
        self.all += troubles
        for trouble in troubles:
            pools = [trouble.pool] if trouble.pool else [each.name for each in self._inputs.desired.pools]
            for pool in pools:
                subject = Ref("GpuPool", "", pool)
                yield Decision(trouble.planner, subject, Hold(), self._reason(trouble, subject), pool)

    def attempt(self, part: str, run: Callable[[], T]) -> T | None:
        """What a part that all planners share came to; None where that part raised. The caller then holds everything:
        what the part would have held is not known."""
        try:
            return run()
        except Exception as error:  # noqa: BLE001 - whatever it is, there is a plan that says so
            self.all.append(_trouble(part, "", error))
            return None

    def hold(self, part: str, decisions: Iterable[Decision]) -> tuple[Decision, ...]:
        """All of them held, after a part raised that all planners share."""
        trouble = next(each for each in reversed(self.all) if each.planner == part)
        return tuple(
            each
            if isinstance(each.act, Hold)
            else msgspec.structs.replace(each, act=Hold(), reason=self._reason(trouble, each.subject))
            for each in decisions
        )

    def of_decision(self, part: str, decision: Decision, error: Exception) -> Reason:
        """Why a decision is held for which a part raised."""
        trouble = _trouble(part, decision.pool, error)
        if trouble not in self.all:
            self.all.append(trouble)
        return self._reason(trouble, decision.subject)

    def why_not(self, decision: Decision, *, takes_away: bool) -> Reason | None:
        """Why a decision waits; `takes_away`: the action takes away a node or a pod."""
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
    """Below the package, or else the name alone: the same fault is told alike wherever the program is installed."""
    for frame in extract_tb(error.__traceback__):
        file = frame.filename.replace("\\", "/")
        inside = file.startswith(_PACKAGE)
        yield f"{file.removeprefix(_PACKAGE) if inside else file.rpartition('/')[2]}:{frame.lineno}"
