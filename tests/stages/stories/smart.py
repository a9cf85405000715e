"""Stories of demand that waits for capacity, drawn by chance: what comes, what can be had, what goes wrong meanwhile.

All that comes has come after half an hour and stays; all that goes wrong is over after an hour, but for types that are
never on offer, of which one is left that does for all pods. What must come of it is known from the drawing alone: each
pod runs, and where all pods of a pool are alike, how many machines are needed for that.
"""

from pathlib import Path
from random import Random
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.simulate.objects import WORKLOAD
from reconciler.simulate.runner.play import Play
from tests.stages.scaling.drawn import Json, play_of, pool, provisioner

DURATION = "150m"
_SPARES = (("p4d.spare", 8), ("p4d.other", 8))
_SIZES = (1, 2, 4, 8)
_SMART = {names.COMPONENT: "smart-scheduler"}


class Story(msgspec.Struct, frozen=True):
    """A play, and what is known of it beforehand."""

    play: Play
    needed: int | None  # machines that must be bought; None where that hangs on who comes where
    spare: int  # machines that may be bought beside them: for what is taken away, or wanted twice unseen

    @property
    def is_calm(self) -> bool:
        return not (self.play.scenario.faults or self.play.scenario.edits)


class _Pool(msgspec.Struct, frozen=True):
    """A pool, its workloads, and how many machines they need."""

    policies: list[Json]
    nodes: list[Json]
    workloads: list[Json]
    needed: int | None
    plain: int  # machines for pods that Karpenter sees: once there is stock, it may buy for a smart pod beside them
    twice: int  # asked for by us while Karpenter buys for pods that it sees: for a moment neither knows of the other
    types: list[str]


def drawn(folder: Path, seed: int) -> Story:
    """The same seed gives the same."""
    chance = Random(f"smart pods/{seed}")
    pools = [_pool(chance, name) for name in (["a100"] if chance.random() < 0.7 else ["a100", "l4"])]
    is_calm = chance.random() < 0.3
    faults, edits = ([], []) if is_calm else (_faults(chance, pools), _edits(chance))
    scenario = {
        "duration": DURATION,
        "cycleEvery": chance.choice(["1s", "1s", "5s"]),
        "cluster": {"nodes": [node for each in pools for node in each.nodes]},
        "market": _market(chance),
        "workloads": [workload for each in pools for workload in each.workloads],
        "faults": faults,
        "edits": edits,
    }
    play = play_of(folder, [policy for each in pools for policy in each.policies], scenario, seed)
    counts = [each.needed for each in pools]
    needed = None if None in counts else sum(count or 0 for count in counts)
    taken = sum(each.get("count", 1) for each in (*faults, *edits) if _takes(each))
    wrong = {each["fault"] for each in faults}
    unseen = needed or 0 if wrong & {"LateWatch", "SlowApi"} else 0
    beside = sum(each.plain for each in pools) if wrong & {"StockOut", "NotOffered"} else 0
    return Story(play, needed, unseen + beside + taken + sum(each.twice for each in pools))


def _market(chance: Random) -> Json:
    """Machines come soon or late."""
    return {
        "launchDelay": f"{chance.choice([1, 3, 20])}s",
        "registrationDelay": f"{chance.choice([5, 30, 90, 240])}s",
        "initializationDelay": f"{chance.choice([2, 15, 60])}s",
    }


def _pool(chance: Random, name: str) -> _Pool:
    more = [*_SPARES[: chance.randint(0, 2)]] if name == "a100" else []
    declared = pool(name, *more)
    spec = declared["spec"]
    spec["smartPods"] = {
        "maxRetryAttempts": chance.choice([3, 40]),
        "cleanupInterval": chance.choice(["5s", "30s", "2m"]),
    }
    if chance.random() < 0.3:
        spec["capacityTypes"] = ["spot", "on-demand"]
    least = chance.randint(0, 3)
    is_scaled = chance.random() < 0.4
    there = 0 if is_scaled else chance.choice([0, 0, 1, 3])
    sized = provisioner(name, minSize=least, scaleDownDelay=f"{chance.choice([60, 300, 900])}s")
    workloads, wanted = _workloads(chance, name, spec["devices"]["count"])
    plain = sum(_pods(each) for each in workloads if not each["waitsForCapacity"])  # never more machines than these
    needed = None if wanted is None else max(wanted - there, least if is_scaled else 0)
    gated = sum(bool(each["waitsForCapacity"]) for each in workloads)
    mixed = min(gated, len(workloads) - gated)  # each packs its own: together they would share a machine
    return _Pool(
        [declared, sized] if is_scaled else [declared],
        [{"pool": name, "count": there}] if there else [],
        workloads,
        needed,
        plain,
        mixed + (least if is_scaled and plain else 0),
        [each["name"] for each in spec["instanceTypes"]],
    )


