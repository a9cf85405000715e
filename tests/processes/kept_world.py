"""The folder of transcripts that ask about the past: a dump, policies, and the history that a controller kept."""

import os
from pathlib import Path

import msgspec

from reconciler.controller.cluster import ClusterPlace
from reconciler.controller.dry_run import inputs_of
from reconciler.controller.policies import Origins, Question
from reconciler.loop.cycle import decide
from reconciler.model.instant import Instant, instant
from reconciler.plan.files import dump
from reconciler.sources.history import History
from tests.processes.script_worlds import pull_request

TIMES = ("2026-11-02T08:00:00Z", "2026-11-02T09:00:00Z", "2026-11-02T10:00:00Z")


def kept(folder: Path) -> None:
    """Three plans that acted, an hour apart; at the last of them two pods had ended."""
    pull_request(folder)
    here = Path.cwd()
    os.chdir(folder)  # what is said of the policies must not depend on where this folder is
    try:
        place = ClusterPlace(Path("cluster.json"), complete=True)
        question = Question(Origins((Path("policies"),)), place, "prod", now=instant(TIMES[0]))
        _, _, inputs = inputs_of(question)
    finally:
        os.chdir(here)
    assert inputs
    (folder / "prod.dump").write_bytes(dump.write(inputs))
    history = History(folder / "history")
    for time in TIMES:
        if time == TIMES[-1]:
            left = tuple(each for each in inputs.observed.pods if not each.name.startswith("train-00-job"))
            inputs = msgspec.structs.replace(inputs, observed=msgspec.structs.replace(inputs.observed, pods=left))
        inputs = msgspec.structs.replace(inputs, now=Instant(instant(time)))
        history.keep(inputs, decide(inputs).plan.digest)
