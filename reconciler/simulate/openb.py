"""Reads and writes the public "openb" trace of a GPU cluster: its node list and pod list."""

import csv
import re
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO

import msgspec

from reconciler.model import names
from reconciler.model.bundle import Text
from reconciler.model.instant import Instant
from reconciler.model.problem import Problem
from reconciler.model.quantity import Quantity
from reconciler.protocol.preconditions import Object
from reconciler.report.wording import counted
from reconciler.simulate.objects import GPU_MILLI, RUN_SECONDS, ObjectWrite
from reconciler.simulate.stage import Stage
from reconciler.simulate.workloads import WHOLE_GPU_MILLI, Job

# --- The columns of the openb lists, in order, and the rows of a list with all problems.

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    "name",
    "cpu_milli",
    "memory_mib",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "qos",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
MOST_PROBLEMS = 20  # per file: a wrong file would otherwise produce a problem for each line

_MOST = 10**12  # maximum of any number


class Cells:
    """One row, and whether it has errors."""

    def __init__(self, rows: "TraceRows", line: int, cells: dict[str, str]) -> None:
        self.line = line
        self.is_sound = True
        self._rows = rows
        self._cells = cells

    def text(self, name: str) -> str:
        return self._cells[name].strip()

    def number(self, name: str) -> int:
        """An empty cell is 0."""
        written = self.text(name)
        try:
            result = int(float(written or 0))
        except (ValueError, OverflowError):
            self.refuse(f'{name}: expected a number, got "{written}"', "write a whole number")
            return 0
        if not 0 <= result <= _MOST:
            self.refuse(f"{name}: {written} is out of range", f"write a number from 0 to {_MOST}")
            return 0
        return result

    def refuse(self, text: str, remedy: str) -> None:
        """Reports an error; the row is skipped."""
        self.is_sound = False
        self._rows.refuse(self.line, "RC103", text, remedy)


