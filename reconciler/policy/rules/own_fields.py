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


class Told(NamedTuple):
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
                told = "a schedule without minSize and warmNodes changes nothing"
                found.append(Told(f"spec.schedules[{number}]", "RC310", told, "add minSize or warmNodes"))
    problems = [problem(marks.get(each.path) or marks[""], *each[1:]) for each in found]
    return problems + [_of_resource(each, marks) for each in resource_problems(spec)]


def _of_resource(found: ResourceProblem, marks: Mapping[str, Mark]) -> Problem:
    told = problem(marks.get(found.path) or marks[""], found.code, found.sentence, found.remedy)
    field = found.path if found.names_path else ""
    return msgspec.structs.replace(told, severity=found.severity, field=field)


def _broken_rules(kind: Kind, spec: msgspec.Struct) -> Iterator[Told]:
    values = msgspec.structs.asdict(spec)
    for rule in kind.rules:
        if not rule.holds(spec):
            yield Told(f"spec.{rule.at}", rule.code, rule.sentence.format(**values), rule.remedy)


def _never_acts(spec: msgspec.Struct) -> Iterator[Told]:
    """Policies that can never act: somebody believes in them."""
    if getattr(spec, "suspend", False):
        return
    match spec:
        case ChangeGuard(cluster_uid=None, per_plan=plan, per_hour=hour) if plan == hour == Ceiling():
            told = "this guard has no limit and names no cluster: it never holds anything back"
            yield Told("", "RC310", told, "add a limit below perPlan or perHour, or set suspend: true")


def _budget(budget: Budget, path: str) -> Iterator[Told]:
    """With a schedule that Karpenter can't read it disrupts no node of the pool, for whatever reason."""
    if budget.schedule is not None and not is_readable(budget.schedule):
        at = f"{path}.schedule"
        remedy = 'write minute, hour, day, month and weekday, as in "0 9 * * 1-5", or @daily; in UTC'
        yield Told(at, "RC205", f'{at}: "{budget.schedule}" is no schedule', remedy, at)


def _window(window: Window, path: str) -> Iterator[Told]:
    try:
        next(cronsim.CronSim(window.schedule, _SOME_DAY))
    except cronsim.CronSimError as wrong:
        at = f"{path}.schedule"
        told = f'{at}: "{window.schedule}" is no schedule: {str(wrong).lower()}'
        yield Told(at, "RC205", told, 'write minute, hour, day, month and weekday, as in "0 20 * * *"', at)
    try:
        zoneinfo.ZoneInfo(window.time_zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        close = did_you_mean(window.time_zone, zoneinfo.available_timezones())
        at = f"{path}.timeZone"
        told = f'{at}: there is no time zone "{window.time_zone}"{close}'
        yield Told(at, "RC206", told, "" if close else "write a zone such as Europe/Berlin, or UTC", at)
    if not window.duration.milliseconds:
        yield Told(f"{path}.duration", "RC310", "a window of no length never opens", "give it a length, such as 10h")
