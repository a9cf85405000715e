"""What was decided, decided again: from the history of `run`, or from a dump."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from reconciler import __version__
from reconciler.controller.cluster import ClusterView
from reconciler.loop import decide
from reconciler.model.instant import Instant, timestamp
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.check import BrokenInvariant
from reconciler.plan.files import dump
from reconciler.plan.files.planning_result import PlanningResult
from reconciler.report.replayed import ReplayResult
from reconciler.sources.history.read import kept, kept_at


class TimeRange(msgspec.Struct, frozen=True):
    """A time of the history; all of it, where nothing is said."""

    since: Instant = Instant(0)
    until: Instant | None = None


def past(folder: Path, at: Instant) -> tuple[ClusterView, PlanningResult]:
    """How things stood at the last plan that acted by then. Raises NotKept."""
    recorded_inputs = kept_at(folder, at)
    inputs = recorded_inputs.inputs
    notes = [f"as things stood at {timestamp(inputs.now)}, when a plan acted for the last time before {timestamp(at)}"]
    if recorded_inputs.version != __version__:
        notes.append(f"reconciler {recorded_inputs.version} decided then, this is {__version__}")
    return ClusterView(inputs.observed, "as it was kept", inputs.now, notes=tuple(notes)), decide(inputs)


def replay_history(folder: Path, span: TimeRange) -> Iterator[ReplayResult]:
    """Each plan that is kept, the oldest first. Raises NotKept."""
    for each in kept(folder, span.since, span.until):
        yield _replayed(each.inputs, each.digest, each.version)


def replay_dump(content: bytes, expected: str = "") -> ReplayResult:
    """The plan of a dump. Raises BadDump."""
    return _replayed(dump.read(content), expected, "")


def _replayed(inputs: Inputs, expected: str, version: str) -> ReplayResult:
    try:
        plan = decide(inputs).plan
    except BrokenInvariant:
        return ReplayResult(inputs.now, "", expected, version, 0)
    return ReplayResult(inputs.now, plan.digest, expected, version, len(plan.decisions))
