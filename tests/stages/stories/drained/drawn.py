"""Fleets that are drained, drawn by chance: what runs there, what policies allow, what goes wrong meanwhile.

Whatever comes, goes or goes wrong does so in the first hour and a half; after that there are six hours in which all
that is not kept must be drained.
"""

from pathlib import Path
from random import Random

from reconciler.model import names
from reconciler.simulate.runner.play import Play
from tests.stages.scaling.drawn import Json, play_of, pool, provisioner
from tests.stages.stories.drained.applied import applied

QUIET_MINUTES = 90  # since when nothing comes, and nothing goes wrong
HOURS = 6  # in which all is to be drained then
_GPUS = {"a100": 8, "l4": 4}
_SMALLER = ("p4de.half", 4)


def drawn(folder: Path, seed: int) -> Play:
    """The same seed gives the same."""
    chance = Random(f"draining/{seed}")
    pools = ["a100"] if chance.random() < 0.7 else ["a100", "l4"]
    counts = {name: chance.randint(2, 7) for name in pools}
    policies = [each for name in pools for each in _pool(chance, name, counts[name])]
    policies += [*_drains(chance, pools, policies), *_guards(chance)]
    scenario: Json = {
        "duration": f"{QUIET_MINUTES + 60 * HOURS}m",
        "warmUp": "10m",
        "cycleEvery": chance.choice(["1s", "5s", "15s"]),
        "cluster": {
            "nodes": [each for name in pools for each in _nodes(chance, name, counts[name])],
            "objects": [each for name in pools for each in applied(chance, name, _GPUS[name], counts[name])],
        },
        "workloads": [each for name in pools for each in _workloads(chance, name, counts[name])],
        "faults": _faults(chance),
        "edits": _edits(chance),
    }
    return play_of(folder, policies, scenario, seed)


def _pool(chance: Random, name: str, count: int) -> list[Json]:
    declared = [pool(name, *([_SMALLER] if name == "a100" and chance.random() < 0.3 else []))]
    if chance.random() < 0.5:
        declared.append(
            provisioner(
                name,
                minSize=chance.choice([0, 0, 1, count]),
                maxSize=count + chance.choice([0, 3, 100]),
                minGPUUtilizationPercent=chance.choice([50, 70, 80, 90]),
                minUnutilizedGPUNodes=chance.choice([0, 0, 0, 1]),
                scaleDownDelay=f"{chance.choice([60, 300, 600])}s",
            )
        )
    return declared


def _nodes(chance: Random, name: str, count: int) -> list[Json]:
    few = chance.randint(0, count - 1) if name == "a100" and chance.random() < 0.2 else 0
    capacity = {"cpu": "48", "memory": "256Gi", "pods": "110", names.NVIDIA_GPU: "4"}
    smaller = [{"pool": name, "name": f"{name}-half", "count": few, "capacity": capacity}] if few else []
    return [{"pool": name, "count": count - few}, *smaller]


def _drains(chance: Random, pools: list[str], policies: list[Json]) -> list[Json]:
    wishes = [each["spec"] for each in policies if each["kind"] == "NodeProvisioner"]
    least = {each["poolName"]: each["minGPUUtilizationPercent"] for each in wishes}
    if len(pools) > 1 and chance.random() < 0.4:
        return [_drain(chance, "all", ["*"], min(least.values(), default=101))]
    drained = pools if chance.random() < 0.9 else pools[:1]
    return [_drain(chance, name, [name], least.get(name, 101)) for name in drained]


def _drain(chance: Random, name: str, pools: list[str], above: int) -> Json:
    """Its threshold stays below what provisioners keep in use."""
    most = chance.choice([1, 2, 3, 10])
    spec: Json = {
        "poolNames": pools,
        "utilizationThresholdPercent": min(above - 1, chance.choice([40, 50, 60, 80, 100])),
        "maxDrainParallelism": min(most, chance.choice([1, 1, 2, 4])),
        "maxScaleDownParallelism": most,
        "scaleDownUnneededTime": f"{chance.choice([0, 60, 120, 600])}s",
        "scaleDownUnreadyTime": f"{chance.choice([60, 300, 1200])}s",
        "maxGracefulTerminationSeconds": chance.choice([0, 30, 120, 600]),
        "recentEvictionSeconds": chance.choice([0, 30, 120, 600]),
    }
    if chance.random() < 0.2:
        spec["clusterMin"] = {chance.choice([names.NVIDIA_GPU] * 3 + ["cpu"]): str(chance.choice([4, 8, 16, 24]))}
    if chance.random() < 0.3:
        spec["windows"] = [_window(chance) for _ in range(chance.randint(1, 2))]
    return {"apiVersion": "gpu.scheduling/v1", "kind": "DrainPolicy", "metadata": {"name": name}, "spec": spec}


def _window(chance: Random) -> Json:
    """It opens more than once in the hours that are quiet."""
    schedule = f"{chance.randint(0, 59)} */2 * * *"
    zone = chance.choice(["UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kolkata"])
    return {"schedule": schedule, "timeZone": zone, "duration": f"{chance.choice([20, 30, 75])}m"}


