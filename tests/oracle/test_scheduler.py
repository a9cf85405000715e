"""Fleets and pods at random: where the real kube-scheduler lets each pod, and where we say that it fits."""

import time
from pathlib import Path

import pytest
import yaml

from reconciler.fleet.filters import PREDICATES
from tests.lab.lab import Lab
from tests.results.record import Recorder, Result
from tests.stages.scheduling.comparing import Tally, compare
from tests.stages.scheduling.draw.fleet import draw_fleet
from tests.stages.scheduling.fixtures import is_lookout
from tests.stages.scheduling.replay import as_fleet
from tests.stages.scheduling.shrinking import shrunk
from tests.stages.scheduling.stage import SchedulingStage

PODS, PODS_A_FLEET, FIRST_SEED = 5_000, 150, 1_000
DECIDING = 20
AGREED = Path(__file__).parents[1] / "cases" / "fleet" / "agreed.yaml"
SHRUNK = 3
# A pod that names its node is bound already and never comes to a scheduler.
NEVER_DECIDING = {"node name"}


@pytest.mark.oracle
def test_the_scheduler_still_says_what_the_cases_say(cluster: Lab) -> None:
    cases = yaml.safe_load(AGREED.read_text())
    wrong = {}
    with SchedulingStage(cluster) as stage:
        for seed, (name, case) in enumerate(cases.items()):
            stage.load(as_fleet(case, seed))
            [judged] = stage.judge(as_fleet(case, seed).pods)
            passed = {each for each in judged.passed if not is_lookout(each)}
            if passed != {each for each in case["passed"] if not is_lookout(each)}:
                wrong[name] = (sorted(passed), judged.said)
            stage.clear()
    assert stage.refused == []
    assert wrong == {}


@pytest.mark.oracle
def test_a_pod_fits_where_the_scheduler_lets_it(cluster: Lab, recorder: Recorder, tmp_path: Path) -> None:
    tally = Tally()
    with SchedulingStage(cluster) as stage:
        began = time.monotonic()
        seed = FIRST_SEED
        while tally.pods < PODS:
            compare(stage, draw_fleet(seed, PODS_A_FLEET), tally)
            seed += 1
        pods_a_second = tally.pods / (time.monotonic() - began)
        _record(recorder, tally, pods_a_second)
        drawn = {each.seed: draw_fleet(each.seed, PODS_A_FLEET) for each in tally.disagreements}
        for each in tally.disagreements:
            print(each)
        smallest = [shrunk(stage, drawn[each.seed], each) for each in tally.disagreements[:SHRUNK]]
    _save(tmp_path / "disagreements.yaml", [each.case() for each in smallest])
    assert tally.disagreements == []
    seldom = {each.name: tally.deciding[each.name] for each in PREDICATES if tally.deciding[each.name] < DECIDING}
    assert seldom.keys() <= NEVER_DECIDING, f"these decided too seldom to be judged: {seldom}"


def _record(recorder: Recorder, tally: Tally, pods_a_second: float) -> None:
    deciding = {f"decided by {name}": tally.deciding[name] for name in sorted(each.name for each in PREDICATES)}
    figures: dict[str, float | int | str] = {
        "fleets": tally.fleets,
        "pods a second": round(pods_a_second, 1),
        "asked again, since the scheduler had judged too early": tally.asked_again,
        "pods that are not modelled, and fit nowhere": sum(tally.unmodelled.values()),
        "drawn pods that the API server would not have": tally.refused_by_the_api_server,
        **deciding,
    }
    what = "pods that the scheduler lets onto other nodes than those on which we say that they fit"
    result = Result("oracle-scheduler", what, tally.pods, len(tally.disagreements), FIRST_SEED, figures)
    recorder.write(result)


def _save(path: Path, cases: list[object]) -> None:
    """As tests/cases/fleet/agreed.yaml has them, where each that was once found stays for ever."""
    if cases:
        path.write_text(yaml.safe_dump({f"once disagreed on, {number}": case for number, case in enumerate(cases)}))
        print(f"for tests/cases/fleet/agreed.yaml: {path}")
