"""Clusters with policies of all kinds, drawn by the ten thousand: a plan comes of each, and breaks no invariant."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import monotonic

import pytest

from reconciler.fleet.fleet import Fleet
from reconciler.plan.check import check
from reconciler.plan.planner import plan
from tests.results.record import Recorder, Result
from tests.unit.plan.drawn_fleets import Drawn

PLANS, AT_ONCE, PROCESSES = 40_000, 500, 2
FIRST = 1_000_000  # beyond those of tests/unit


@pytest.mark.soak
def test_whatever_the_cluster_and_the_policies_a_plan_comes_of_them(recorder: Recorder) -> None:
    began, faults = monotonic(), dict[int, str]()
    with ProcessPoolExecutor(PROCESSES, get_context("spawn")) as processes:
        for found in processes.map(faults_from, range(FIRST, FIRST + PLANS, AT_ONCE)):
            faults |= found
    what = "clusters drawn at random of which no plan came, or one that a planner failed for or that broke an invariant"
    minutes = round((monotonic() - began) / 60)
    recorder.write(Result("soak-drawn-plans", what, PLANS, len(faults), 0, {"minutes": minutes}))
    assert faults == {}


def faults_from(first: int) -> dict[int, str]:
    """By seed, of so many seeds from there."""
    found = {}
    for seed in range(first, first + AT_ONCE):
        try:
            inputs = Drawn(seed).inputs()
            fleet = Fleet(inputs.observed)
            made = plan(inputs, fleet)
            check(inputs, fleet, made)
            if made.troubles:
                found[seed] = str(made.troubles[0])
        except Exception as fault:  # noqa: BLE001 - one that breaks off must not end the others
            found[seed] = f"it broke off: {fault!r}"
    return found
