"""Edits of NodePools at random: what is foretold of drift against what Karpenter then does."""

import collections

import pytest

from tests.lab.lab import Lab
from tests.results.record import Recorder, Result
from tests.stages.drift.node_pool_edits import EDITS
from tests.stages.drift.stage import DriftStage

WANTED, SEED = 200, 2


@pytest.mark.oracle
def test_the_claims_that_an_edit_drifts_are_those_foretold(cluster: Lab, recorder: Recorder) -> None:
    with DriftStage(cluster, SEED) as stage:
        outcomes = list(stage.rounds(WANTED))
    wrong = [each for each in outcomes if not each.agrees]
    figures: dict[str, float | int | str] = {
        "claims that an edit drifted": sum(len(each.foretold.fresh) for each in outcomes),
        "claims that were drifted and stayed so": sum(len(each.foretold.already) for each in outcomes),
        "claims that an edit undrifted": sum(len(each.foretold.undrifted) for each in outcomes),
        "edits that drifted some claims of a NodePool and not others": sum(each.is_partial for each in outcomes),
    }
    what = "edits of a NodePool after which Karpenter marked other claims, or wrote another hash, than was foretold"
    recorder.write(Result("oracle-drift", what, len(outcomes), len(wrong), SEED, figures))
    assert wrong == []
    done = collections.Counter(name for each in outcomes for name in each.done)
    assert sorted(EDITS.keys() - done.keys()) == [], "some kinds of edit were never drawn"
