"""What failed in simulations, as pipelines show it: expectations not met, rules of safety broken."""

from collections.abc import Iterator, Sequence

from reconciler.model.human_time import clock
from reconciler.report.document import Finding
from reconciler.report.simulation.simulated import Simulated

UNMET, UNSAFE = "ExpectationFailed", "Unsafe"
TITLES = ((UNMET, "What the scenario expects did not come about"), (UNSAFE, "A rule of safety was broken"))


def findings_of(runs: Sequence[Simulated]) -> tuple[Finding, ...]:
    """In the order in which they are told; they are of the scenario, not of a line of it."""
    return tuple(each for run in runs for each in _findings(run))


def who(run: Simulated) -> str:
    """Which of several simulations it was."""
    return f"{run.label}: " if run.label else ""


def _findings(run: Simulated) -> Iterator[Finding]:
    for each in run.broken:
        text = f"{who(run)}{each.rule}: {each.sentence} ({clock(each.at, run.start)}, {each.event})"
        yield Finding("", 0, 0, UNSAFE, text, subject=f"{who(run)}{each.rule}")
    for judged in run.expectations:
        if not judged.is_met:
            text = f"{who(run)}{judged.text}, found {judged.figure}"
            yield Finding("", 0, 0, UNMET, text, subject=f"{who(run)}{judged.text}")