def _guards(chance: Random) -> list[Json]:
    if chance.random() < 0.65:
        return []
    ceilings = {
        "perPlan": {"maxDisruptedGPUs": chance.choice([4, 8, 16])},
        "perHour": {"maxDisruptedGPUs": chance.choice([8, 12, 24]), "maxRemovedNodes": chance.choice([2, 10])},
    }
    kept = chance.choice([["perPlan"], ["perHour"], ["perPlan", "perHour"]])
    spec = {"poolNames": ["*"], **{key: ceilings[key] for key in kept}}
    return [{"apiVersion": "gpu.scheduling/v1", "kind": "ChangeGuard", "metadata": {"name": "all"}, "spec": spec}]


def _workloads(chance: Random, name: str, count: int) -> list[Json]:
    """What makes nodes busy at first and goes then, and what comes later."""
    here = {"nodeSelector": {names.KARPENTER_POOL: name}}
    most = _GPUS[name] * count // 2
    gpus = chance.choice([1, 2])
    ends = f"{chance.randint(2, 40)}m"
    old = {"name": f"{name}-old", "gpus": gpus, "constant": {"pods": chance.randint(0, most // gpus)}, "ends": ends}
    found: list[Json] = [old | here | ({"maxUnavailable": 1} if chance.random() < 0.3 else {})]
    if chance.random() < 0.5:
        comes = {"begins": f"{chance.randint(10, 80)}m", "constant": {"pods": chance.randint(1, 4)}}
        found.append({"name": f"{name}-late", "gpus": chance.choice([1, 2, 4]), **comes, **here})
    if chance.random() < 0.4:
        runs = {"runsFor": f"{chance.randint(2, 30)}m", "varies": "Mildly", "ends": "70m"}
        bursts = {"jobs": chance.randint(1, 4), "every": f"{chance.randint(15, 40)}m"}
        found.append({"name": f"{name}-jobs", "gpus": chance.choice([1, 2, 4]), "bursts": bursts, **runs, **here})
    return found


def _faults(chance: Random) -> list[Json]:
    def moment() -> Json:
        at = chance.randint(0, 60 * (QUIET_MINUTES - 20))
        return {"at": f"{at}s", "lasts": f"{chance.randint(30, 60 * QUIET_MINUTES - at)}s"}

    lasting: list[Json] = [
        {"fault": "LateWatch", "delay": f"{chance.choice([2, 20, 45])}s"},
        {"fault": "SlowApi", "delay": f"{chance.choice([1, 10])}s"},
        {"fault": "SlowKubelets", "delay": f"{chance.choice([20, 120])}s"},
        {"fault": "SlowWorkloads", "delay": f"{chance.choice([10, 60, 200])}s"},
        {"fault": "EvictionsFail"},
        {"fault": "NodeNotReady", "count": chance.randint(1, 2)},
        {"fault": "ControllerAbsent"},
        {"fault": "StockOut"},
    ]
    found = [each | moment() for each in lasting if chance.random() < 0.15]
    deaths = [{"fault": "NodeDeath", "at": moment()["at"], "count": chance.randint(1, 2)} for _ in range(2)]
    found += [each for each in deaths if chance.random() < 0.15]
    writes = [chance.randint(0, 5) for _ in range(chance.choice([0, 0, 1, 4]))]
    found += [{"fault": "ControllerCrash", "at": moment()["at"], "afterWrites": each} for each in writes]
    return found + _kubelets(Random(repr(found)))


def _kubelets(chance: Random) -> list[Json]:
    """Kubelets that are gone, some for good; drawn apart, so that seeds tell what they told before."""
    if chance.random() >= 0.25:
        return []
    at = chance.randint(30, 60 * QUIET_MINUTES - 60)
    lasts = {"lasts": f"{chance.randint(30, 60 * QUIET_MINUTES - at)}s"} if chance.random() < 0.5 else {}
    return [{"fault": "KubeletDown", "at": f"{at}s", "count": chance.randint(1, 2), **lasts}]


def _edits(chance: Random) -> list[Json]:
    def moment(lasts: bool = True) -> Json:
        at = chance.randint(1, QUIET_MINUTES - 30)
        return {"at": f"{at}m", **({"lasts": f"{chance.randint(1, 30)}m"} if lasts else {})}

    sorts: list[Json] = [
        {"kind": "Node", "unschedulable": True},
        {"kind": "Node", "labels": {names.UPGRADE_STATE: "drain-required"}},
        {"kind": "Node", "annotations": {names.FROZEN_UNTIL: "2026-11-16T10:00:00Z"}},
        {"kind": "Node", "annotations": {names.SCALE_DOWN_DISABLED: "true"}},
        {"kind": "Pod", "annotations": {names.DO_NOT_DISRUPT: "true"}, "count": 2},
        {"kind": "Node", "taints": [{"key": "team", "value": "other", "effect": "NoSchedule"}]},
    ]
    found = [each | moment() for each in sorts if chance.random() < 0.1]
    if chance.random() < 0.15:
        found.append({"kind": "Pod", "deleted": True, "count": chance.randint(1, 3), **moment(lasts=False)})
    if chance.random() < 0.05:
        found.append({"kind": "Node", "deleted": True, **moment(lasts=False)})
    return found
