"""Where the real scheduler let pods of small fleets: what was once got wrong, or is easily got wrong, stays right."""

from typing import Any

import msgspec
import pytest
import yaml

from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.model.cluster.observed import Observed
from tests import folders
from tests.stages.scheduling.ours import say

CASES = yaml.safe_load((folders.CASES / "fleet" / "agreed.yaml").read_text())


@pytest.mark.parametrize("name", CASES)
def test_the_pod_fits_where_the_scheduler_let_it(name: str) -> None:
    case: dict[str, Any] = CASES[name]
    observed = msgspec.convert(case["observed"], Observed)
    pod = next(each for each in observed.pods if each.name == case["pod"])
    ours = say(Snapshot(observed), pod)
    assert ours.contradictions == ()
    assert sorted(ours.passed) == ([] if ours.unmodelled else case["passed"]), ours.why_not
    assert ours.unmodelled == case.get("unmodelled", "")
