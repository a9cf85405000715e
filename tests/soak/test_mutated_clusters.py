"""Clusters of which one field of one object is mutated, by the ten thousand: nothing raises, and plans differ by holds
alone."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random
from time import monotonic

import pytest

from tests.results.record import Recorder, Result
from tests.unit.kube.mutated_clusters import Seeded, differences, everything

BASES, MUTATIONS, AT_ONCE, PROCESSES = 1_000, 50, 20, 2
FIRST = 1_000_000  # beyond those of tests/unit


@pytest.mark.soak
def test_whatever_stands_in_one_field_a_plan_comes_of_the_cluster(recorder: Recorder) -> None:
    began, faults = monotonic(), dict[str, str]()
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as processes:
        for found in processes.map(faults_from, range(FIRST, FIRST + BASES, AT_ONCE)):
            faults |= found
    what = "mutations of one field of one object that raised, or by which a plan differed otherwise than by holds"
    minutes = round((monotonic() - began) / 60)
    recorder.write(Result("soak-mutated-clusters", what, BASES * MUTATIONS, len(faults), 0, {"minutes": minutes}))
    assert faults == {}


def faults_from(first: int) -> dict[str, str]:
    """By seed and mutation, of so many seeds from there."""
    found = {}
    for seed in range(first, first + AT_ONCE):
        base, chance = Seeded(seed), Random(seed)
        for _ in range(MUTATIONS):
            mutated = base.mutated(chance)
            place = f"{seed} {mutated.told}"
            try:
                made = everything(mutated.inputs, mutated.kind, mutated.name)
            except Exception as fault:  # noqa: BLE001 - one that breaks off must not end the others
                found[place] = f"it broke off: {fault!r}"
                continue
            told = [str(made.troubles[0])] if made.troubles != base.plan.troubles else []
            told += differences(base, mutated, made)
            if told:
                found[place] = "; ".join(told)
    return found
