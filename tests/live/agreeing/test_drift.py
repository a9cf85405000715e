"""What is foretold of drift is what Karpenter then does: the hash it writes, and the claims it marks."""

from pathlib import Path

import pytest
import yaml

from reconciler.model import names
from tests.lab import capacity
from tests.lab.lab import Lab
from tests.slow import long
from tests.stages.drift.stage import DriftStage

FEW_EDITS, EDITS, SEED = 10, 20, 1
HASHES = yaml.safe_load((Path(__file__).parents[2] / "cases" / "karpenter" / "template_hash.yaml").read_text())


def test_karpenter_writes_the_hashes_of_the_table(cluster: Lab) -> None:
    cluster.start("karpenter")
    admin = cluster.admin
    for number, case in enumerate(HASHES.values()):
        pool = capacity.NodePool(f"case-{number}", []).manifest()
        written = case["template"]
        reference = pool["spec"]["template"]["spec"]["nodeClassRef"]
        spec = {"requirements": [], "nodeClassRef": reference, **written["spec"]}
        admin.create({**pool, "spec": {**pool["spec"], "template": {**written, "spec": spec}}})
    found = {}
    for number, name in enumerate(HASHES):
        pool = admin.wait_for("nodepools", f"case-{number}", lambda each: names.POOL_HASH in str(each))
        found[name] = pool["metadata"]["annotations"][names.POOL_HASH]
    assert found == {name: case["hash"] for name, case in HASHES.items()}


@pytest.mark.parametrize("edits", [FEW_EDITS, long(EDITS)])
def test_the_claims_that_an_edit_drifts_are_those_foretold(cluster: Lab, edits: int) -> None:
    with DriftStage(cluster, SEED) as stage:
        outcomes = list(stage.rounds(edits))
    assert [each for each in outcomes if not each.agrees] == []
    # What was drawn must be able to show something.
    assert len(outcomes) == edits
    assert sum(bool(each.foretold.fresh) for each in outcomes) >= edits // 4
    assert sum(bool(each.foretold.undrifted) for each in outcomes) >= edits // 7
    assert sum(each.is_partial for each in outcomes) >= edits // 7
    assert sum(not each.marked for each in outcomes) >= edits // 7
