"""Makes a fleet smaller for as long as the scheduler and we still differ on one pod, so that a person can see why."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.stages.scheduling.comparing import Disagreement, Tally, compare
from tests.stages.scheduling.draw.fleet import DrawnFleet
from tests.stages.scheduling.stage import SchedulingStage

TRIES = 60
_KEPT_OF_A_POD = {"schedulerName", "containers", "terminationGracePeriodSeconds"}

T = TypeVar("T")
Differs = Callable[[DrawnFleet], bool]


def shrunk(stage: SchedulingStage, drawn: DrawnFleet, found: Disagreement) -> Disagreement:
    """The same disagreement in the smallest fleet that was found in some tries, each of which loads a fleet."""
    trials = _Trials(stage, found)
    alone = replace(drawn, pods=[found.judged.manifest])
    if trials.differ(alone):
        _smaller(alone, trials.differ)
    return trials.smallest


class _Trials:
    """Owner of the count of tries, and of the last disagreement that came of one."""

    def __init__(self, stage: SchedulingStage, found: Disagreement) -> None:
        self._stage = stage
        self._left = TRIES
        self.smallest = found

    def differ(self, drawn: DrawnFleet) -> bool:
        if not self._left:
            return False
        self._left -= 1
        tally = Tally()
        compare(self._stage, drawn, tally)
        if tally.disagreements:
            self.smallest = tally.disagreements[0]
        return bool(tally.disagreements)


def _smaller(drawn: DrawnFleet, differs: Differs) -> None:
    drawn = replace(drawn, residents=_fewer(drawn.residents, lambda some: differs(replace(drawn, residents=some))))
    drawn = _without_nodes(drawn, differs)
    limits = _fewer(drawn.volume_limits, lambda some: differs(replace(drawn, volume_limits=some)))
    drawn = replace(drawn, volume_limits=limits)
    claims = _fewer(drawn.volume_claims, lambda some: differs(replace(drawn, volume_claims=some)))
    drawn = replace(drawn, volume_claims=claims)
    named = {each["spec"].get("volumeName") for each in drawn.volume_claims}
    bound = [each for each in drawn.volumes if each["metadata"]["name"] in named]
    free = [each for each in drawn.volumes if each["metadata"]["name"] not in named]
    free = [*_fewer(free, lambda some: differs(replace(drawn, volumes=[*bound, *some])))]
    drawn = replace(drawn, volumes=[*bound, *free])
    # Claims of devices stay: the scheduler does not try a pod that names one that is not there.
    [pod] = drawn.pods
    for field in sorted(pod["spec"].keys() - _KEPT_OF_A_POD):
        less = pod | {"spec": {key: told for key, told in pod["spec"].items() if key != field}}
        pod = less if differs(replace(drawn, pods=[less])) else pod


def _without_nodes(drawn: DrawnFleet, differs: Differs) -> DrawnFleet:
    """Whoever was on a node goes with it: a pod bound to no node would be taken away by a controller."""

    def with_nodes(names: Sequence[str]) -> DrawnFleet:
        nodes = [each for each in drawn.nodes if each["metadata"]["name"] in names]
        residents = [each for each in drawn.residents if each.manifest["spec"].get("nodeName", names[0]) in names]
        limits = [each for each in drawn.volume_limits if each["spec"].get("nodeName", names[0]) in names]
        return replace(drawn, nodes=nodes, residents=residents, volume_limits=limits)

    names = [each["metadata"]["name"] for each in drawn.nodes]
    return with_nodes(_fewer(names, lambda some: bool(some) and differs(with_nodes(some))))


def _fewer(items: Sequence[T], will_do: Callable[[Sequence[T]], bool]) -> Sequence[T]:
    """Leaves out halves, then quarters, and so on to single ones."""
    size = len(items) // 2 or len(items)
    if items and will_do([]):
        return []
    while size:
        start = 0
        while start < len(items):
            some = [*items[:start], *items[start + size :]]
            if some and will_do(some):
                items = some
            else:
                start += size
        size //= 2
    return items
