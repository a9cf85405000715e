"""Pools that are drained at the same time: one whose pods save their work first, one on which a gang runs, and one that
a NodeProvisioner scales as well; and what was seen of them."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import NamedTuple

import yaml

from reconciler.model import names
from tests.lab.api import Api, Manifest
from tests.lab.audit import Entry
from tests.lab.identities import RECONCILER
from tests.stages.live_drains.applications import Application
from tests.stages.live_drains.drained import Drained, marks
from tests.stages.live_drains.history import History
from tests.stages.live_drains.judging import Told, judged

SAVING, GANG, SCALED = "saving", "gang", "scaled"
BOUGHT = {SAVING: 3, GANG: 3, SCALED: 8}
KEPT = {SAVING: 1, GANG: 1, SCALED: 2}
CHECKPOINT_SECONDS = 60
RANKS = tuple(f"rank-{number}" for number in range(4))
RUNS = {
    SAVING: (Application("trainer", 6, 3, annotations={names.CHECKPOINT: f"{CHECKPOINT_SECONDS}s"}),),
    GANG: (  # of so much cpu that the scheduler spreads the gang over all nodes
        *(Application(each, 1, 0, annotations={names.CLAIM: each}, cpu="8") for each in RANKS),
        Application("filler", 3, 0),
    ),
    SCALED: (Application("web", 6, 4),),
}

_LOOK_SECONDS = 0.2


class Story(NamedTuple):
    """What came of it."""

    told: Told
    entries: list[Entry]  # ours, in order
    held: list[Entry]  # those of them until a budget let the gang go
    saved: dict[str, str]  # by pod: when it says that it saved its work
    taken: "Taken"
    left: dict[str, list[Manifest]]
    is_whole: bool
    events: set[tuple[str, str]]  # pod and reason


def story_of(drained: Drained) -> Story:
    with drained.site.replica() as replica:
        replica.wait_until_leading()
        drained.buys(BOUGHT)
        for each in RANKS:
            drained.admin.apply(_claim(each))
        first = RUNS[GANG][0]
        drained.admin.apply(first.budget(GANG, first.replicas))
        audit, history = drained.lab.audit(), History(drained.admin)
        with _saver(drained) as saved:
            _asked_for(drained)
            drained.settles(SAVING, KEPT[SAVING], within=240)
            drained.settles(SCALED, KEPT[SCALED], within=240)
            held = audit.entries(RECONCILER)
            drained.admin.apply(first.budget(GANG, first.least_ready))
            drained.settles(GANG, KEPT[GANG], within=240)
        history.end()
        entries = [*held, *audit.entries(RECONCILER)]
    told, left = judged(history.moments(), RUNS), {pool: drained.nodes(pool) for pool in RUNS}
    return Story(told, entries, held, saved, Taken(history), left, drained.is_whole(), _events(drained))


def _asked_for(drained: Drained) -> None:
    wish = {"poolName": SCALED, "minSize": KEPT[SCALED], "maxSize": 20, "minGPUUtilizationPercent": 80}
    spec = {**wish, "minUnutilizedGPUNodes": 0, "scaleDownDelay": "10s"}
    policy = {"apiVersion": "gpu.scheduling/v1", "kind": "NodeProvisioner", "metadata": {"name": SCALED}, "spec": spec}
    drained.site.put(f"{SCALED}-provisioner.yaml", yaml.safe_dump(policy))
    drained.drains(SCALED, utilizationThresholdPercent=50, maxDrainParallelism=4)
    drained.drains(SAVING, maxDrainParallelism=2, maxGracefulTerminationSeconds=CHECKPOINT_SECONDS)
    drained.drains(GANG, maxDrainParallelism=4)


def _claim(name: str) -> Manifest:
    spec = {"devices": {"count": 1}, "gangRef": "ranks"}
    metadata = {"name": name, "namespace": GANG}
    return {"apiVersion": "gpu.scheduling/v1", "kind": "GpuClaim", "metadata": metadata, "spec": spec}


@contextmanager
def _saver(drained: Drained) -> Iterator[dict[str, str]]:
    """Every other pod that is told saves its work at once and says so, as what runs in it would; by a thread."""
    saved: dict[str, str] = {}
    ended = threading.Event()

    def work() -> None:
        told: set[str] = set()
        while not ended.wait(_LOOK_SECONDS):
            for name in _told_pods(drained.admin) - told:
                told.add(name)
                if len(told) % 2:
                    saved[name] = _save(drained, name)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield saved
    finally:
        ended.set()
        thread.join(10)


def _told_pods(admin: Api) -> set[str]:
    found = admin.list("pods", SAVING)
    return {each["metadata"]["name"] for each in found if names.EVICT_AT in each["metadata"].get("annotations", {})}


def _save(drained: Drained, name: str) -> str:
    now = datetime.fromtimestamp(drained.now(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    patch = {"metadata": {"annotations": {names.CHECKPOINTED_AT: now}}}
    drained.admin.merge(drained.admin.path("pods", name, SAVING), patch)
    return now


class Taken:
    """Who took which nodes away, at any instant."""

    def __init__(self, history: History) -> None:
        self.staying = dict.fromkeys(RUNS, 10**6)  # by pool, the fewest nodes that nobody takes away
        self.scaled: set[str] = set()  # nodes that were marked for deletion, since they were empty
        self.both: set[str] = set()  # nodes that two planners took away at the same time
        for moment in history.moments():
            stays = dict.fromkeys(RUNS, 0)
            for name, node in moment.nodes.items():
                scaled, drained = _is_marked(node), names.DRAINING in marks(node)
                self.scaled |= {name} if scaled else set()
                self.both |= {name} if scaled and drained else set()
                pool = node["metadata"].get("labels", {}).get(names.KARPENTER_POOL)
                if pool in stays and not (scaled or drained or "deletionTimestamp" in node["metadata"]):
                    stays[pool] += 1
            self.staying = {pool: min(least, stays[pool]) for pool, least in self.staying.items()}


def _is_marked(node: Manifest) -> bool:
    taints = node["spec"].get("taints", ())
    return any(each["key"] == names.DELETION_TIME and each["effect"] == "NoSchedule" for each in taints)


def _events(drained: Drained) -> set[tuple[str, str]]:
    found = drained.admin.list("events", SAVING)
    about = ((each.get("regarding") or each.get("involvedObject") or {}, each["reason"]) for each in found)
    return {(str(ref.get("name")), reason) for ref, reason in about}
