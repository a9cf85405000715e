"""The run's own budget: it prints the slowest, and fails at twice what is allowed."""

from pathlib import Path

import pytest

from tests import budget

pytest_plugins = ["pytester"]


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> pytest.Pytester:
    """A run of one test that sleeps for 0.2 s, and its budgets."""
    monkeypatch.setattr(budget, "BUDGETS", tmp_path / "budgets.toml")
    pytester.makepyfile(test_slow="import time\ndef test_it(): time.sleep(0.2)")
    return pytester


def allow(seconds: float) -> None:
    budget.BUDGETS.write_text(f'[seconds]\n"test_slow.py" = {seconds}\n')


def test_a_run_within_twice_its_budget_passes_and_names_the_slowest(run: pytest.Pytester) -> None:
    allow(30)
    result = run.runpytest_inprocess("-p", "tests.budget", "--whole")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["*slowest tests*", "*0.2? s  test_slow.py::test_it"])


def test_a_run_over_twice_its_budget_fails_although_its_tests_pass(run: pytest.Pytester) -> None:
    allow(0.05)
    result = run.runpytest_inprocess("-p", "tests.budget", "--whole")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*FAILED, more than twice that; make tests faster, or move one to make test-long*"])
    result.assert_outcomes(passed=1)


def test_part_of_a_run_has_no_budget(run: pytest.Pytester) -> None:
    allow(0.05)
    assert run.runpytest_inprocess("-p", "tests.budget").ret == pytest.ExitCode.OK


@pytest.mark.parametrize(("seconds", "tests"), [(0.8, 1), (1.5, 0)])
def test_a_quick_run_leaves_out_files_that_may_take_longer(run: pytest.Pytester, seconds: float, tests: int) -> None:
    allow(seconds)
    run.runpytest_inprocess("-p", "tests.budget", "--quick").assert_outcomes(passed=tests)


def test_a_quick_run_of_a_slow_file_by_name_runs_the_file(run: pytest.Pytester) -> None:
    allow(1.5)
    run.runpytest_inprocess("-p", "tests.budget", "--quick", "test_slow.py").assert_outcomes(passed=1)
