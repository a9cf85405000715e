"""All kinds, ordered so that a kind follows those it refers to: names, columns and rules of each kind."""

import datetime
import zoneinfo
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeVar

import cronsim
import msgspec

from reconciler.model import names
from reconciler.model.parsers import is_readable
from reconciler.model.policy.gpu import (
    Budget,
    GpuClaim,
    GpuClaimReport,
    GpuNodeReport,
    GpuNodeStatus,
    GpuPool,
    PoolTaint,
)
from reconciler.model.policy.guards import Ceiling, ChangeApproval, ChangeGuard, SizeSchedule, Window
from reconciler.model.policy.scaling import (
    DrainPolicy,
    NodeProvisioner,
    NodeProvisionerReport,
    PressurePolicy,
)
from reconciler.model.problem import Problem
from reconciler.policy.rules.hardware import FieldProblem, resource_problems
from reconciler.policy.shape import AGE, OF_POLICIES, READY, Kind, PrinterColumn, ValidationRule
from reconciler.policy.tree import Mark, problem
from reconciler.policy.unreadable import as_far_as_readable, checked
from reconciler.policy.words import did_you_mean

T = TypeVar("T")

CHANGE_APPROVAL = Kind(
    spec=ChangeApproval,
    plural="changeapprovals",
    short="capproval",
    columns=(
        PrinterColumn("Guard", "string", ".spec.guardName"),
        PrinterColumn("Prune", "string", ".spec.prune"),
        PrinterColumn("Revision", "string", ".spec.revision"),
        PrinterColumn("Expires", "string", ".spec.expires"),
        AGE,
    ),
    is_policy=False,
)

CHANGE_GUARD = Kind(
    spec=ChangeGuard,
    plural="changeguards",
    short="cguard",
    columns=(
        PrinterColumn("Pools", "string", ".spec.poolNames"),
        PrinterColumn("Removed", "integer", ".spec.perPlan.maxRemovedNodes"),
        PrinterColumn("Disrupted", "integer", ".spec.perPlan.maxDisruptedGPUs"),
        *OF_POLICIES,
    ),
)

DRAIN_POLICY = Kind(
    spec=DrainPolicy,
    plural="drainpolicies",
    short="drainp",
    columns=(
        PrinterColumn("Pools", "string", ".spec.poolNames"),
        PrinterColumn("Threshold", "integer", ".spec.utilizationThresholdPercent"),
        PrinterColumn("Drains", "integer", ".spec.maxDrainParallelism"),
        *OF_POLICIES,
    ),
    rules=(
        ValidationRule(
            code="RC203",
            at="maxDrainParallelism",
            sentence="maxDrainParallelism {max_drain_parallelism} is above maxScaleDownParallelism "
            "{max_scale_down_parallelism}, which also counts drained nodes",
            remedy="lower maxDrainParallelism, or raise maxScaleDownParallelism",
            cel="self.maxDrainParallelism <= self.maxScaleDownParallelism",
            holds=lambda spec: spec.max_drain_parallelism <= spec.max_scale_down_parallelism,
        ),
    ),
)

GPU_CLAIM = Kind(
    spec=GpuClaim,
    plural="gpuclaims",
    short="gclaim",
    columns=(
        PrinterColumn("GPUs", "integer", ".spec.devices.count"),
        PrinterColumn("Policy", "string", ".spec.devices.policy"),
        PrinterColumn("Model", "string", ".spec.devices.model"),
        PrinterColumn("Pool", "string", ".spec.poolName"),
        PrinterColumn("Gang", "string", ".spec.gangRef"),
        PrinterColumn("Bound", "string", ".status.summary"),
        READY,
        AGE,
    ),
    namespaced=True,
    is_policy=False,
    report=GpuClaimReport,
)

GPU_NODE_STATUS = Kind(
    spec=GpuNodeStatus,
    plural="gpunodestatuses",
    short="gnode",
    columns=(READY, AGE),
    is_policy=False,
    report=GpuNodeReport,
)

GPU_POOL = Kind(
    spec=GpuPool,
    plural="gpupools",
    short="gpool",
    longest_name=63,  # the value of the labels gpu.scheduling/pool and karpenter.sh/nodepool
    columns=(
        PrinterColumn("Model", "string", ".spec.devices.model"),
        PrinterColumn("GPUs", "integer", ".spec.devices.count"),
        PrinterColumn("Mode", "string", ".spec.mode"),
        *OF_POLICIES,
    ),
    rules=(
        ValidationRule(
            code="RC108",
            at="capacityTypes",
            sentence="capacityTypes has the same item twice",
            remedy="remove one of them",
            cel="self.capacityTypes.all(one, self.capacityTypes.exists_one(other, other == one))",
            holds=lambda spec: len(set(spec.capacity_types)) == len(spec.capacity_types),
        ),
        ValidationRule(
            code="RC207",
            at="disruption.budgets",
            sentence="a budget must set both schedule and duration, or neither",
            remedy="add the missing field, or remove the other one",
            cel="self.disruption.budgets.all(b, has(b.schedule) == has(b.duration))",
            holds=lambda spec: all(
                (each.schedule is None) == (each.duration is None) for each in spec.disruption.budgets
            ),
        ),
    ),
)

