"""Small scenarios: the machines that the imagined Karpenter has in the end, against those of the real one."""

import pytest

from tests.lab.lab import Lab
from tests.results.record import Recorder, Result
from tests.stages.buying.purchases import STILL_SECONDS, imagined, real
from tests.stages.buying.scenarios import SCENARIOS


@pytest.mark.oracle
def test_the_imagined_karpenter_ends_with_the_machines_of_the_real_one(cluster: Lab, recorder: Recorder) -> None:
    cluster.start("scheduler", "kwok", "karpenter")
    wrong = {}
    for each in SCENARIOS:
        expected = imagined(each)
        found = real(each, cluster, expected, STILL_SECONDS)
        if found != expected:
            wrong[each.name] = f"imagined {[dict(one) for one in expected]}, real {[dict(one) for one in found]}"
        cluster.wipe()
    what = "small scenarios after which the lab's Karpenter had other machines than the imagined one"
    recorder.write(Result("oracle-karpenter", what, len(SCENARIOS), len(wrong)))
    assert wrong == {}
