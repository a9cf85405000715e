"""Rules between the fields of a scenario."""

from collections.abc import Iterator, Mapping

import msgspec

from reconciler.fleet.devices.board import MOST_DEVICES
from reconciler.model.instant import LATEST, moment
from reconciler.model.problem import Problem
from reconciler.model.quantity import Duration, Quantity
from reconciler.policy.rules.hardware import OF_NODES, invalid_amounts, unknown_names
from reconciler.policy.tree import Mark, problem
from reconciler.policy.words import choice, did_you_mean
from reconciler.simulate.scenario.cluster import JOBS, WAYS, NodeBoard, NodeSet, ScenarioWorkload
from reconciler.simulate.scenario.spec import POOLED, Expectation, Scenario, ScenarioEdit, ScenarioFault, why_unreadable

_SHORTEST_EVERY_MS = 1_000
_LACKS = ("StockOut", "NotOffered")
_OF_NODES = ("NodeDeath", "NodeNotReady", "KubeletDown")
_ONLY_OF = {"pool": _OF_NODES, "instance_type": _LACKS, "zone": _LACKS, "capacity_type": _LACKS}
_NEVER = "the scenario ends before this time"

ScenarioProblem = tuple[str, str, str, str]  # path, code, sentence, remedy


def rule_problems(scenario: Scenario, marks: Mapping[str, Mark]) -> list[Problem]:
    """The violations. For a default value without a position, the position of its parent is used."""
    return [problem(mark_at(marks, path), *lines) for path, *lines in _rule_problems(scenario)]


def mark_at(marks: Mapping[str, Mark], path: str) -> Mark:
    """The position of a path, or of its closest parent."""
    while path and path not in marks:
        path = path[: max(path.rfind("."), path.rfind("["), 0)]
    return marks[path]


def _rule_problems(scenario: Scenario) -> Iterator[ScenarioProblem]:
    yield from _length(scenario)
    yield from _revisions(scenario)
    for number, group in enumerate(scenario.cluster.nodes):
        yield from _nodes(group, f"spec.cluster.nodes[{number}]")
    for number, text in enumerate(scenario.cluster.objects):
        if sentence := why_unreadable(text):
            remedy = "write one object with apiVersion, kind and name"
            yield f"spec.cluster.objects[{number}]", "RC105", sentence, remedy
    for number, board in enumerate(scenario.cluster.boards):
        yield from _board(board, f"spec.cluster.boards[{number}]")
    for number, machine in enumerate(scenario.market.machines):
        yield from _resources(f"spec.market.machines[{number}].capacity", machine.capacity)
    for number, workload in enumerate(scenario.workloads):
        yield from _workload(workload, f"spec.workloads[{number}]")
    for number, fault in enumerate(scenario.faults):
        yield from _fault(fault, f"spec.faults[{number}]", scenario.duration.milliseconds)
    for number, edit in enumerate(scenario.edits):
        yield from _edit(edit, f"spec.edits[{number}]", scenario)
    for number, expectation in enumerate(scenario.expect):
        yield from _expectation(expectation, f"spec.expect[{number}]", scenario.duration.milliseconds)


def _length(scenario: Scenario) -> Iterator[ScenarioProblem]:
    if not scenario.duration.milliseconds:
        yield "spec.duration", "RC105", "a scenario must have a duration", "set a duration, such as 24h"
    start = moment(scenario.start)
    if start is None:
        text = f'"{scenario.start}" is not a valid time'
        yield "spec.start", "RC105", text, "set a time such as 2026-11-16T08:00:00Z"
    elif start + scenario.duration.milliseconds > LATEST:
        text = "the scenario ends after the year 9999"
        yield "spec.start", "RC105", text, "set an earlier start or a shorter duration"


def _revisions(scenario: Scenario) -> Iterator[ScenarioProblem]:
    before = -1
    for number, revision in enumerate(scenario.policies):
        path = f"spec.policies[{number}]"
        if bool(revision.folder) == bool(revision.files):
            yield path, "RC104", f"{path} has neither or both of folder and files", "set one of the two"
        at = revision.at.milliseconds
        if number == 0 and at:
            yield f"{path}.at", "RC105", "the first policies are in force from the start", "remove `at`"
        elif at <= before:
            yield f"{path}.at", "RC105", f"{path}.at is not after the previous revision", "sort the revisions by time"
        before = at


def _nodes(group: NodeSet, path: str) -> Iterator[ScenarioProblem]:
    if group.pool and group.taints:
        yield f"{path}.taints", "RC310", "nodes of a pool have the pool's taints", "remove `taints`, or `pool`"
    if not group.pool and not group.name:
        yield path, "RC104", f"{path} has neither a pool nor a name", "add pool or name"
    if not group.pool and not group.capacity:
        yield path, "RC104", f"{path}.capacity is missing: no pool declares the capacity", "add capacity"
    yield from _resources(f"{path}.capacity", group.capacity)


def _board(board: NodeBoard, path: str) -> Iterator[ScenarioProblem]:
    if (gpus := sum(board.islands)) > MOST_DEVICES:
        yield f"{path}.islands", "RC105", f"the islands have {gpus} GPUs", f"write at most {MOST_DEVICES} GPUs"
    elif absent := [each for each in board.unhealthy if each >= gpus]:
        text = f"there is no GPU {absent[0]}: the islands have {gpus} GPUs"
        yield f"{path}.unhealthy", "RC310", text, f"name GPUs from 0 to {gpus - 1}"