NODE_PROVISIONER = Kind(
    spec=NodeProvisioner,
    plural="nodeprovisioners",
    short="nprov",
    longest_name=63,  # the value of the label gpu.scheduling/provisioner
    report=NodeProvisionerReport,
    columns=(
        PrinterColumn("Pool", "string", ".spec.poolName"),
        PrinterColumn("Min", "integer", ".spec.minSize"),
        PrinterColumn("Max", "integer", ".spec.maxSize"),
        PrinterColumn("Utilization", "integer", ".spec.minGPUUtilizationPercent"),
        PrinterColumn("Size", "integer", ".status.currentSize"),
        PrinterColumn("Target", "integer", ".status.targetSize"),
        *OF_POLICIES,
    ),
    rules=(
        ValidationRule(
            code="RC201",
            at="minSize",
            sentence="minSize {min_size} is above maxSize {max_size}",
            remedy="lower minSize, or raise maxSize",
            cel="self.minSize <= self.maxSize",
            holds=lambda spec: spec.min_size <= spec.max_size,
        ),
        ValidationRule(
            code="RC202",
            at="minUnutilizedGPUNodes",
            sentence="minUnutilizedGPUNodes {min_unutilized_gpu_nodes} is above maxSize {max_size}",
            remedy="lower minUnutilizedGPUNodes, or raise maxSize",
            cel="self.minUnutilizedGPUNodes <= self.maxSize",
            holds=lambda spec: spec.min_unutilized_gpu_nodes <= spec.max_size,
        ),
        ValidationRule(
            code="RC202",
            at="warmNodes",
            sentence="warmNodes {warm_nodes} is above maxSize {max_size}",
            remedy="lower warmNodes, or raise maxSize",
            cel="self.warmNodes <= self.maxSize",
            holds=lambda spec: spec.warm_nodes <= spec.max_size,
        ),
        ValidationRule(
            code="RC201",
            at="schedules",
            sentence="a schedule requires more nodes than maxSize {max_size}",
            remedy="lower its minSize and warmNodes, or raise maxSize",
            cel="!has(self.schedules) || self.schedules.all(each, (!has(each.minSize) || each.minSize <= self.maxSize)"
            " && (!has(each.warmNodes) || each.warmNodes <= self.maxSize))",
            holds=lambda spec: all(
                max(each.min_size or 0, each.warm_nodes or 0) <= spec.max_size for each in spec.schedules
            ),
        ),
    ),
)

PRESSURE_POLICY = Kind(
    spec=PressurePolicy,
    plural="pressurepolicies",
    short="pressp",
    columns=(
        PrinterColumn("Pools", "string", ".spec.poolNames"),
        PrinterColumn("Migration", "string", ".spec.migration"),
        *OF_POLICIES,
    ),
    rules=(
        ValidationRule(
            code="RC204",
            at="computeUnit",
            sentence="computeUnit and resources name different resources",
            remedy="list each resource in both resources and computeUnit",
            cel="self.resources.all(r, r in self.computeUnit) && self.computeUnit.all(r, r in self.resources)",
            holds=lambda spec: set(spec.resources) == set(spec.compute_unit),
        ),
    ),
)

KINDS: tuple[Kind, ...] = (
    GPU_POOL,
    NODE_PROVISIONER,
    DRAIN_POLICY,
    PRESSURE_POLICY,
    CHANGE_GUARD,
    CHANGE_APPROVAL,
    GPU_CLAIM,
    GPU_NODE_STATUS,
)
POLICY_KINDS = tuple(kind for kind in KINDS if kind.is_policy)


def kind_named(name: str) -> Kind | None:
    return next((kind for kind in KINDS if kind.name == name), None)


# --- Rules within one object: the rules of its CRD, and rules that only reconciler can check.

# An arbitrary time: whether a schedule ever fires does not depend on the start.
_SOME_DAY = datetime.datetime(2000, 1, 1, tzinfo=datetime.UTC)


def own_problems(kind: Kind, spec: msgspec.Struct, marks: Mapping[str, Mark]) -> list[Problem]:
    """Problems of a single object. A value without a position is a default: the problem then points to the object."""
    groups = (
        _broken_rules(kind, spec),
        _of_windows(spec),
        _of_pool(spec),
        [_never_acts(spec)],
        [resource_problems(spec)],
    )
    return [_located(each, marks) for group in groups for each in checked(group)]


_Rules = Iterator[Iterator[FieldProblem]]


def _of_windows(spec: msgspec.Struct) -> _Rules:
    if isinstance(spec, DrainPolicy | NodeProvisioner):
        yield from _each(_window, spec.windows, "spec.windows")
    if isinstance(spec, NodeProvisioner):
        yield from _each(_window, spec.schedules, "spec.schedules")
        yield from _each(_without_effect, spec.schedules, "spec.schedules")


def _of_pool(spec: msgspec.Struct) -> _Rules:
    if isinstance(spec, GpuPool):
        yield _reserved_taints("spec.taints", spec.taints)
        yield _reserved_taints("spec.startupTaints", spec.startup_taints)
        yield from _each(_budget, spec.disruption.budgets, "spec.disruption.budgets")


