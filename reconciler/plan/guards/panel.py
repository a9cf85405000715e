"""Owner of what all guards together hold of one plan, and of what they let go."""

from collections.abc import Sequence

import msgspec

from reconciler.model.plan.disruption_record import DisruptionRecord
from reconciler.plan.guards.reasons import BehindOthers, HeldByGuard, HourIsFull, OverHourLimit, OverPlanLimit
from reconciler.plan.guards.tally import GuardHeadroom, GuardTally, Take


class Held(msgspec.Struct, frozen=True):
    """By which guard, and why."""

    tally: GuardTally
    room: GuardHeadroom
    why: type[HeldByGuard]


class GuardPanel:
    """Each guard looks at the plan as a whole, then at each take that no guard holds yet."""

    def __init__(self, tallies: Sequence[GuardTally], takes: Sequence[Take]) -> None:
        self.tallies = tuple(tallies)
        self.takes = tuple(takes)
        self.held: dict[int, Held] = {}  # by the place of the decision
        self.marks: list[DisruptionRecord] = []  # of what goes
        self.approvals: dict[str, set[str]] = {}  # by guard, what let something pass
        for tally in self.tallies:
            self._look_at_the_plan(tally)
        for take in self.takes:
            if take.at not in self.held:
                self._look_at_the_hour(take)

    def held_by(self, tally: GuardTally) -> list[Held]:
        return [each for each in self.held.values() if each.tally is tally]

    def _look_at_the_plan(self, tally: GuardTally) -> None:
        tally.count(self.takes)
        room = tally.judge_plan()
        if room.approvals:
            self.approvals[tally.guard.name] = set(room.approvals)
        if room.is_free:
            return
        for take in self.takes:
            if tally.own(take):
                self.held.setdefault(take.at, Held(tally, room, OverPlanLimit))

    def _look_at_the_hour(self, take: Take) -> None:
        guarding = [tally for tally in self.tallies if tally.own(take)]
        passed: dict[str, tuple[str, ...]] = {}
        for tally in guarding:
            room = tally.room(take)
            if not room.is_free:
                self.held[take.at] = Held(tally, room, _why(room))
                return
            of_plan = self.approvals.get(tally.guard.name, set())
            passed[tally.guard.name] = room.approvals or tuple(sorted(of_plan.intersection(tally.covering(take))))
        for tally in guarding:
            tally.admit(take, passed[tally.guard.name])
        for guard, approvals in passed.items():
            self.approvals.setdefault(guard, set()).update(approvals)
        names = tuple(sorted({name for approvals in passed.values() for name in approvals}))
        if guarding:
            self.marks += [msgspec.structs.replace(each.mark, approvals=names) for each in take.taken]


def _why(room: GuardHeadroom) -> type[HeldByGuard]:
    if room.until is None:
        return OverHourLimit
    return HourIsFull if room.over else BehindOthers
