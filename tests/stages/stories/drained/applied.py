"""Workloads of all sorts, drawn at random, as somebody would have applied them: with budgets, marks and claims."""

from collections.abc import Iterator
from random import Random
from typing import Any

import yaml

from reconciler.model import names
from reconciler.simulate.objects import RUN_SECONDS

Json = dict[str, Any]

_KINDS = ("ReplicaSet",) * 9 + ("StatefulSet",) * 4 + ("Job",) * 3 + ("DaemonSet",) * 2 + ("Pod",)
_APIS = {"Job": "batch/v1", "Pod": "v1"}
_SHARES = ("20%", "34%", "50%", "75%")


def applied(chance: Random, pool: str, gpus: int, nodes: int) -> list[str]:
    """The objects of a few applications that have room on so many nodes with so many GPUs each, as YAML."""
    found: list[Json] = []
    left = gpus * nodes * chance.choice([3, 4, 5]) // 10
    for number in range(chance.randint(2, 6)):
        size = chance.choice([each for each in (0, 1, 1, 2, 3, 4) if each <= gpus])
        pods = min(chance.randint(1, 6), left // size if size else 6)
        if pods:
            left -= size * pods
            found += _application(chance, _App(f"{pool}-app-{number}", pool, size, pods))
    return [yaml.safe_dump(each, sort_keys=False) for each in found]


class _App:
    """One of them."""

    def __init__(self, name: str, pool: str, gpus: int, pods: int) -> None:
        self.name, self.pool, self.gpus, self.pods = name, pool, gpus, pods
        self.labels = {"app": name, "team": "one"}


def _application(chance: Random, app: _App) -> Iterator[Json]:
    kind = chance.choice(_KINDS)
    template = _template(chance, app, kind)
    if chance.random() < 0.12 and kind in {"ReplicaSet", "StatefulSet", "Job"}:
        template["metadata"]["annotations"][names.CLAIM] = app.name
        gang = {"gangRef": chance.choice([app.name, f"{app.pool}-gang"])} if chance.random() < 0.6 else {}
        yield _object("gpu.scheduling/v1", "GpuClaim", app.name) | {"spec": {"devices": {"count": app.gpus}, **gang}}
    body = _object(_APIS.get(kind, "apps/v1"), kind, app.name)
    if kind == "Pod":
        yield body | {"metadata": body["metadata"] | template["metadata"], "spec": template["spec"]}
    else:
        yield body | {"spec": _owner_spec(chance, app, kind) | {"template": template}}
    if chance.random() < (0.2 if kind in {"Pod", "DaemonSet"} else 0.6):
        yield _budget(chance, app, app.name)
    if chance.random() < 0.06:
        yield _budget(chance, app, f"{app.name}-too")


def _object(version: str, kind: str, name: str) -> Json:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "default"}}


def _owner_spec(chance: Random, app: _App, kind: str) -> Json:
    selector = {"selector": {"matchLabels": {"app": app.name}}}
    if kind == "Job":
        return {"parallelism": app.pods, "completions": app.pods + chance.randint(0, 2)}
    if kind == "DaemonSet":
        return selector
    in_turn = {"podManagementPolicy": chance.choice(["OrderedReady", "Parallel"])} if kind == "StatefulSet" else {}
    return {"replicas": app.pods, **selector, **in_turn}


def _template(chance: Random, app: _App, kind: str) -> Json:
    requests = {"cpu": f"{chance.choice([100, 500, 2_000])}m", "memory": f"{chance.choice([1, 4, 16])}Gi"}
    gpus = app.gpus if kind != "DaemonSet" else 0
    extended = {names.NVIDIA_GPU: str(gpus)} if gpus else {}
    spec: Json = {
        "containers": [{"name": "main", "resources": {"requests": requests | extended, "limits": extended}}],
        "nodeSelector": {names.KARPENTER_POOL: app.pool} if chance.random() < 0.8 or not gpus else {},
    }
    if (grace := chance.choice([None, 0, 5, 30, 120, 900])) is not None:
        spec["terminationGracePeriodSeconds"] = grace
    if chance.random() < 0.08:
        spec["volumes"] = [{"name": "scratch", **_volume(chance.random())}]
    if kind == "DaemonSet" and chance.random() < 0.5:
        spec["tolerations"] = [{"operator": "Exists"}]
    if kind in {"ReplicaSet", "StatefulSet"}:
        spec |= _neighbours(chance, app)
    annotations = _marks(chance)
    if kind == "Job" and chance.random() < 0.8:
        annotations[RUN_SECONDS] = str(chance.randint(300, 2_400))
    return {"metadata": {"labels": app.labels, "annotations": annotations}, "spec": spec}


def _volume(drawn: float) -> Json:
    if drawn < 0.3:
        return {"emptyDir": {"medium": "Memory"}}
    return {"emptyDir": {}} if drawn < 0.7 else {"hostPath": {"path": "/var/cache"}}


def _marks(chance: Random) -> dict[str, str]:
    drawn = chance.random()
    if drawn < 0.04:
        return {names.DO_NOT_DISRUPT: "true"}
    if drawn < 0.07:
        return {names.DO_NOT_DISRUPT: f"{chance.randint(5, 60)}m"}
    if drawn < 0.1:
        return {names.SAFE_TO_EVICT: "false"}
    if drawn < 0.13:
        return {names.SAFE_TO_EVICT: "on-completion"}
    if drawn < 0.18:
        return {names.SAFE_TO_EVICT: "true"}
    if drawn > 0.8:
        return {names.SAFE_TO_EVICT_LOCAL_VOLUMES: "scratch"}
    return {names.CHECKPOINT: f"{round(2_000 * drawn) - 300}s"} if drawn < 0.26 else {}


def _neighbours(chance: Random, app: _App) -> Json:
    """What its pods ask about each other."""
    selector = {"matchLabels": {"app": app.name}}
    drawn = chance.random()
    if drawn < 0.12:
        term = {"labelSelector": selector, "topologyKey": names.HOSTNAME}
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}
    if drawn < 0.2:
        key = chance.choice([names.HOSTNAME, names.ZONE])
        spread = {"maxSkew": chance.randint(1, 2), "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule"}
        spread |= {"nodeTaintsPolicy": chance.choice(["Ignore", "Honor"])}
        return {"topologySpreadConstraints": [{**spread, "labelSelector": selector}]}
    return {}


def _budget(chance: Random, app: _App, name: str) -> Json:
    way = chance.random()
    if way < 0.45:
        spec: Json = {"maxUnavailable": chance.choice([0, 1, 1, 1, 2])}
    elif way < 0.65:
        spec = {"minAvailable": max(0, app.pods - chance.randint(0, 2))}
    else:
        spec = {chance.choice(["maxUnavailable", "minAvailable"]): chance.choice(_SHARES)}
    if (unhealthy := chance.choice(["", "", "AlwaysAllow", "IfHealthyBudget"])) != "":
        spec["unhealthyPodEvictionPolicy"] = unhealthy
    selector = {"app": app.name} if chance.random() < 0.95 else {"team": "one"}
    return _object("policy/v1", "PodDisruptionBudget", name) | {"spec": spec | {"selector": {"matchLabels": selector}}}
