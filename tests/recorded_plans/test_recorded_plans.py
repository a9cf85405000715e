"""Whatever is reworded or moved, the same is decided: of each plan, the lines that were recorded.

With `--record` the lines are written again: the review is reading the difference, and the commit says what changed.
"""

from pathlib import Path

import pytest

from tests.recorded_plans.plan_lines import lines_of
from tests.recorded_plans.plans import SUITES

FOLDER = Path(__file__).parent / "recorded"


@pytest.mark.parametrize("suite", SUITES)
def test_the_same_is_decided_as_was_recorded(suite: str, pytestconfig: pytest.Config) -> None:
    told = [line for name, plan in SUITES[suite]() for line in (f"# {name}", *lines_of(plan), "")]
    path = FOLDER / f"{suite}.txt"
    if pytestconfig.getoption("--record"):
        path.write_text("\n".join(told) + "\n")
    recorded = path.read_text().splitlines()
    # Not compared as a whole: pytest would look for the smallest difference of two texts of 10,000 lines.
    assert [pair for pair in zip(told, recorded, strict=False) if pair[0] != pair[1]][:1] == []
    assert len(told) == len(recorded)
