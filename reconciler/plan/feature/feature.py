"""Feature: one folder of `plan`, and one value that declares it to all other parts.

The engine runs `plan` and stores the section of the memory, `report` formats `reasons`, `schema` grants `rights`,
`serve` publishes `gauges`, `release` removes what the feature wrote, and the check of a plan evaluates `invariants`.
`features.py` has the list.
"""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Protocol

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import CodeFacts, Decision, Facts
from reconciler.model.plan.feature_report import FeatureReport
from reconciler.model.plan.inputs import CycleResult, Inputs
from reconciler.model.plan.memory import Memory
from reconciler.plan.draft import Planner
from reconciler.plan.feature.invariant import Invariant
from reconciler.plan.feature.release_context import ReleaseContext
from reconciler.plan.feature.write_rights import WriteRight

Words = Mapping[type, Callable[[Any], str]]
Parts = Mapping[type[Facts], Mapping[str, Callable[[Any], str]]]
Release = Callable[[ReleaseContext], Iterable[Decision]]


class Settle(Protocol):
    """Pure: the memory after the decisions that passed the guards."""

    def __call__(self, inputs: Inputs, fleet: Fleet, decisions: tuple[Decision, ...], memory: Memory) -> Memory: ...


class CycleGauge(msgspec.Struct, frozen=True):
    """One gauge of /metrics. `values` returns the values by label values. If a later cycle has no value for some label
    values, their published value becomes 0. If `values` returns None, all published values stay.
    """

    name: str
    sentence: str
    labels: tuple[str, ...]
    values: Callable[[CycleResult], Mapping[tuple[str, ...], float] | None]


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """A feature. Only the planner is required."""

    name: str  # the planner's name in decisions, metrics and messages
    plan: Planner
    settle: Settle | None = None
    needs: tuple[str, ...] = ()  # fields of Observed: if one cannot be read, the plan is incomplete, and reports say so
    reasons: tuple[type[Facts], ...] = ()
    report: type[FeatureReport] | None = None  # what the planner reports beside its decisions
    words: Words = {}  # format of a fact, by type
    parts: Parts = {}  # by class of facts: template fields besides the struct's fields
    rights: tuple[WriteRight, ...] = ()
    pod_annotations: tuple[str, ...] = ()  # keys of annotations that the feature writes on pods
    gauges: tuple[CycleGauge, ...] = ()
    release: tuple[Release, ...] = ()
    invariants: tuple[Invariant, ...] = ()


def declared_in(*modules: ModuleType) -> tuple[type[Facts], ...]:
    """Codes declared by modules: their classes of facts with a template."""
    return tuple(
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, CodeFacts)
        and each.__module__ == module.__name__
        and each.template
    )
