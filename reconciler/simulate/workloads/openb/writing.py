"""What comes in an imagined cluster, written as the two lists of an openb trace: owner of the pods seen so far."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.quantity import Quantity
from reconciler.protocol.preconditions import Object
from reconciler.simulate.marks import GPU_MILLI, RUN_SECONDS
from reconciler.simulate.objects import ObjectWrite
from reconciler.simulate.stage import Stage
from reconciler.simulate.workloads.openb.columns import NODE_COLUMNS, POD_COLUMNS

_MIB = 2**20
_QOS = ((1_000, "LS"), (500, "Burstable"))
_FIRST_PRIORITY = "BE"


class _PodRow(msgspec.Struct):
    """A pod: when it comes, and when it goes, where it does."""

    name: str
    template: Object
    created: int
    ended: int | None


class TraceWriter:
    """Told of each job and replica set as it is put; what is never scheduled gets its node at once."""

    def __init__(self, stage: Stage) -> None:
        self._start: Instant = stage.now
        self._stage = stage
        self._lines: list[_PodRow] = []
        self._replicas: dict[str, list[_PodRow]] = {}  # that are there, the newest last
        stage.world.subscribe(self._note)

    def pods(self) -> str:
        """The pod list."""
        return _written(POD_COLUMNS, (_pod(each) for each in self._lines))

    def _note(self, written: ObjectWrite) -> None:
        body = written.after
        if body is None:
            return
        if written.key[0] == "Job":
            self._job(body)
        elif written.key[0] == "ReplicaSet":
            self._scaled(body)

    def _job(self, body: Object) -> None:
        spec, name = body["spec"], body["metadata"]["name"]
        seconds = (spec["template"]["metadata"].get("annotations") or {}).get(RUN_SECONDS)
        for number in range(spec["parallelism"]):
            amount = name if spec["parallelism"] == 1 else f"{name}-{number}"
            ended = None if seconds is None else self._second + int(seconds)
            self._lines.append(_PodRow(amount, spec["template"], self._second, ended))

    def _scaled(self, body: Object) -> None:
        spec, name = body["spec"], body["metadata"]["name"]
        there = self._replicas.setdefault(name, [])
        while len(there) > spec["replicas"]:
            there.pop().ended = self._second
        while len(there) < spec["replicas"]:
            made = _PodRow(f"{name}-r{len(self._lines)}", spec["template"], self._second, None)
            there.append(made)
            self._lines.append(made)

    @property
    def _second(self) -> int:
        return (self._stage.now - self._start) // 1_000


def node_list(nodes: Iterable[Object]) -> str:
    """The node list."""
    return _written(NODE_COLUMNS, (_node(each) for each in nodes))


def _written(columns: Sequence[str], rows: Iterator[tuple[object, ...]]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _node(body: Object) -> tuple[object, ...]:
    capacity, labels = body["status"]["allocatable"], body["metadata"].get("labels") or {}
    amounts = (_cpu_milli(capacity), _memory_mib(capacity), int(capacity.get(names.NVIDIA_GPU, "0")))
    return (body["metadata"]["name"], *amounts, labels.get(names.GPU_TYPE, "").upper())


def _pod(line: _PodRow) -> tuple[object, ...]:
    spec = line.template["spec"]
    requests = spec["containers"][0]["resources"]["requests"]
    gpus = int(requests.get(names.NVIDIA_GPU, "0"))
    milli = (line.template["metadata"].get("annotations") or {}).get(GPU_MILLI, "1000") if gpus else "0"
    qos = next((word for least, word in _QOS if spec["priority"] >= least), _FIRST_PRIORITY)
    phase, ended = ("Running", "") if line.ended is None else ("Succeeded", str(max(line.ended, line.created + 1)))
    asked = (_cpu_milli(requests), _memory_mib(requests), gpus, milli, "|".join(_models(spec)))
    return (line.name, *asked, qos, phase, line.created, ended, line.created)


def _models(spec: Object) -> Iterator[str]:
    """GPUs that will do, where not all."""
    if model := (spec.get("nodeSelector") or {}).get(names.GPU_TYPE):
        yield model.upper()
    wanted = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {"nodeSelectorTerms": []}
    for term in wanted["nodeSelectorTerms"]:
        for expression in term["matchExpressions"]:
            if expression["key"] == names.GPU_TYPE:
                yield from (each.upper() for each in expression["values"])


def _cpu_milli(amounts: Object) -> int:
    return Quantity.parse(amounts.get("cpu", "0")).milli


def _memory_mib(amounts: Object) -> int:
    return Quantity.parse(amounts.get("memory", "0")).milli // 1_000 // _MIB
