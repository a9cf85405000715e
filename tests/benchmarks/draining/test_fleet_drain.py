"""Which nodes of a fleet can go together: what it costs, and how that grows when the fleet is twice as large.

A peer needs 11.4 s for the first of these (2,000 nodes, 80,000 pods alike, 1,200 nodes to go); see drained_fleets.py.
Bounds are parts of that, in units of calibration.py, of which ten were a second when the peer was measured.
"""

import math
from dataclasses import dataclass
from typing import Any

import pytest

from tests.benchmarks.alone import alone
from tests.benchmarks.calibration import Unit
from tests.results.record import Recorder, Result

# n log n makes 1.09 to 1.13 of a fleet twice as large; the rest is for caches, which it outgrows. Growth is told by the
# time of the processor, since the two fleets are measured minutes apart and others may be at work in between.
MOST_GROWTH = 1.35
GROWING = frozenset(
    {"can_go", "seconds", "cpu_seconds", "after_a_change_seconds", "after_a_change_cpu_seconds", "resident_mib"}
)


@dataclass(frozen=True)
class Case:
    """What is to be shown of a fleet."""

    kind: str
    nodes: int
    what: str
    must_units: float
    aims: tuple[tuple[str, float], ...] = ()  # by figure, in units too


ALIKE = Case(
    "equal",
    2_000,
    "2,000 nodes with 40 pods alike: which can go together, from what was observed, and again after three pods changed",
    11.4,
    (("seconds", 2.5), ("after_a_change_seconds", 0.5)),
)
DISTINCT = Case("distinct", 2_000, "the same with 80,000 pods of which no two ask for the same", 28.5)
DIVERSE = Case("diverse", 5_000, "5,000 nodes, 150,000 pods of 500 classes: each node is tried", 100)
SPREAD = Case(
    "spread",
    2_000,
    "2,000 nodes in 3 zones, 80,000 pods of 2,000 applications each spread over them, a fourth of them also by host",
    28.5,
)


@pytest.mark.bench
def test_nodes_with_pods_alike(recorder: Recorder, unit: Unit) -> None:
    found = measured(recorder, unit, ALIKE)
    assert found["can_go"] == found["no_more_can_go_than"] == 1_200


@pytest.mark.bench
def test_nodes_with_pods_of_which_no_two_are_alike(recorder: Recorder, unit: Unit) -> None:
    found = measured(recorder, unit, DISTINCT)
    assert found["classes"] == found["pods"]
    # With 1,200 gone, 8,000,000 m would have 144 m to spare; pods of 80 to 120 m don't fill nodes that well one by one.
    assert found["no_more_can_go_than"] == 1_200
    assert found["can_go"] >= 1_195


@pytest.mark.bench
def test_a_large_fleet_of_many_classes(recorder: Recorder, unit: Unit) -> None:
    found = measured(recorder, unit, DIVERSE)
    assert (found["pods"], found["classes"]) == (150_000, 500)
    assert found["can_go"] > 1_000
    assert found["resident_mib"] < 1_536


@pytest.mark.bench
def test_applications_that_are_spread_over_zones(recorder: Recorder, unit: Unit) -> None:
    found = measured(recorder, unit, SPREAD)
    assert (found["pods"], found["classes"]) == (80_000, 2_000)
    # By sums alone: nodes that took in what must be spread are not emptied themselves.
    assert 900 < found["can_go"] <= found["no_more_can_go_than"]


def measured(recorder: Recorder, unit: Unit, case: Case) -> dict[str, Any]:
    """The figures of the fleet, once those of one twice as large are known too."""
    found, twice = (alone("tests.benchmarks.draining.measuring", case.kind, times * case.nodes) for times in (1, 2))
    figures = {
        **found,
        **unit.figures,
        "must_units": case.must_units,
        "must_seconds": unit.of_seconds(case.must_units),
        **{f"aim_{name}": unit.of_seconds(aim) for name, aim in case.aims},
        **{f"twice_{name}": value for name, value in twice.items() if name in GROWING},
        "growth_exponent": exponent("cpu_seconds", found, twice),
        "after_a_change_growth_exponent": exponent("after_a_change_cpu_seconds", found, twice),
        "memory_growth_exponent": exponent("resident_mib", found, twice),
    }
    slow = found["seconds"] >= unit.of_seconds(case.must_units)
    grows = max(value for name, value in figures.items() if name.endswith("growth_exponent")) > MOST_GROWTH
    recorder.write(Result(f"bench-fleet-drain-{case.kind}", case.what, case.nodes, slow + grows, figures=figures))
    assert not slow
    assert not grows
    return found


def exponent(name: str, found: dict[str, Any], twice: dict[str, Any]) -> float:
    """Of the power of its size that a figure of a fleet grows with."""
    return round(math.log2(twice[name] / found[name]), 2)