class TraceRows:
    """Owner of the problems of one list."""

    def __init__(self, text: Text, columns: tuple[str, ...]) -> None:
        self.problems: list[Problem] = []
        self._text = text
        self._columns = columns
        self._left_out = 0

    def __iter__(self) -> Iterator[Cells]:
        """The rows in order; rows with a wrong number of values are reported and skipped."""
        reader = csv.reader(self._text.content.decode(errors="replace").splitlines())
        heading = [each.strip() for each in next(reader, [])]
        if missing := [name for name in self._columns if name not in heading]:
            text = f"the column {missing[0]} is missing"
            self.refuse(1, "RC104", text, f"the first line must name {', '.join(self._columns)}")
            return
        for cells in reader:
            if len(cells) == len(heading):
                yield Cells(self, reader.line_num, dict(zip(heading, cells, strict=True)))
            elif cells:
                text = f"expected {len(heading)} values, got {len(cells)}"
                self.refuse(reader.line_num, "RC105", text, "write one value a column")
        if self._left_out:
            text = f"{self._left_out} more problems in this file"
            self.problems.append(Problem(self._text.path, 0, 0, "RC103", text, "correct the first ones, and run again"))

    def refuse(self, line: int, code: str, text: str, remedy: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(Problem(self._text.path, line, 1, code, text, remedy))
        else:
            self._left_out += 1


# --- Names of an openb trace in Kubernetes' syntax.

_UNFIT = re.compile(r"[^a-z0-9-]+")


def named(text: str) -> str:
    """The name of an object."""
    return _UNFIT.sub("-", text.lower()).strip("-") or "unnamed"


def model_of(text: str) -> str:
    """A label value: V100M32 becomes v100m32."""
    return text.strip().lower()


# --- Reads the node list of an openb trace: sn, cpu_milli, memory_mib, gpu, model.

_PODS = "250"  # per node; the list has no limit, and its large machines run more than the kubelet's default of 110


class OpenbNode(msgspec.Struct, frozen=True):
    name: str
    capacity: tuple[tuple[str, str], ...]
    model: str  # model of its GPUs


class OpenbNodes(msgspec.Struct, frozen=True):
    """The content of a node list; unusable if there are problems."""

    nodes: tuple[OpenbNode, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_nodes(text: Text) -> OpenbNodes:
    """One node per line."""
    rows = TraceRows(text, NODE_COLUMNS)
    openb_nodes: dict[str, OpenbNode] = {}
    for row in rows:
        node = _node(row)
        if node.name in openb_nodes:
            row.refuse(f"sn: duplicate name {node.name}", "give each node a unique name")
        openb_nodes[node.name] = node
    return OpenbNodes(tuple(openb_nodes.values()), tuple(rows.problems))


def _node(row: Cells) -> OpenbNode:
    cpu, memory, gpus = (row.number(name) for name in ("cpu_milli", "memory_mib", "gpu"))
    capacity = [("cpu", f"{cpu}m"), ("memory", f"{memory}Mi"), ("pods", _PODS)]
    if gpus:
        capacity.append((names.NVIDIA_GPU, str(gpus)))
    return OpenbNode(named(row.text("sn")), tuple(sorted(capacity)), model_of(row.text("model")))


# --- Reads the pod list of an openb trace, with times in seconds.
#
# A pod that uses part of one GPU (gpu_milli below 1000) gets a whole one: Kubernetes counts whole GPUs. A pod that was
# never scheduled (empty scheduled_time) runs from its creation to its deletion; one without an end runs until the end
# of the simulation. qos only determines the priority.

_PRIORITIES = {"LS": 1_000, "Guaranteed": 1_000, "Burstable": 500, "BE": 0, "": 0}


class OpenbPods(msgspec.Struct, frozen=True):
    """Jobs by arrival time in milliseconds, in order; and notes for the reader."""

    jobs: tuple[tuple[int, Job], ...] = ()
    notices: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class _TraceRow(msgspec.Struct, frozen=True):
    """A line: creation, scheduling and deletion times."""

    job: Job
    created: int
    began: int
    ended: int | None


def read_pods(text: Text, from_ms: int = 0) -> OpenbPods:
    """Pods that run at `from_ms` of the trace arrive at once, and run for their remaining time."""
    rows = TraceRows(text, POD_COLUMNS)
    trace_rows, taken = [], set[str]()
    for row in rows:
        trace_rows.append(_read_row(row))
        if (name := trace_rows[-1].job.name) in taken:
            row.refuse(f"name: duplicate name {name}", "give each pod a unique name")
        taken.add(name)
    if rows.problems:
        return OpenbPods(problems=tuple(rows.problems))
    first = min((each.created for each in trace_rows), default=0)
    jobs = [(max(0, came), job) for came, job in _jobs(trace_rows, first * 1_000 + from_ms)]
    return OpenbPods(tuple(sorted(jobs, key=lambda each: each[0])), tuple(_notices([job for _, job in jobs])))


def _jobs(trace_rows: list[_TraceRow], begins_ms: int) -> Iterator[tuple[int, Job]]:
    for each in trace_rows:
        came_ms = each.created * 1_000 - begins_ms
        if each.ended is None:
            yield came_ms, each.job
            continue
        seconds = max(1, each.ended - each.began) + min(0, came_ms // 1_000)
        if seconds > 0:
            yield came_ms, msgspec.structs.replace(each.job, seconds=seconds)


def _read_row(row: Cells) -> _TraceRow:
    created, ended = row.number("creation_time"), row.number("deletion_time") if row.text("deletion_time") else None
    began = row.number("scheduled_time") if row.text("scheduled_time") else created
    if row.is_sound and ended is not None and ended < max(began, created):
        row.refuse("deletion_time is before the pod's creation", "leave deletion_time empty for a running pod")
    return _TraceRow(_job(row), created, max(began, created), ended)


def _job(row: Cells) -> Job:
    cpu, memory, gpus, milli = (row.number(name) for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"))
    if milli > WHOLE_GPU_MILLI or (gpus > 1 and 0 < milli < WHOLE_GPU_MILLI):
        row.refuse(f"gpu_milli: {milli} of {counted(gpus, 'GPU')}", "write 1000, or less for a part of one GPU")
    qos = row.text("qos")
    if qos not in _PRIORITIES:
        row.refuse(f'qos: unknown value "{qos}"', "write LS, BE, Burstable or Guaranteed")
    return Job(
        name=named(row.text("name")),
        seconds=0,
        gpus=gpus,
        gpu_milli=milli if gpus and milli else WHOLE_GPU_MILLI,
        requests={"cpu": f"{cpu}m", "memory": f"{memory}Mi"},
        models=tuple(sorted(model_of(each) for each in row.text("gpu_spec").split("|") if each.strip())),
        priority=_PRIORITIES.get(qos, 0),
    )


def _notices(jobs: list[Job]) -> Iterator[str]:
    of = f"of {counted(len(jobs), 'pod')} of the trace"
    if shared := sum(each.gpu_milli < WHOLE_GPU_MILLI for each in jobs):
        yield f"{shared} {of} request part of a GPU and get a whole one"
    if endless := sum(not each.seconds for each in jobs):
        yield f"{endless} {of} have no end and run until the end of the simulation"


# --- Writes the pods of a simulation as the two lists of an openb trace. Owner of the pods recorded so far.

_MIB = 2**20
_QOS = ((1_000, "LS"), (500, "Burstable"))
_FIRST_PRIORITY = "BE"


class _PodRow(msgspec.Struct):
    """Start and end of a pod."""

    name: str
    template: Object
    created: int
    ended: int | None


class TraceWriter:
    """Records each created Job and ReplicaSet; pods are listed as scheduled at once."""

    def __init__(self, stage: Stage) -> None:
        self._start: Instant = stage.now
        self._stage = stage
        self._lines: list[_PodRow] = []
        self._replicas: dict[str, list[_PodRow]] = {}  # current replicas, newest last
        stage.world.subscribe(self._note)

    def pods(self) -> str:
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
    return _written(NODE_COLUMNS, (_writing_node(each) for each in nodes))


def _written(columns: Sequence[str], rows: Iterator[tuple[object, ...]]) -> str:
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _writing_node(body: Object) -> tuple[object, ...]:
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
    """Allowed GPU models, if not all."""
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