def _workloads(chance: Random, pool_name: str, gpus: int) -> tuple[list[Json], int | None]:
    """With how many nodes they need."""
    sizes = [each for each in _SIZES if each <= gpus]
    usual, is_even = chance.choice(sizes), chance.random() < 0.7
    found: list[Json] = []
    pods = 0
    for number in range(chance.randint(1, 3)):
        size, count = usual if is_even else chance.choice(sizes), chance.randint(1, 8)
        pods += count
        waits = chance.random() < 0.75
        way: Json = {"constant": {"pods": count}}
        if chance.random() < 0.4:
            way = {"bursts": {"jobs": count, "every": "10h"}, "runsFor": "10h"}
        begins = chance.choice([0, 0, chance.randint(1, 1_800)])
        here = {"nodeSelector": {names.KARPENTER_POOL: pool_name}}
        found.append({"name": f"{pool_name}-{number}", "gpus": size, "waitsForCapacity": waits, **way, **here})
        found[-1] |= {"begins": f"{begins}s"} if begins else {}
    return found, -(-pods // (gpus // usual)) if is_even else None


def _pods(workload: Json) -> int:
    return int(workload["bursts"]["jobs"] if "bursts" in workload else workload["constant"]["pods"])


def _faults(chance: Random, pools: list[_Pool]) -> list[Json]:
    def minute(most: int = 30) -> str:
        return f"{chance.randint(0, 60 * most)}s"

    def some(part: float = 0.2) -> bool:
        return chance.random() < part

    lasting: list[Json] = [
        {"fault": "StockOut"},
        {"fault": "NotOffered"},
        {"fault": "StockOut", "capacityType": "spot"},
        {"fault": "NotOffered", "zone": "zone-a"},
        {"fault": "LateWatch", "delay": "20s"},
        {"fault": "SlowApi", "delay": "10s"},
        {"fault": "ControllerAbsent"},
    ]
    found = [each | {"at": minute(), "lasts": minute()} for each in lasting if some()]
    found += [{"fault": "NodeDeath", "at": minute(60), "count": chance.randint(1, 2)} for _ in range(2) if some()]
    crashes = chance.choice([0, 0, 1, 3])
    found += [{"fault": "ControllerCrash", "at": minute(), "afterWrites": chance.randint(0, 9)} for _ in range(crashes)]
    for each in pools:
        never = chance.choice(["StockOut", "NotOffered"])
        found += [{"fault": never, "at": "0s", "instanceType": name} for name in each.types[:-1] if some(0.4)]
    return found


def _edits(chance: Random) -> list[Json]:
    def moment() -> Json:
        return {"at": f"{chance.randint(1, 2_400)}s", "count": chance.randint(1, 3), "deleted": True}

    sorts: list[Json] = [
        {"kind": "NodeClaim", "order": "Youngest"},
        {"kind": "NodeClaim"},
        {"kind": "Node"},
        {"kind": "Pod", "having": _SMART},
        {"kind": "Pod", "having": _SMART},
        {"kind": "Pod", "having": {WORKLOAD: "a100-0"}},
    ]
    return [each | moment() for each in sorts if chance.random() < 0.25]


def _takes(wrong: dict[str, Any]) -> bool:
    """Pods that are deleted keep their place for a while, in which others come for them."""
    return wrong.get("fault") == "NodeDeath" or (bool(wrong.get("deleted")) and wrong.get("having") != _SMART)
