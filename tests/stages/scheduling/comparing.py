"""Fleet by fleet, the scheduler's word on each pod against ours."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.observed import Observed
from tests.stages.scheduling.cases import case
from tests.stages.scheduling.draw.chance import Manifest
from tests.stages.scheduling.draw.fleet import DrawnFleet
from tests.stages.scheduling.ours import Ours, passed, say
from tests.stages.scheduling.stage import Judged, SchedulingStage


@dataclass(frozen=True)
class Disagreement:
    """A pod of which the scheduler says one thing and we another."""

    seed: int
    judged: Judged
    ours: Ours
    observed: Observed = field(repr=False)

    def __str__(self) -> str:
        lines = [f"fleet {self.seed}: {msgspec.json.encode(self.judged.manifest).decode()}"]
        lines.append(f"  the scheduler wrote: {self.judged.said}")
        nodes = {each.name: each for each in self.observed.nodes}
        for name in sorted(self.judged.passed ^ self.ours.passed):
            if name in self.ours.passed:
                lines.append(f"  {name}: passes for us, not for the scheduler")
            else:
                lines.append(f"  {name}: passes for the scheduler, not for us: {'; '.join(self.ours.why_not[name])}")
            lines.append(f"    {msgspec.json.encode(nodes[name]).decode()}")
        return "\n".join([*lines, *(f"  we contradict ourselves: {each}" for each in self.ours.contradictions)])

    def case(self) -> Mapping[str, Any]:
        """As tests/cases/fleet/agreed.yaml has it."""
        return case(self.judged, self.observed)


@dataclass
class Tally:
    """What came of the fleets so far."""

    fleets: int = 0
    pods: int = 0
    refused_by_the_api_server: int = 0
    asked_again: int = 0
    unmodelled: Counter[str] = field(default_factory=Counter)
    deciding: Counter[str] = field(default_factory=Counter)
    disagreements: list[Disagreement] = field(default_factory=list)
    # One what-if through all fleets, from each to the next: it must say what one says that is made anew.
    advanced: Snapshot = field(default_factory=lambda: Snapshot(Observed()))


def compare(stage: SchedulingStage, drawn: DrawnFleet, tally: Tally) -> None:
    """Loads the fleet, has its pods judged, and clears it away."""
    stage.load(drawn)
    refused_before = len(stage.refused)
    differing = []
    for judged, ours, observed in _round(stage, drawn.pods, tally):
        tally.pods += 1
        if ours.unmodelled:
            tally.unmodelled[ours.unmodelled] += 1
        tally.deciding.update(ours.deciding)
        if not _agree(judged, ours):
            differing.append(Disagreement(drawn.seed, judged, ours, observed))
    if differing:
        tally.asked_again += len(differing)
        tally.disagreements += _confirmed(stage, differing, tally)
    tally.fleets += 1
    tally.refused_by_the_api_server += len(stage.refused) - refused_before
    stage.clear()


def _round(stage: SchedulingStage, pods: Sequence[Manifest], tally: Tally) -> Iterator[tuple[Judged, Ours, Observed]]:
    judged = stage.judge(pods)
    observed = stage.observed()
    fleet = Snapshot(observed)
    tally.advanced.advance(observed)
    seen = {pod.metadata.uid: pod for pod in observed.pods}
    for each in judged:
        pod = seen[each.uid]
        ours, advanced = say(fleet, pod), passed(tally.advanced, pod)
        if advanced != ours.passed:
            fault = f"advanced to, the fleet lets it onto {sorted(advanced)}; made anew, onto {sorted(ours.passed)}"
            ours = replace(ours, contradictions=(*ours.contradictions, fault))
        yield each, ours, observed


def _confirmed(stage: SchedulingStage, differing: list[Disagreement], tally: Tally) -> list[Disagreement]:
    """What they still differ in when all is quiet: a scheduler may have judged before it had seen the last change."""
    stage.dismiss()
    seed = differing[0].seed
    again = _round(stage, [each.judged.manifest for each in differing], tally)
    return [Disagreement(seed, judged, ours, observed) for judged, ours, observed in again if not _agree(judged, ours)]


def _agree(judged: Judged, ours: Ours) -> bool:
    """What is not modelled must fit nowhere, wherever the scheduler would have it."""
    if ours.contradictions:
        return False
    if ours.unmodelled:
        return not ours.passed
    return judged.passed == ours.passed