def _resources(path: str, resources: Mapping[str, Quantity], *, may_be_none: bool = False) -> Iterator[ScenarioProblem]:
    """As in policies, but names that are only probably misspelled are accepted."""
    amounts = invalid_amounts(path, resources, may_be_none=may_be_none)
    for each in (*unknown_names(path, resources, OF_NODES), *amounts):
        if each.severity == "error":
            yield each.path, each.code, each.sentence, each.remedy


def _workload(workload: ScenarioWorkload, path: str) -> Iterator[ScenarioProblem]:
    yield from _resources(f"{path}.resources", workload.resources, may_be_none=True)
    ways = [name for name in WAYS if getattr(workload, name) is not None]
    if len(ways) != 1:
        text = f"{path} has {len(ways)} arrival patterns" if ways else f"{path} has no arrival pattern"
        yield path, "RC104", text, f"set exactly one of {choice(WAYS)}"
        return
    if ways[0] in JOBS and workload.runs_for is None:
        yield path, "RC104", f"{path}.runsFor is missing: jobs must end", "add runsFor, such as 2h"
    if workload.mix and not any(msgspec.structs.astuple(workload.mix.shares)):
        yield f"{path}.mix.shares", "RC105", "all shares are 0", "set a share above 0"
    yield from _every(getattr(workload, ways[0]), f"{path}.{ways[0]}")
    if workload.inference and workload.inference.least > workload.inference.most:
        yield f"{path}.inference.least", "RC201", "least is above most", "swap the two values"
    if workload.ends is not None and workload.ends <= workload.begins:
        yield f"{path}.ends", "RC105", f"{path} ends before it begins", "write a later time"


def _every(repeated: object, path: str) -> Iterator[ScenarioProblem]:
    every: Duration | None = getattr(repeated, "every", None)
    if every is not None and every.milliseconds < _SHORTEST_EVERY_MS:
        yield f"{path}.every", "RC105", "the interval is below one second", "write 1s or more"


def _times(happening: ScenarioFault | ScenarioEdit, path: str, duration_ms: int) -> Iterator[ScenarioProblem]:
    if happening.at.milliseconds >= duration_ms:
        yield f"{path}.at", "RC310", _NEVER, "write an earlier time"
    yield from _every(happening, path)


def _fault(fault: ScenarioFault, path: str, duration_ms: int) -> Iterator[ScenarioProblem]:
    yield from _times(fault, path, duration_ms)
    for field, kinds in _ONLY_OF.items():
        if getattr(fault, field) and fault.fault not in kinds:
            named = {"instance_type": "instanceType", "capacity_type": "capacityType"}.get(field, field)
            yield f"{path}.{named}", "RC310", f"a {fault.fault} has no {named}", f"remove `{named}`"
    if fault.fault == "ControllerAbsent" and fault.every and not fault.lasts:
        yield path, "RC104", "a controller that never restarts cannot stop again", "add lasts"


def _edit(edit: ScenarioEdit, path: str, scenario: Scenario) -> Iterator[ScenarioProblem]:
    yield from _times(edit, path, scenario.duration.milliseconds)
    sets = bool(edit.labels or edit.annotations or edit.taints or edit.lifts) or edit.unschedulable is not None
    if sum((sets, edit.deleted, edit.max_unavailable is not None)) != 1:
        text = f"{path} must either set fields, or set deleted, or set maxUnavailable"
        yield path, "RC104", text, "write, for example, unschedulable: true"
    if edit.deleted and edit.lasts is not None:
        yield f"{path}.lasts", "RC310", "a deleted object is not restored", "remove `lasts`"
    if edit.lifts and (edit.kind != "Pod" or edit.lasts is not None):
        text = "only pods have gates, and a removed gate cannot be restored"
        yield f"{path}.lifts", "RC310", text, "edit a Pod, and remove `lasts`"
    if edit.kind != "Node" and (edit.taints or edit.unschedulable is not None):
        yield path, "RC310", f"a {edit.kind} has no taints and cannot be cordoned", "edit a Node"
    if edit.kind == "PodDisruptionBudget":
        workloads = tuple(each.name for each in scenario.workloads)
        if edit.name not in workloads:
            text = f'there is no workload "{edit.name}" for the budget{did_you_mean(edit.name, workloads)}'
            yield f"{path}.name", "RC301", text, f"name {choice(workloads)}" if workloads else "add the workload"
    elif edit.max_unavailable is not None:
        yield f"{path}.maxUnavailable", "RC310", f"a {edit.kind} has no such field", "edit a PodDisruptionBudget"


def _expectation(expectation: Expectation, path: str, duration_ms: int) -> Iterator[ScenarioProblem]:
    if expectation.at_least is None and expectation.at_most is None:
        yield path, "RC104", f"{path} has no bounds", "add atLeast or atMost"
    if (expectation.at_least or 0) > (10**15 if expectation.at_most is None else expectation.at_most):
        yield f"{path}.atLeast", "RC201", "atLeast is above atMost", "swap the two values"
    if expectation.at is not None and expectation.at.milliseconds > duration_ms:
        yield f"{path}.at", "RC310", "the scenario ends before this time", "write an earlier time, or remove `at`"
    if expectation.pool and expectation.measure not in POOLED:
        text = f"{expectation.measure} is only available for all pools together"
        yield f"{path}.pool", "RC310", text, "remove `pool`"
