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
# A third of that, in which there is still one of each sort.
FEW_NODES = 20
FEW_RUNS = (
    Application("web", 16, 12),
    Application("api", 12, 9, by="minAvailable", starts_after="1s"),
    Application("embed", 12, 8, cpu="4", dies_after_seconds=3),
    Application("chat", 8, 5, by="minAvailable", kind="StatefulSet"),
    Application("queue", 8, 7, starts_after="1s"),
    Application("index", 7, 6, by="minAvailable", kind="StatefulSet"),
)


class Fleet(NamedTuple):
    """What is packed."""

    nodes: int = NODES
    runs: Sequence[Application] = RUNS


SIXTY, TWENTY = Fleet(), Fleet(FEW_NODES, FEW_RUNS)


class Packed(NamedTuple):
    """What came of it."""

    fleet: Fleet
    told: Told
    entries: list[Entry]  # ours
    gone: set[str]
    left: list[Manifest]
    is_whole: bool
    bought: set[str]  # NodeClaims that were made meanwhile


def needed(runs: Sequence[Application]) -> int:
    """How many nodes hold them: pods of one GPU each leave no gap."""
    return -(-sum(each.replicas for each in runs) // P4D.gpus)


def packed(lab: Lab, folder: Path, fleet: Fleet = SIXTY, times_as_fast: int = TIMES_AS_FAST) -> Packed:
    """All of it: nodes are bought, and filled, and packed."""
    drained = Drained(lab, folder, {NAME: fleet.runs}, times_as_fast)
    try:
        with drained.site.replica() as replica:
            replica.wait_until_leading()
            drained.buys({NAME: fleet.nodes})
            try:
                return _watched(drained, fleet)
            except AssertionError as late:
                raise AssertionError("\n".join(map(str, (late, *replica.lines)))) from late
    finally:
        drained.close()


def _watched(drained: Drained, fleet: Fleet) -> Packed:
    audit, history, before = drained.lab.audit(), History(drained.admin), names_of(drained.nodes(NAME))
    claims = names_of(drained.admin.list("nodeclaims"))
    assert len(before) == fleet.nodes
    drained.drains(NAME, maxDrainParallelism=AT_ONCE, maxScaleDownParallelism=fleet.nodes)
    drained.settles(NAME, needed(fleet.runs), within=600)
    history.end()
    left = drained.nodes(NAME)
    bought = names_of(drained.admin.list("nodeclaims")) - claims
    told, gone = judged(history.moments(), drained.runs), before - names_of(left)
    return Packed(fleet, told, audit.entries(RECONCILER), gone, left, drained.is_whole(), bought)


def names_of(found: list[Manifest]) -> set[str]:
    return {each["metadata"]["name"] for each in found}
