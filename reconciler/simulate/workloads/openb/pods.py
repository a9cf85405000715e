"""Reads the pod list of an openb trace, whose times are seconds.

A pod that asks for part of one GPU (gpu_milli below 1000) is given a whole one here: Kubernetes counts GPUs, and knows
no parts of them. One that never got a node in its time (scheduled_time is empty) counts as running from its creation to
its deletion; one without an end runs until the simulation is over. Of qos, only who goes first is taken.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model.bundle import Text
from reconciler.model.problem import Problem
from reconciler.report.wording import counted
from reconciler.simulate.workloads.openb.columns import POD_COLUMNS, WHOLE_GPU_MILLI, Cells, TraceRows
from reconciler.simulate.workloads.openb.naming import model_of, named
from reconciler.simulate.workloads.pods import Job

_PRIORITIES = {"LS": 1_000, "Guaranteed": 1_000, "Burstable": 500, "BE": 0, "": 0}


class OpenbPods(msgspec.Struct, frozen=True):
    """Jobs by the milliseconds after which they come, in order; and what a reader must know of them."""

    jobs: tuple[tuple[int, Job], ...] = ()
    notices: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class _TraceRow(msgspec.Struct, frozen=True):
    """A line: when its pod came, when it got its node, and when it went, where it did."""

    job: Job
    created: int
    began: int
    ended: int | None


def read_pods(text: Text, from_ms: int = 0) -> OpenbPods:
    """What ran at `from_ms` of the trace comes at once, and runs as long as it still did."""
    rows = TraceRows(text, POD_COLUMNS)
    trace_rows, taken = [], set[str]()
    for row in rows:
        trace_rows.append(_read_row(row))
        if (name := trace_rows[-1].job.name) in taken:
            row.refuse(f"name: there is a {name} already", "give each pod a name of its own")
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
        row.refuse("deletion_time is before the pod came", "leave it empty where the pod runs on")
    return _TraceRow(_job(row), created, max(began, created), ended)


def _job(row: Cells) -> Job:
    cpu, memory, gpus, milli = (row.number(name) for name in ("cpu_milli", "memory_mib", "num_gpu", "gpu_milli"))
    if milli > WHOLE_GPU_MILLI or (gpus > 1 and 0 < milli < WHOLE_GPU_MILLI):
        row.refuse(f"gpu_milli: {milli} of {counted(gpus, 'GPU')}", "write 1000, or less where it is part of one GPU")
    qos = row.text("qos")
    if qos not in _PRIORITIES:
        row.refuse(f'qos: there is no "{qos}"', "write LS, BE, Burstable or Guaranteed")
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
        yield f"{shared} {of} ask for part of a GPU: each is given a whole one"
    if endless := sum(not each.seconds for each in jobs):
        yield f"{endless} {of} have no end: they run until the simulation is over"
