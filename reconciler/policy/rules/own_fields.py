"""Rules within one object: those that its CRD holds too, and those that only we can check."""

import datetime
import zoneinfo
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import cronsim
import msgspec

from reconciler.model.budget_schedule import is_readable
from reconciler.model.policy.change_guard import Ceiling, ChangeGuard
from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.model.policy.gpu_pool import Budget, GpuPool
from reconciler.model.policy.node_provisioner import NodeProvisioner
from reconciler.model.policy.window import Window
from reconciler.model.problem import Problem
from reconciler.policy.kind import Kind
from reconciler.policy.rules.resources import ResourceProblem, resource_problems
from reconciler.policy.tree import Mark, problem
from reconciler.policy.words import did_you_mean

# Any moment will do: whether a schedule ever comes round does not depend on when one asks.
_SOME_DAY = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


class FieldProblem(NamedTuple):
    """What is wrong with one field."""

    path: str
    code: str
    sentence: str
    remedy: str
    field: str = ""  # that the sentence names


def own_problems(kind: Kind, spec: msgspec.Struct, marks: Mapping[str, Mark]) -> list[Problem]:
    """What is wrong with one object by itself. A value that stands nowhere is a default: the object is pointed at."""
    found = [*_broken_rules(kind, spec), *_never_acts(spec)]
    if isinstance(spec, DrainPolicy | NodeProvisioner):
        for number, window in enumerate(spec.windows):
            found += _window(window, f"spec.windows[{number}]")
    if isinstance(spec, GpuPool):
        for number, budget in enumerate(spec.disruption.budgets):
            found += _budget(budget, f"spec.disruption.budgets[{number}]")
    if isinstance(spec, NodeProvisioner):
        for number, schedule in enumerate(spec.schedules):
            found += _window(schedule, f"spec.schedules[{number}]")
            if schedule.min_size is None and schedule.warm_nodes is None:
                text = "a schedule without minSize and warmNodes changes nothing"
                found.append(FieldProblem(f"spec.schedules[{number}]", "RC310", text, "add minSize or warmNodes"))
    problems = [problem(marks.get(each.path) or marks[""], *each[1:]) for each in found]
    return problems + [_of_resource(each, marks) for each in resource_problems(spec)]


def _of_resource(resource_problem: ResourceProblem, marks: Mapping[str, Mark]) -> Problem:
    field_problem = problem(
        marks.get(resource_problem.path) or marks[""],
        resource_problem.code,
        resource_problem.sentence,
        resource_problem.remedy,
    )
    field = resource_problem.path if resource_problem.names_path else ""
    return msgspec.structs.replace(field_problem, severity=resource_problem.severity, field=field)


def _broken_rules(kind: Kind, spec: msgspec.Struct) -> Iterator[FieldProblem]:
    values = msgspec.structs.asdict(spec)
    for rule in kind.rules:
        if not rule.holds(spec):
            yield FieldProblem(f"spec.{rule.at}", rule.code, rule.sentence.format(**values), rule.remedy)


def _never_acts(spec: msgspec.Struct) -> Iterator[FieldProblem]:
    """Policies that can never act: somebody believes in them."""
    if getattr(spec, "suspend", False):
        return
    match spec:
        case ChangeGuard(cluster_uid=None, per_plan=plan, per_hour=hour) if plan == hour == Ceiling():
            text = "this guard has no limit and names no cluster: it never holds anything back"
            yield FieldProblem("", "RC310", text, "add a limit below perPlan or perHour, or set suspend: true")


def _budget(budget: Budget, path: str) -> Iterator[FieldProblem]:
    """With a schedule that Karpenter can't read it disrupts no node of the pool, for whatever reason."""
    if budget.schedule is not None and not is_readable(budget.schedule):
        at = f"{path}.schedule"
        remedy = 'write minute, hour, day, month and weekday, as in "0 9 * * 1-5", or @daily; in UTC'
        yield FieldProblem(at, "RC205", f'{at}: "{budget.schedule}" is no schedule', remedy, at)


def _window(window: Window, path: str) -> Iterator[FieldProblem]:
    try:
        next(cronsim.CronSim(window.schedule, _SOME_DAY))
    except cronsim.CronSimError as error:
        at = f"{path}.schedule"
        text = f'{at}: "{window.schedule}" is no schedule: {str(error).lower()}'
        yield FieldProblem(at, "RC205", text, 'write minute, hour, day, month and weekday, as in "0 20 * * *"', at)
    try:
        zoneinfo.ZoneInfo(window.time_zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        close = did_you_mean(window.time_zone, zoneinfo.available_timezones())
        at = f"{path}.timeZone"
        text = f'{at}: there is no time zone "{window.time_zone}"{close}'
        yield FieldProblem(at, "RC206", text, "" if close else "write a zone such as Europe/Berlin, or UTC", at)
    if not window.duration.milliseconds:
        yield FieldProblem(
            f"{path}.duration", "RC310", "a window of no length never opens", "give it a length, such as 10h"
        )
