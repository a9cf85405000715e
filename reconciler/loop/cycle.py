"""The loop's step; a Cycle is the owner of what one pass leaves for the next: the memory as stored, hints, attempts.

What fails holds back what hangs on it, and nothing else: policies that turn bad leave the last good ones in force; what
can't be read of the cluster, a memory that can't be kept or a plan that can't be made leave the cluster as it is. The
memory is written before the actions that may depend on it go out.
"""

from collections.abc import Iterator, Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.loop.retries import FIRST_RETRY_MS, LONGEST_RETRY_MS, Attempts
from reconciler.model.cluster.observed import Observed
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Decision, Hold, Outcome
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Hints
from reconciler.model.plan.plan import Plan
from reconciler.plan.check import BrokenInvariant, check
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.frozen import why_unsure
from reconciler.plan.planner import plan, unread_of_use
from reconciler.ports import (
    Clock,
    Cluster,
    Declined,
    Fence,
    MemoryStore,
    PlanService,
    Policies,
    Publisher,
    Stale,
    Unavailable,
    VersionedMemory,
    Wished,
)

NO_POLICIES = "no good policies have been read yet: nothing is planned"
FELL = "leadership was lost: nothing more is written"


class LoopDependencies(msgspec.Struct, frozen=True):
    """What is plugged in."""

    policies: Policies
    cluster: Cluster
    memory: MemoryStore
    brain: PlanService
    clock: Clock
    publishers: tuple[Publisher, ...] = ()
    prune: tuple[str, ...] = ()  # titles of objects that a person agreed to lose
    most_at_once: int | None = None  # actions of one pass; the rest is planned anew at once. None: all of them


