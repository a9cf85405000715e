"""Owner of the time a test run takes: what each file may cost, what it did cost, and the ten slowest tests.

Workers share what is allowed.
"""

import time
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

BUDGETS = Path(__file__).parent / "budgets.toml"
SLOWEST = 10
QUICK_SECONDS = 0.8


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--whole", action="store_true", help="fail when the run takes twice what tests/budgets.toml allows"
    )
    parser.addoption(
        "--quick", action="store_true", help=f"leave out files that may take more than {QUICK_SECONDS:g} s"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Stopwatch(config), "stopwatch")
    if config.getoption("--quick"):
        config.pluginmanager.register(QuickFiles(config.rootpath), "quick_files")


class QuickFiles:
    """Leaves the slow files out: these are not even imported."""

    def __init__(self, root: Path) -> None:
        self._slow = {root / file for file, seconds in budgets().items() if seconds > QUICK_SECONDS}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """None leaves the decision to other plugins."""
        return True if collection_path in self._slow else None


class Stopwatch:
    """Adds up seconds by test and by file."""

    def __init__(self, config: pytest.Config) -> None:
        # A worker knows its own part only.
        self._enforced = bool(config.getoption("--whole")) and not hasattr(config, "workerinput")
        self._workers = int(config.getoption("numprocesses", default=None) or 1)
        self._tests: dict[str, float] = defaultdict(float)
        self._started = time.monotonic()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._tests[report.nodeid] += report.duration

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        allowed = self._allowed()
        self.spent = time.monotonic() - self._started
        if self._enforced and session.exitstatus == 0 and self.spent > 2 * allowed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._enforced:
            return
        write = terminalreporter.write_line
        terminalreporter.section(f"{SLOWEST} slowest tests")
        for name, seconds in sorted(self._tests.items(), key=lambda pair: -pair[1])[:SLOWEST]:
            write(f"{seconds:7.2f} s  {name}")
        for file, seconds in sorted(self._files().items()):
            if seconds > budgets().get(file, 0) + 1:
                write(f"{file} took {seconds:.1f} s, {budgets().get(file, 0)} s are allowed in tests/budgets.toml")
        verdict = (
            ""
            if self.spent <= 2 * self._allowed()
            else ": FAILED, more than twice that; make tests faster, or move one to make test-long"
        )
        write(f"{self.spent:.0f} s in all, {self._allowed():.0f} s are allowed{verdict}")

    def _files(self) -> dict[str, float]:
        files: dict[str, float] = defaultdict(float)
        for name, seconds in self._tests.items():
            files[name.split("::")[0]] += seconds
        return files

    def _allowed(self) -> float:
        return sum(budgets().get(file, 0) for file in self._files()) / self._workers


def budgets() -> dict[str, float]:
    """Seconds by file."""
    seconds: dict[str, float] = tomllib.loads(BUDGETS.read_text())["seconds"]
    return seconds
