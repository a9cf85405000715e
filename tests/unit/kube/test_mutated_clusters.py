"""Whatever stands in one field of one object, a plan comes of the cluster, and differs by holds alone."""

from random import Random

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.plan.planner import plan
from tests.unit.kube.mutated_clusters import Seeded, differences, everything

SEEDS, MUTATIONS = range(10), 20


@pytest.mark.parametrize("seed", SEEDS)
def test_one_object_stops_neither_the_plan_nor_anything_that_is_told_of_it(seed: int) -> None:
    base, chance = Seeded(seed), Random(seed)
    known = plan(base.inputs, Fleet(base.inputs.observed)).troubles
    for _ in range(MUTATIONS):
        mutated = base.mutated(chance)
        made = everything(mutated.inputs, mutated.kind, mutated.name)
        assert made.troubles == known, mutated.told
        assert differences(base, mutated, made) == [], mutated.told
