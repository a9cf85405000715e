"""One step of the loop. A Cycle owns the state between passes: the stored memory, hints, and attempts.

An error holds back only what depends on it: with invalid policies the last good ones stay in force; if the cluster
cannot be read, the memory cannot be stored, or no plan can be made, the cluster does not change. The memory is
written before the actions that depend on it.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.loop.retries import FIRST_RETRY_MS, LONGEST_RETRY_MS, Attempts
from reconciler.model.cluster.observed import Observed
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, later
from reconciler.model.plan.decision import Decision, Hold, Outcome
from reconciler.model.plan.inputs import ClaimScheduler, CycleResult, Inputs
from reconciler.model.plan.memory import Hints
from reconciler.model.plan.plan import Plan
from reconciler.model.plan.pressure import PressureState
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
)

NO_POLICIES = "no valid policies have been read yet: nothing is planned"
FELL = "leadership was lost: no more writes"


class LoopDependencies(msgspec.Struct, frozen=True):
    policies: Policies
    cluster: Cluster
    memory: MemoryStore
    brain: PlanService
    clock: Clock
    publishers: tuple[Publisher, ...] = ()
    prune: tuple[str, ...] = ()  # titles of objects whose deletion a person allowed
    scheduler: ClaimScheduler = "external"
    most_at_once: int | None = None  # actions per pass; the rest is planned again at once. None: unlimited
    pressure: Callable[[], PressureState | None] | None = None  # what is reserved now; None: nobody answers agents


class Cycle:
    """Runs passes, each with a fence. A new fence means a new term, which begins with the stored memory."""

    def __init__(self, parts: LoopDependencies) -> None:
        self._parts = parts
        self._hints = Hints()
        self._fence: Fence | None = None
        self._stored: VersionedMemory | None = None
        self._attempts = Attempts()
        self._troubles = 0  # consecutive failed passes

    def once(self, fence: Fence) -> CycleResult:
        """Runs one pass, and publishes its result."""
        if fence is not self._fence:
            self._fence, self._stored, self._attempts = fence, None, Attempts()
        laps = [("", self._parts.clock.now())]
        cycled = self._woken(self._pass(fence, lambda part: laps.append((part, self._parts.clock.now()))))
        spent_ms = tuple((part, max(0, ended - began)) for (_, began), (part, ended) in pairwise(laps))
        return self._published(msgspec.structs.replace(cycled, spent_ms=spent_ms))

    def _published(self, cycled: CycleResult) -> CycleResult:
        """Calls all publishers; an error of one affects neither the others nor the loop."""
        unpublished, wakes = [], [cycled.wake_at]
        for each in self._parts.publishers:
            try:
                wakes.append(each.publish(cycled))
            except Exception as fault:  # noqa: BLE001 - what can't be told now is told the next time
                unpublished.append(_fault(f"{type(each).__name__} did not publish and", fault))
        wake_at = min((each for each in wakes if each is not None), default=None)
        return msgspec.structs.replace(cycled, unpublished=tuple(unpublished), wake_at=wake_at)

    def _pass(self, fence: Fence, end: Callable[[str], None]) -> CycleResult:
        """`end` records that a part of the pass has ended."""
        now = self._parts.clock.now()
        try:
            observed = self._parts.cluster.observe()
            wished = self._parts.policies.wish(observed.cluster_uid)
            pressure = self._parts.pressure() if self._parts.pressure is not None else None
        except Exception as fault:  # noqa: BLE001 - a pass that comes to nothing is told as that
            return CycleResult(now, trouble=_fault("reading the cluster and the policies", fault))
        end("observe")
        if wished.desired is None:
            return CycleResult(now, trouble=wished.why or NO_POLICIES, problems=wished.problems)
        try:
            inputs = msgspec.structs.replace(self._inputs(now, observed, wished.desired), pressure=pressure)
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
            end("plan")
        self._hints = plan.hints
        cycled = msgspec.structs.replace(cycled, plan=plan, wake_at=plan.wake_at)
        if why := _why_unfit(observed, fence) or self._remember(plan, fence):
            return msgspec.structs.replace(cycled, trouble=why)
        end("remember")
        due = self._due(plan)
        sent = _first(due, self._parts.most_at_once)
        wake_at = cycled.wake_at if len(sent) == len(due) else now
        outcomes = self._carry_out(sent, fence)
        end("apply")
        return msgspec.structs.replace(cycled, outcomes=outcomes, wake_at=wake_at)

    def _inputs(self, now: Instant, observed: Observed, desired: Desired) -> Inputs:
        if self._stored is None:
            self._stored = self._parts.memory.load()
        parts, memory = self._parts, self._stored.memory
        return Inputs(desired, observed, now, memory, self._hints, prune=parts.prune, scheduler=parts.scheduler)

    def _remember(self, plan: Plan, fence: Fence) -> str:
        """Stores the memory before any action. Returns an error text, in which case no action is allowed."""
        stored = self._stored
        if stored is None or plan.memory == stored.memory:
            return ""
        self._stored = None  # unknown until the write succeeds
        try:
            self._stored = self._parts.memory.save(plan.memory, stored)
        except Stale:
            return "someone else wrote the memory: nothing is done until it is read again"
        except Unavailable as fault:
            return f"the memory could not be written, so nothing is done: {fault}"
        return "" if fence.holds() else FELL

    def _due(self, plan: Plan) -> tuple[Decision, ...]:
        acting = [each for each in plan.decisions if not isinstance(each.act, Hold) and not each.would]
        return self._attempts.due(acting, self._parts.clock.now())

    def _carry_out(self, due: Sequence[Decision], fence: Fence) -> tuple[Outcome, ...]:
        decisions = {each.subject: each for each in due}  # one action per subject is an invariant
        outcomes = []
        for outcome in self._parts.cluster.apply(due, fence) if due else ():
            outcomes.append(outcome)
            self._attempts.learn(decisions[outcome.subject], outcome, self._parts.clock.now())
        return tuple(outcomes)

    def _woken(self, cycled: CycleResult) -> CycleResult:
        """When to run again: as the plan says, or sooner for a retry."""
        wakes = [each for each in (cycled.wake_at, self._attempts.wake_at(cycled.at)) if each is not None]
        self._troubles = self._troubles + 1 if cycled.trouble else 0
        if self._troubles:
            wait_ms = min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** min(self._troubles - 1, 10))
            wakes.append(later(cycled.at, wait_ms))
        return msgspec.structs.replace(cycled, wake_at=min(wakes, default=None))


def _first(due: Sequence[Decision], most: int | None) -> tuple[Decision, ...]:
    """As many actions as allowed at once, in order; none without its predecessor."""
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
    """Why no action is allowed, regardless of the plan."""
    if not fence.holds():
        return FELL
    if not observed.cluster_uid:
        return "the identity of the cluster could not be read: nothing is done"
    if unread := unread_of_use(observed):
        text = "; ".join(f"{each.kind}: {each.why}" for each in unread)
        return f"required kinds could not be read, so nothing is done: {text}"
    if why := why_unsure(observed):
        return f"freezes could not be read, so nothing is done: {why}"
    return ""


def _fault(what: str, fault: Exception) -> str:
    return f"{what} failed because of a bug in reconciler: {type(fault).__name__}: {fault}"


def _why_no_plan(fault: Exception) -> str:
    if isinstance(fault, BrokenInvariant):
        return f"the plan breaks an invariant because of a bug in reconciler, and is not carried out: {fault}"
    return str(fault)


# --- From inputs to a plan that breaks no invariant.


def decide(inputs: Inputs, fleet: Fleet | None = None) -> PlanningResult:
    """Plans and checks. Raises BrokenInvariant instead of returning a harmful plan. `fleet`, if given, must belong to
    the same Observed."""
    if fleet is None:
        fleet = Fleet(inputs.observed)
    planned = plan(inputs, fleet)
    check(inputs, fleet, planned)
    return PlanningResult(inputs, fleet, planned)


class InProcess:
    """A Brain in this process. Owns the fleet used for planning, and the last result."""

    def __init__(self) -> None:
        self._fleet: Fleet | None = None
        self.scene: PlanningResult | None = None

    def plan(self, inputs: Inputs) -> Plan:
        """Like `decide`, with a fleet that is updated from one plan to the next."""
        if self._fleet is None:
            self._fleet = Fleet(inputs.observed)
        elif self._fleet.observed is not inputs.observed:
            self._fleet.advance(inputs.observed)
        self.scene = decide(inputs, self._fleet)
        return self.scene.plan
