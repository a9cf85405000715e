"""Who follows a story that is drained: what was done, what stood at the end, and whether a restart would change it."""

from collections import Counter
from pathlib import Path
from random import Random

import msgspec

from reconciler.loop.cycle import decide
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import Evict, Hold
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Hints, Memory
from reconciler.model.plan.plan import Plan
from reconciler.plan.drain.codes.candidacy import CANDIDATES, NoLongerCandidate
from reconciler.report.simulation.simulated import Simulated
from reconciler.simulate.runner.play import Play
from reconciler.simulate.runner.run import RunOptions, run
from tests.stages.stories.drained.drawn import drawn

_TRIED = 0.03  # of all cycles
_BY_PLACES = CANDIDATES | {NoLongerCandidate}


class Outcome(msgspec.Struct, frozen=True):
    """A play, and what came of it."""

    play: Play
    simulated: Simulated
    done: dict[str, int]  # by the code of the reason
    moved: tuple[Instant, ...]  # when pods were asked to leave
    changed: tuple[str, ...]  # what would have been planned otherwise after a restart
    tried: int  # restarts
    timers_lost: int  # that a restart would have taken back: without hints, places are found in another way
    last: Inputs


class _Witness:
    """A Publisher."""

    def __init__(self, seed: int) -> None:
        self._chance = Random(f"restarts/{seed}")
        self.done: Counter[str] = Counter()
        self.moved: list[Instant] = []
        self.changed: list[str] = []
        self.tried = self.timers_lost = 0
        self.last: Inputs | None = None

    def publish(self, cycled: CycleResult) -> None:
        if cycled.plan is None or cycled.inputs is None:
            return
        self.last = cycled.inputs
        done = {each.subject for each in cycled.outcomes if each.result == "done"}
        for each in cycled.plan.decisions:
            if each.subject in done and each.planner == "drain" and not isinstance(each.act, Hold):
                self.done[each.reason.code] += 1
                if isinstance(each.act, Evict):
                    self.moved.append(cycled.at)
        if self._chance.random() < _TRIED:
            self.tried += 1
            told, lost = changed_by_restart(cycled.inputs, cycled.plan)
            self.changed += told
            self.timers_lost += lost


def changed_by_restart(inputs: Inputs, plan: Plan) -> tuple[list[str], int]:
    """A new process reads the memory again, and has seen nothing before. With hints all is as it was. Without them pods
    may go elsewhere, by which other nodes become candidates, and now and then a candidate is none any more: how many
    is told. What was begun goes on."""
    memory = msgspec.json.decode(msgspec.json.encode(inputs.memory), type=Memory)
    again = msgspec.structs.replace(inputs, memory=memory)
    found = [] if decide(again).plan == plan else [f"at {inputs.now} another plan is made of the same"]
    unaided = decide(msgspec.structs.replace(again, hints=Hints())).plan
    for told, before, after in zip(("memory", "nodes"), _firm(plan), _firm(unaided), strict=True):
        if before != after:
            found.append(f"at {inputs.now} without hints, {told}: {before} and {after}")
    return found, len(_unmarked(unaided) - _unmarked(plan))


def _firm(plan: Plan) -> tuple[object, object]:
    drained = plan.memory.drained
    own = [each for each in plan.decisions if each.planner == "drain" and each.subject.kind == "Node"]
    own = [each for each in own if type(each.reason.facts) not in _BY_PLACES]
    acted = sorted(
        (each.subject.title, each.reason.code, repr(each.act)) for each in own if not isinstance(each.act, Hold)
    )
    return (drained.batch, drained.emptied, drained.setbacks), acted


def _unmarked(plan: Plan) -> set[str]:
    return {each.subject.title for each in plan.decisions if isinstance(each.reason.facts, NoLongerCandidate)}


def outcome_of(play: Play) -> Outcome:
    witness = _Witness(play.seed)
    simulated = run(play, RunOptions(publishers=(witness,)))
    assert witness.last is not None, simulated.troubles
    followed = dict(witness.done), tuple(witness.moved), tuple(witness.changed), witness.tried, witness.timers_lost
    return Outcome(play, simulated, *followed, witness.last)


def drained(folder: Path, seed: int) -> Outcome:
    """What comes of the story of a seed."""
    return outcome_of(drawn(folder, seed))