class Laps:
    """Owner of how long the parts of one pass took."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began = clock.now()
        self._found: list[tuple[str, int]] = []

    def over(self, part: str) -> None:
        """It took the time since the one before it was over."""
        now = self._clock.now()
        self._found.append((part, max(0, now - self._began)))
        self._began = now

    @property
    def durations(self) -> tuple[tuple[str, int], ...]:
        return tuple(self._found)


class Cycle:
    """One pass after another, each with a fence: another fence is another term, and starts from what is stored."""

    def __init__(self, parts: LoopDependencies) -> None:
        self._parts = parts
        self._hints = Hints()
        self._fence: Fence | None = None
        self._stored: VersionedMemory | None = None
        self._attempts = Attempts()
        self._troubles = 0  # passes in a row that came to nothing

    def once(self, fence: Fence) -> CycleResult:
        """One pass, told to all who publish."""
        if fence is not self._fence:
            self._fence, self._stored, self._attempts = fence, None, Attempts()
        laps = Laps(self._parts.clock)
        cycled = msgspec.structs.replace(self._woken(self._pass(fence, laps)), spent_ms=laps.durations)
        return msgspec.structs.replace(cycled, unpublished=tuple(self._unpublished(cycled)))

    def _unpublished(self, cycled: CycleResult) -> Iterator[str]:
        """Tells all who publish; a publisher that raises stops neither the others nor the loop."""
        for each in self._parts.publishers:
            try:
                each.publish(cycled)
            except Exception as fault:  # noqa: BLE001 - what can't be told now is told the next time
                yield _fault(f"{type(each).__name__} did not publish and", fault)

    def _pass(self, fence: Fence, laps: "Laps") -> CycleResult:
        now = self._parts.clock.now()
        try:
            observed = self._parts.cluster.observe()
            wished = self._parts.policies.wish(observed.cluster_uid)
        except Exception as fault:  # noqa: BLE001 - a pass that comes to nothing is told as that
            return CycleResult(now, trouble=_fault("reading what there is and what is wished for", fault))
        laps.over("observe")
        if wished.desired is None:
            return CycleResult(now, trouble=wished.why or NO_POLICIES, problems=wished.problems)
        try:
            inputs = self._inputs(now, observed, wished)
        except Unavailable as fault:
            return CycleResult(now, trouble=str(fault), problems=wished.problems)
        cycled = CycleResult(now, inputs, problems=wished.problems)
        try:
            plan = self._parts.brain.plan(inputs)
        except (Unavailable, BrokenInvariant) as fault:
            return msgspec.structs.replace(cycled, trouble=_why_no_plan(fault))
        except Declined:
            raise
        except Exception as fault:  # noqa: BLE001 - a plan that can't be made leaves the cluster as it is
            return msgspec.structs.replace(cycled, trouble=_fault("planning", fault))
        finally:
            laps.over("plan")
        self._hints = plan.hints
        cycled = msgspec.structs.replace(cycled, plan=plan, wake_at=plan.wake_at)
        if why := _why_unfit(observed, fence) or self._remember(plan, fence):
            return msgspec.structs.replace(cycled, trouble=why)
        laps.over("remember")
        due = self._due(plan)
        sent = _first(due, self._parts.most_at_once)
        wake_at = cycled.wake_at if len(sent) == len(due) else now
        outcomes = self._carry_out(sent, fence)
        laps.over("apply")
        return msgspec.structs.replace(cycled, outcomes=outcomes, wake_at=wake_at)

    def _inputs(self, now: Instant, observed: Observed, wished: Wished) -> Inputs:
        if wished.desired is None:
            raise TypeError("without a wish there are no inputs")
        if self._stored is None:
            self._stored = self._parts.memory.load()
        return Inputs(wished.desired, observed, now, self._stored.memory, self._hints, prune=self._parts.prune)

    def _remember(self, plan: Plan, fence: Fence) -> str:
        """Before anything is done. Says why it could not be, and then nothing may be done."""
        stored = self._stored
        if stored is None or plan.memory == stored.memory:
            return ""
        self._stored = None  # until it is known what stands
        try:
            self._stored = self._parts.memory.save(plan.memory, stored)
        except Stale:
            return "someone else wrote the memory: it is read again, and nothing is done before"
        except Unavailable as fault:
            return f"the memory could not be written, and nothing is done without it: {fault}"
        return "" if fence.holds() else FELL

    def _due(self, plan: Plan) -> tuple[Decision, ...]:
        acting = [each for each in plan.decisions if not isinstance(each.act, Hold) and not each.would]
        return self._attempts.due(acting, self._parts.clock.now())

    def _carry_out(self, due: Sequence[Decision], fence: Fence) -> tuple[Outcome, ...]:
        decisions = {each.subject: each for each in due}  # one action a subject is an invariant
        outcomes = []
        for outcome in self._parts.cluster.apply(due, fence) if due else ():
            outcomes.append(outcome)
            self._attempts.learn(decisions[outcome.subject], outcome, self._parts.clock.now())
        return tuple(outcomes)

    def _woken(self, cycled: CycleResult) -> CycleResult:
        """When to look again: as the plan says, or sooner where something is to be tried again."""
        wakes = [each for each in (cycled.wake_at, self._attempts.wake_at(cycled.at)) if each is not None]
        self._troubles = self._troubles + 1 if cycled.trouble else 0
        if self._troubles:
            wait_ms = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(self._troubles - 1, 10))
            wakes.append(later(cycled.at, wait_ms))
        return msgspec.structs.replace(cycled, wake_at=min(wakes, default=None))


def _first(due: Sequence[Decision], most: int | None) -> tuple[Decision, ...]:
    """As many as may go together, in their order; none without what it comes after."""
    if most is None or len(due) <= most:
        return tuple(due)
    coming = {each.subject for each in due}
    decisions: list[Decision] = []
    for each in due:
        if len(decisions) == most:
            break
        if coming.isdisjoint(each.after):
            decisions.append(each)
            coming.discard(each.subject)
    return tuple(decisions)


def _why_unfit(observed: Observed, fence: Fence) -> str:
    """Why nothing may be done, whatever the plan says."""
    if not fence.holds():
        return FELL
    if not observed.cluster_uid:
        return "which cluster this is could not be read: nothing is done"
    if unread := unread_of_use(observed):
        text = "; ".join(f"{each.kind}: {each.why}" for each in unread)
        return f"what plans go by could not all be read, and nothing is done: {text}"
    if why := why_unsure(observed):
        return f"whether anything is frozen could not be read, and nothing is done: {why}"
    return ""


def _fault(what: str, fault: Exception) -> str:
    return f"{what} broke off, by a fault of reconciler: {type(fault).__name__}: {fault}"


def _why_no_plan(fault: Exception) -> str:
    if isinstance(fault, BrokenInvariant):
        return f"the plan breaks an invariant, by a fault of reconciler, and is not carried out: {fault}"
    return str(fault)


# --- From inputs to a plan that breaks no invariant.


def decide(inputs: Inputs, fleet: Fleet | None = None) -> PlanningResult:
    """Plans and checks; raises BrokenInvariant rather than hand on a plan that could do harm. `fleet`, where there is
    one already, is of the same Observed."""
    if fleet is None:
        fleet = Fleet(inputs.observed)
    planned = plan(inputs, fleet)
    check(inputs, fleet, planned)
    return PlanningResult(inputs, fleet, planned)


class InProcess:
    """A Brain without a process of its own; owner of the fleet that it plans with, and of the last scene."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self.scene: PlanningResult | None = None

    def plan(self, inputs: Inputs) -> Plan:
        """As `decide`, with a fleet that moves on from one plan to the next."""
        if self._fleet is None:
            self._fleet = Fleet(inputs.observed)
        elif self._fleet.observed is not inputs.observed:
            self._fleet.advance(inputs.observed)
        self.scene = decide(inputs, self._fleet)
        return self.scene.plan