def _each(rule: Callable[[T, str], Iterator[FieldProblem]], items: Sequence[T], path: str) -> _Rules:
    """The rule for each item of a list, which may be unreadable."""
    return (rule(item, f"{path}[{number}]") for number, item in enumerate(as_far_as_readable(items)))


def _located(each: FieldProblem, marks: Mapping[str, Mark]) -> Problem:
    field = each.path if each.names_path else ""
    located = problem(marks.get(each.path) or marks[""], each.code, each.sentence, each.remedy, field)
    return msgspec.structs.replace(located, severity=each.severity)


def _broken_rules(kind: Kind, spec: msgspec.Struct) -> _Rules:
    return (_broken(rule, spec) for rule in kind.rules)


def _broken(rule: ValidationRule, spec: msgspec.Struct) -> Iterator[FieldProblem]:
    if not rule.holds(spec):
        sentence = rule.sentence.format(**msgspec.structs.asdict(spec))
        yield FieldProblem(f"spec.{rule.at}", rule.code, sentence, rule.remedy)


def _never_acts(spec: msgspec.Struct) -> Iterator[FieldProblem]:
    """Policies that can never act."""
    if getattr(spec, "suspend", False):
        return
    match spec:
        case ChangeGuard(cluster_uid=None, per_plan=plan, per_hour=hour) if plan == hour == Ceiling():
            text = "a guard with neither limits nor clusterUID has no effect"
            yield FieldProblem(
                "", "RC310", text, "add a limit below perPlan or perHour, add clusterUID, or set suspend: true"
            )


def _reserved_taints(path: str, taints: Sequence[PoolTaint]) -> Iterator[FieldProblem]:
    """Taints that show the state of a node: a node that always has one of them would never be used."""
    for number, taint in enumerate(taints):
        owner = names.TAINT_OWNERS.get(taint.key)
        if owner and (path != "spec.startupTaints" or taint.key not in names.STARTUP_TAINTS):
            text = f"{owner} itself sets the taint {taint.key}, and a pool may not"
            yield FieldProblem(f"{path}[{number}].key", "RC320", text, "remove the taint, or use another key")


def _budget(budget: Budget, path: str) -> Iterator[FieldProblem]:
    """Karpenter cannot parse an invalid schedule and then disrupts no node of the pool at all."""
    if budget.schedule is not None and not is_readable(budget.schedule):
        at = f"{path}.schedule"
        text = f'{at}: "{budget.schedule}" is not a valid schedule: {_wrong_field(budget.schedule, is_readable)}'
        remedy = 'write minute, hour, day, month and weekday, as in "0 9 * * 1-5", or @daily; in UTC'
        yield FieldProblem(at, "RC205", text, remedy, names_path=True)


# The fields of a schedule, in their order, and their values.
_FIELDS = (
    ("minute", "minutes are from 0 to 59"),
    ("hour", "hours are from 0 to 23"),
    ("day", "days are from 1 to 31"),
    ("month", "months are from 1 to 12"),
    ("weekday", "weekdays are from 0 (Sunday) to 6"),
)


def _wrong_field(schedule: str, is_valid: Callable[[str], bool]) -> str:
    """What is wrong with an invalid schedule."""
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        return "it must have five fields"
    for number, (name, values) in enumerate(_FIELDS):
        alone = " ".join(field if at == number else "*" for at, field in enumerate(fields))
        if not is_valid(alone):
            return f'the {name} "{fields[number]}" is not valid ({values})'
    return f'the month "{fields[3]}" has no day "{fields[2]}"'


def _fires(schedule: str) -> bool:
    try:
        next(cronsim.CronSim(schedule, _SOME_DAY))
    except (cronsim.CronSimError, StopIteration):
        return False
    return True


def _without_effect(schedule: SizeSchedule, path: str) -> Iterator[FieldProblem]:
    if schedule.min_size is None and schedule.warm_nodes is None:
        text = "a schedule with neither minSize nor warmNodes has no effect"
        yield FieldProblem(path, "RC310", text, "add minSize or warmNodes")


def _window(window: Window, path: str) -> Iterator[FieldProblem]:
    if not _fires(window.schedule):
        at = f"{path}.schedule"
        text = f'{at}: "{window.schedule}" is not a valid schedule: {_wrong_field(window.schedule, _fires)}'
        remedy = 'write minute, hour, day, month and weekday, as in "0 20 * * *"'
        yield FieldProblem(at, "RC205", text, remedy, names_path=True)
    try:
        zoneinfo.ZoneInfo(window.time_zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError):
        close = did_you_mean(window.time_zone, zoneinfo.available_timezones())
        at = f"{path}.timeZone"
        text = f'{at}: there is no time zone "{window.time_zone}"{close}'
        remedy = "" if close else "write a zone such as Europe/Berlin, or UTC"
        yield FieldProblem(at, "RC206", text, remedy, names_path=True)
    if not window.duration.milliseconds:
        yield FieldProblem(
            f"{path}.duration", "RC310", "a window with duration 0s never opens", "set a duration, such as 10h"
        )
