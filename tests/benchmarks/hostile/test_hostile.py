"""A plan beside whatever one tenant can make: it takes little longer, and needs little more memory, than without."""

import pytest

from tests.benchmarks.alone import alone
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result

AIM_UNITS_MORE = 100
AIM_MIB_MORE = 1_024
AIM_TIMES_HARMLESS = 6.0  # as long as with as many pods that say nothing of their own
MANY = 5_000
FEW = {"at-the-bound": 50, "16000-tolerations": 8, "200-terms": 300, "daemon-sets": 1_000, "volume-claims": 1_000}
WAITING = (
    *("priorities", "tolerations", "selectors", "node-terms", "anti", "anti-keys", "near", "everybody", "alike"),
    *("spread", "ports", "resources", "volumes", "gangs", "at-the-bound", "16000-tolerations", "200-terms"),
    *("daemon-sets", "volume-claims"),
)
RUNNING = ("anti", "everybody", "alike", "spread", "ports", "resources", "expression-budgets", "team-budgets")
MEASURING = "tests.benchmarks.hostile.measuring"


@pytest.mark.bench
def test_a_plan_takes_little_longer_beside_the_objects_of_a_hostile_tenant(recorder: Recorder, unit: Unit) -> None:
    aim_seconds_more = unit.of_seconds(AIM_UNITS_MORE)
    figures = unit.figures | {
        "aim_units_more": AIM_UNITS_MORE,
        "aim_seconds_more": aim_seconds_more,
        "aim_mib_more": AIM_MIB_MORE,
    }
    missed = []
    for where, bombs in (("waiting", WAITING), ("running", RUNNING)):
        without = alone(MEASURING, where, "none", 0)
        harmless = alone(MEASURING, where, "plain", MANY)
        figures[f"{where}_without_seconds"] = without["first_seconds"]
        figures[f"{where}_harmless_seconds"] = harmless["first_seconds"]
        for bomb in bombs:
            found = alone(MEASURING, where, bomb, FEW.get(bomb, MANY))
            more = found["first_seconds"] - without["first_seconds"]
            figures |= {f"{where}_{bomb}_{key}": found[key] for key in ("first_seconds", "again_seconds", "mib_more")}
            is_slow = more > aim_seconds_more and more > AIM_TIMES_HARMLESS * harmless["first_seconds"]
            if is_slow or found["mib_more"] > AIM_MIB_MORE:
                missed.append(f"{where} {bomb}")
    what = (
        "plan() of 500 nodes and 10,000 pods (waiting), and of 300 nodes and 12,000 pods that are drained (running), "
        f"beside {MANY:,} pods of one tenant; seconds of the processor; harmless: beside as many plain pods"
    )
    recorder.write(Result("bench-hostile", what, len(WAITING) + len(RUNNING), len(missed), figures=figures))
    assert not missed
