"""Nodes and pods of the openb workloads: the published traces, or a drawn mix like theirs where they are absent.

The traces are not part of this repository. RECONCILER_OPENB names a folder with openb_node_list_gpu_node.csv and
openb_pod_list_WORKLOAD.csv of the authors of FGD (Weng et al., USENIX ATC 2023).
"""

import csv
import io
import os
import random
from pathlib import Path
from typing import NamedTuple

from reconciler.model.bundle import Text
from reconciler.model.quantity import Quantity
from reconciler.simulate.openb import POD_COLUMNS, read_nodes, read_pods
from reconciler.simulate.workloads import Job

FOLDER_VARIABLE = "RECONCILER_OPENB"
WORKLOADS = ("default", "multigpu50", "gpushare100", "cpu250", "gpuspec33")


class BareNode(NamedTuple):
    cpu_milli: int
    memory: int  # bytes
    gpus: int
    model: str


class Asked(NamedTuple):
    """What a pod requests."""

    cpu_milli: int
    memory: int  # bytes
    gpus: int
    milli: int  # thousandths of each GPU
    models: tuple[str, ...] = ()  # empty: any


class Workload(NamedTuple):
    nodes: list[BareNode]
    pods: list[Asked]
    source: str


def workload(name: str) -> Workload:
    folder = os.environ.get(FOLDER_VARIABLE)
    if folder is None:
        return Workload(_drawn_nodes(), _drawn_pods(name), "drawn: a mix like that of the openb traces")
    return Workload(_read_nodes(Path(folder)), _read_pods(Path(folder), name), "the openb traces")


# --- The published traces.


def _read_nodes(folder: Path) -> list[BareNode]:
    read = read_nodes(Text("nodes.csv", (folder / "openb_node_list_gpu_node.csv").read_bytes()))
    assert not read.problems, read.problems[0]
    nodes = []
    for each in read.nodes:
        capacity = dict(each.capacity)
        gpus = int(capacity.get("nvidia.com/gpu", "0"))
        nodes.append(BareNode(_milli(capacity["cpu"]), _milli(capacity["memory"]) // 1_000, gpus, each.model))
    return nodes


def _read_pods(folder: Path, name: str) -> list[Asked]:
    read = read_pods(Text("pods.csv", _with_all_columns(folder / f"openb_pod_list_{name}.csv")))
    assert not read.problems, read.problems[0]
    return [_asked(job) for _, job in read.jobs]


def _asked(job: Job) -> Asked:
    requests = job.requests or {}
    cpu, memory, gpus = _milli(requests["cpu"]), _milli(requests["memory"]) // 1_000, job.gpus or 0
    return Asked(cpu, memory, gpus, (job.gpu_milli or 0) if gpus else 0, job.models)


def _with_all_columns(file: Path) -> bytes:
    """Some of the published lists have no more columns than the requests. Times make no difference here."""
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    text = io.StringIO()
    writer = csv.DictWriter(text, POD_COLUMNS, restval="", extrasaction="ignore")
    writer.writeheader()
    writer.writerows({**row, "creation_time": "0", "deletion_time": "", "scheduled_time": "0"} for row in rows)
    return text.getvalue().encode()


def _milli(text: str) -> int:
    return Quantity.parse(text).milli


# --- A drawn mix: many nodes of eight, more cpu for a GPU on small nodes, mostly parts of a GPU and single GPUs.

_GIB = 2**30
_NODES = (  # number, cpus, GiB, GPUs, model
    (550, 96, 384, 8, "large"),
    (390, 104, 512, 2, "small"),
    (110, 16, 120, 2, "old"),
    (40, 128, 768, 8, "new"),
    (40, 32, 128, 4, "middle"),
    (30, 96, 768, 8, "memory"),
)
_SHARES = ((460, 6), (220, 4), (320, 4), (500, 8), (750, 8))  # thousandths of a GPU, cpus
_WHOLE = ((1, 8), (1, 12), (1, 4), (2, 16), (4, 32), (8, 64), (8, 88))  # GPUs, cpus
# Share of pods in percent: parts of a GPU, one GPU, several GPUs, no GPU.
_PERCENT = {
    "default": (38, 48, 1, 13),
    "multigpu50": (18, 24, 30, 28),
    "gpushare100": (86, 0, 0, 14),
    "cpu250": (28, 36, 1, 35),
    "gpuspec33": (38, 48, 1, 13),
}
_PODS = 8_000


def _drawn_nodes() -> list[BareNode]:
    return [
        BareNode(cpus * 1_000, gib * _GIB, gpus, model)
        for number, cpus, gib, gpus, model in _NODES
        for _ in range(number)
    ]


def _drawn_pods(name: str) -> list[Asked]:
    draw = random.Random(name)
    kinds = draw.choices(("share", "one", "several", "none"), _PERCENT[name], k=_PODS)
    return [_drawn_pod(draw, kind, has_models=name == "gpuspec33") for kind in kinds]


def _drawn_pod(draw: random.Random, kind: str, *, has_models: bool) -> Asked:
    models = tuple(sorted(draw.choice(_MODEL_SETS))) if has_models and kind != "none" and draw.random() < 0.33 else ()
    if kind == "none":
        return Asked(draw.choice((4, 8, 16, 32)) * 1_000, 16 * _GIB, 0, 0)
    if kind == "share":
        milli, cpus = draw.choice(_SHARES)
        return Asked(cpus * 1_000, 12 * _GIB, 1, milli, models)
    gpus, cpus = draw.choice([each for each in _WHOLE if (each[0] == 1) == (kind == "one")])
    return Asked(cpus * 1_000, gpus * 24 * _GIB, gpus, 1_000, models)


_MODEL_SETS = (("large",), ("small",), ("old",), ("middle", "memory"), ("large", "new"))


def arrivals(found: Workload, seed: int, demand_percent: int) -> list[Asked]:
    """The pods in a drawn order, repeated or left out until they request so much of all GPUs."""
    draw = random.Random(seed)
    pods = list(found.pods)
    draw.shuffle(pods)
    most = demand_percent * sum(node.gpus for node in found.nodes) * 10  # thousandths of a GPU
    demand = sum(pod.gpus * pod.milli for pod in pods)
    while demand > most:
        demand -= _milli_of(pods.pop(draw.randrange(len(pods))))
    while demand + _milli_of(pod := draw.choice(found.pods)) <= most:
        pods.append(pod)
        demand += _milli_of(pod)
    return pods


def _milli_of(pod: Asked) -> int:
    return pod.gpus * pod.milli
