"""A pool at 40 % that a DrainPolicy lets be packed, from its first taint until nothing is left to do."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.lab.api import Manifest
from tests.lab.audit import Entry
from tests.lab.capacity import P4D
from tests.lab.identities import RECONCILER
from tests.lab.lab import Lab
from tests.stages.live_drains.applications import Application
from tests.stages.live_drains.drained import TIMES_AS_FAST, Drained
from tests.stages.live_drains.history import History
from tests.stages.live_drains.judging import Told, judged

NAME, NODES, AT_ONCE = "calm", 60, 10
RUNS = (
    Application("web", 40, 30),
    Application("api", 36, 30, by="minAvailable", starts_after="1s"),
    Application("search", 30, 24, cpu="2"),
    Application("rank", 30, 26, starts_after="2s"),
    Application("embed", 24, 18, cpu="4", dies_after_seconds=3),
    Application("chat", 14, 10, by="minAvailable", kind="StatefulSet"),
    # One at a time, whoever says so.
    Application("queue", 9, 8, starts_after="1s"),
    Application("index", 7, 6, by="minAvailable", kind="StatefulSet"),
)


class Packed(NamedTuple):
    """What came of it."""

    told: Told
    entries: list[Entry]  # ours
    gone: set[str]
    left: list[Manifest]
    is_whole: bool
    bought: set[str]  # NodeClaims that were made meanwhile


def needed(runs: Sequence[Application]) -> int:
    """How many nodes hold them: pods of one GPU each leave no gap."""
    return -(-sum(each.replicas for each in runs) // P4D.gpus)


def packed(lab: Lab, folder: Path, runs: Sequence[Application] = RUNS, times_as_fast: int = TIMES_AS_FAST) -> Packed:
    """All of it: nodes are bought, and filled, and packed."""
    drained = Drained(lab, folder, {NAME: runs}, times_as_fast)
    try:
        with drained.site.replica() as replica:
            replica.wait_until_leading()
            drained.buys({NAME: NODES})
            return _watched(drained)
    finally:
        drained.close()


def _watched(drained: Drained) -> Packed:
    audit, history, before = drained.lab.audit(), History(drained.admin), names_of(drained.nodes(NAME))
    claims = names_of(drained.admin.list("nodeclaims"))
    assert len(before) == NODES
    drained.drains(NAME, maxDrainParallelism=AT_ONCE, maxScaleDownParallelism=NODES)
    drained.settles(NAME, needed(drained.runs[NAME]), within=600)
    history.end()
    left = drained.nodes(NAME)
    bought = names_of(drained.admin.list("nodeclaims")) - claims
    told, gone = judged(history.moments(), drained.runs), before - names_of(left)
    return Packed(told, audit.entries(RECONCILER), gone, left, drained.is_whole(), bought)


def names_of(found: list[Manifest]) -> set[str]:
    return {each["metadata"]["name"] for each in found}
