"""What a feature is: one folder of `plan`, and one value that tells all other parts what they need to know of it.

A feature declares; the parts read. The engine runs `plan` and keeps the section of the memory, `report` makes sentences
of `reasons`, `schema` grants `rights`, `serve` publishes `gauges`, `release` takes away what the feature wrote, and the
check of a plan judges `invariants`. `features.py` has the list.
"""

from collections.abc import Callable, Iterable, Mapping
from types import ModuleType
from typing import Any, Protocol

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.plan.decision import CodeFacts, Decision, Facts
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
    """Pure: what is remembered of the decisions that passed the guards."""

    def __call__(self, inputs: Inputs, fleet: Fleet, decisions: tuple[Decision, ...], memory: Memory) -> Memory: ...


class FeatureGauge(msgspec.Struct, frozen=True):
    """One family of /metrics. `values`: by the values of the labels, after a cycle with a plan. Label values that a
    later cycle leaves out become 0."""

    name: str
    sentence: str
    labels: tuple[str, ...]
    values: Callable[[CycleResult], Mapping[tuple[str, ...], float]]


class Feature(msgspec.Struct, frozen=True, kw_only=True):
    """All but the planner may be left out."""

    name: str  # as decisions, metrics and messages name the planner
    plan: Planner
    settle: Settle | None = None
    needs: tuple[str, ...] = ()  # fields of Observed: while one cannot be read, no plan is complete, and reports say so
    reasons: tuple[type[Facts], ...] = ()
    words: Words = {}  # how a fact of a type is written
    parts: Parts = {}  # by class of facts: what the template names beside the fields
    rights: tuple[WriteRight, ...] = ()
    pod_annotations: tuple[str, ...] = ()  # keys that the feature writes on pods
    gauges: tuple[FeatureGauge, ...] = ()
    release: tuple[Release, ...] = ()
    invariants: tuple[Invariant, ...] = ()


def declared_in(*modules: ModuleType) -> tuple[type[Facts], ...]:
    """The codes that modules declare: their classes of facts with a template."""
    return tuple(
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type)
        and issubclass(each, CodeFacts)
        and each.__module__ == module.__name__
        and each.template
    )
