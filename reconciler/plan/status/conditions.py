"""Status of a policy, by an ordered table of rules: the first match wins.

A policy is Ready when nothing is left to do for it, Reconciling while that is in progress, and Stalled while it
waits for a person. Of refused policies only those with problems are Stalled; the others wait, so that readers of
statuses, such as Flux, name the cause. A pool is Reconciling while its rendered objects in the cluster differ from
the desired ones. Changes of size are normal and do not affect the status of a pool or its provisioner.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, get_args

import msgspec

from reconciler.model import names
from reconciler.model.cluster.bundle_objects import BundleObjects, bundle_digest, by_bundle
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.desired import Declared
from reconciler.model.plan.decision import Decision, Hold
from reconciler.model.plan.evaluation import LimitKind, ScalingReport, SizeEvaluation
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.gpu import GpuPool
from reconciler.model.problem import PolicyRef, Problem
from reconciler.plan.capacity.words import short_of
from reconciler.plan.status.reasons import (
    NOT_WHOLE,
    BundleIncomplete,
    BundleReceived,
    Followed,
    Invalid,
    MachinesRefused,
    NothingRefused,
    NotInBundle,
    NotLimited,
    Observed,
    PoliciesRefused,
    Suspended,
    WaitingForBundle,
    Why,
)

# --- Input of statuses, besides a plan and its inputs.


class StatusContext(msgspec.Struct, frozen=True):
    """`problems` are those of the policies read last. While there are any, the last good policies stay in force."""

    problems: tuple[Problem, ...] = ()
    are_resources: bool = False  # the policies are custom resources, which have their own statuses
    namespace: str = names.OWN_NAMESPACE  # namespace of the status ConfigMap otherwise
    before: str = ""  # the manifest of that ConfigMap as last written


# Written by people; claims and reports of agents have other statuses.
POLICIES = frozenset({"GpuPool", "NodeProvisioner", "DrainPolicy", "PressurePolicy", "ChangeGuard"})

_BEFORE_JUDGED = frozenset({BundleIncomplete.__name__, BundleReceived.__name__})

Key = tuple[str, str]  # kind and name


class PolicyCondition(msgspec.Struct, frozen=True):
    """A condition of a policy, true or false."""

    kind: str
    holds: bool
    why: Why


class ObjectCondition(msgspec.Struct, frozen=True):
    """Why a policy is ready, reconciling or stalled."""

    why: Why
    is_ready: bool = False
    is_reconciling: bool = False
    is_stalled: bool = False
    problems: tuple[Problem, ...] = ()
    further: tuple[PolicyCondition, ...] = ()  # conditions specific to the kind
    size: SizeEvaluation | None = None  # of a NodeProvisioner


def conditions_of(condition: ObjectCondition) -> tuple[PolicyCondition, ...]:
    """The three conditions of every kind, and those of its own kind."""
    kinds = {"Ready": condition.is_ready, "Reconciling": condition.is_reconciling, "Stalled": condition.is_stalled}
    return (*(PolicyCondition(kind, holds, condition.why) for kind, holds in kinds.items()), *condition.further)


class Scenery(msgspec.Struct, frozen=True, dict=True):
    """Input of the rules, indexed once for all policies."""

    inputs: Inputs
    plan: Plan | None  # None: no inputs to plan from
    context: StatusContext

    @cached_property
    def declared(self) -> dict[Key, Declared[Any]]:
        return {(each.kind, each.name): each for each in self.inputs.desired.declared}

    @cached_property
    def decisions(self) -> dict[str, list[Decision]]:
        """By pool, decisions about its rendered objects."""
        wished = {(each.kind, each.namespace, each.name) for each in self.inputs.desired.manifests}
        decisions: dict[str, list[Decision]] = {}
        for each in self.plan.decisions if self.plan else ():
            subject = each.subject
            if (subject.kind, subject.namespace, subject.name) in wished:
                decisions.setdefault(each.pool, []).append(each)
        return decisions

    @cached_property
    def sizes(self) -> dict[str, SizeEvaluation]:
        """By NodeProvisioner."""
        return {each.provisioner: each for each in (self.plan.report(ScalingReport).sizes if self.plan else ())}

    @cached_property
    def resources(self) -> dict[Key, Unstructured]:
        there = self.inputs.observed.policies if self.context.are_resources else ()
        policies = (each for each in there if each.kind in POLICIES and not each.metadata.deletion_timestamp)
        return {(each.kind, each.name): each for each in policies}

    @cached_property
    def bundles(self) -> dict[str, BundleObjects]:
        """By digest."""
        return {each.digest: each for each in by_bundle(self.resources.values())[1]}

    @cached_property
    def culprits(self) -> tuple[Key, ...]:
        """Policies with problems, in order."""
        keys = {*self.resources} if self.context.are_resources else {*self.declared}
        return tuple(key for key in sorted(keys) if self.problems_of(key)) if self.context.problems else ()

    def problems_of(self, key: Key) -> tuple[Problem, ...]:
        """Problems of the policy, and of its template with this policy."""
        title, subject = "/".join(key), PolicyRef(*key)
        return tuple(each for each in self.context.problems if each.file == title or each.subject == subject)


class PolicyStatusContext(msgspec.Struct, frozen=True):
    """Input of the rules for one policy."""

    scenery: Scenery
    kind: str
    name: str

    @property
    def declared(self) -> Declared[Any] | None:
        return self.scenery.declared.get((self.kind, self.name))

    @property
    def resource(self) -> Unstructured | None:
        return self.scenery.resources.get((self.kind, self.name))

    @property
    def bundle(self) -> BundleObjects | None:
        digest = bundle_digest(self.resource) if self.resource is not None else None
        return self.scenery.bundles.get(digest) if digest is not None else None

    @property
    def is_left_over(self) -> bool:
        """Whether its bundle was checked before, by its status: no more objects of this bundle will arrive."""
        bundle, status = self.bundle, self.resource.status if self.resource is not None else {}
        if bundle is None or not status:
            return False
        reasons = {each.get("reason") for each in status.get("conditions") or ()}
        is_same_bundle = status.get("bundle") in (None, bundle.digest)
        return is_same_bundle and bool(reasons) and reasons.isdisjoint(_BEFORE_JUDGED)

    @property
    def decisions(self) -> list[Decision]:
        """Decisions about its rendered objects; only for pools."""
        return self.scenery.decisions.get(self.name, []) if self.kind == "GpuPool" else []


def condition_of(about: PolicyStatusContext) -> ObjectCondition:
    return next((condition for rule in RULES if (condition := rule(about)) is not None), FOLLOWED)


def received(scenery: Scenery, kind: str, name: str) -> ObjectCondition:
    """Status of an object whose bundle will be checked next."""
    return ObjectCondition(BundleReceived(PolicyStatusContext(scenery, kind, name).bundle), is_reconciling=True)


def _invalid(about: PolicyStatusContext) -> ObjectCondition | None:
    problems = about.scenery.problems_of((about.kind, about.name))
    return ObjectCondition(Invalid(problems), is_stalled=True, problems=problems) if problems else None


def _incomplete(about: PolicyStatusContext) -> ObjectCondition | None:
    """The bundle of the object is still being applied, beside another bundle in force or without one."""
    bundle = about.bundle
    if bundle is None or bundle.is_whole or about.is_left_over:
        return None
    return ObjectCondition(BundleIncomplete(bundle), is_reconciling=True)


def _waits(about: PolicyStatusContext) -> ObjectCondition | None:
    """The policy waits for corrections of other policies; its bundle then comes into force."""
    culprits = about.scenery.culprits
    if not culprits:
        return None
    first = about.scenery.problems_of(culprits[0])[0]
    why = WaitingForBundle(PolicyRef(*culprits[0]), len(culprits) - 1, first, about.bundle)
    return ObjectCondition(why, is_reconciling=True)


def _refused(about: PolicyStatusContext) -> ObjectCondition | None:
    """A problem that belongs to no single object."""
    problems = about.scenery.context.problems
    if not problems:
        return None
    is_coming = all(each.code == NOT_WHOLE for each in problems)
    return ObjectCondition(PoliciesRefused(problems[0]), is_reconciling=is_coming, is_stalled=not is_coming)


def _left_over(about: PolicyStatusContext) -> ObjectCondition | None:
    return ObjectCondition(NotInBundle(), is_stalled=True) if about.declared is None else None


def _suspended(about: PolicyStatusContext) -> ObjectCondition | None:
    declared = about.declared
    if declared is None or not declared.spec.suspend:
        return None
    return ObjectCondition(Suspended(), is_ready=True)


def _held(about: PolicyStatusContext) -> ObjectCondition | None:
    for each in about.decisions:
        if isinstance(each.act, Hold):
            waits = each.act.until is not None
            return ObjectCondition(each.reason, is_reconciling=waits, is_stalled=not waits)
    return None


def _on_its_way(about: PolicyStatusContext) -> ObjectCondition | None:
    acts = [each for each in about.decisions if not isinstance(each.act, Hold) and not each.would]
    return ObjectCondition(acts[0].reason, is_reconciling=True) if acts else None


def _observed(about: PolicyStatusContext) -> ObjectCondition | None:
    declared = about.declared
    if declared is None or not isinstance(declared.spec, GpuPool) or declared.spec.mode != "Observe":
        return None
    return ObjectCondition(Observed(sum(each.would for each in about.decisions)), is_ready=True)


# If no rule applies.
FOLLOWED = ObjectCondition(Followed(), is_ready=True)

RULES: tuple[Callable[[PolicyStatusContext], ObjectCondition | None], ...] = (
    _invalid,
    _incomplete,
    _waits,
    _refused,
    _left_over,
    _suspended,
    _held,
    _on_its_way,
    _observed,
)


# --- Status of a policy with conditions of its kind: size of a pool, what prevents its target, and failed launch
# options.


def standing_in(scenery: Scenery, kind: str, name: str) -> ObjectCondition:
    object_condition = condition_of(PolicyStatusContext(scenery, kind, name))
    if kind == "GpuPool" and scenery.plan is not None and (kind, name) in scenery.declared:
        short = tuple(short_of(scenery.plan.memory.shortages, name, scenery.inputs.now))
        condition = PolicyCondition("CapacityShort", bool(short), MachinesRefused(short) if short else NothingRefused())
        return msgspec.structs.replace(object_condition, further=(condition,))
    evaluated = scenery.sizes.get(name) if kind == "NodeProvisioner" else None
    return _sized(object_condition, evaluated) if evaluated is not None else object_condition


def _sized(condition: ObjectCondition, evaluated: SizeEvaluation) -> ObjectCondition:
    """A condition without another message states the reason of the pool's size."""
    if condition == FOLLOWED:
        condition = msgspec.structs.replace(condition, why=evaluated.reason)
    further = tuple(_limit(evaluated, kind) for kind in get_args(LimitKind))
    return msgspec.structs.replace(condition, further=further, size=evaluated)


def _limit(evaluated: SizeEvaluation, kind: LimitKind) -> PolicyCondition:
    reason = next((each.reason for each in evaluated.limits if each.kind == kind), None)
    return PolicyCondition(kind, reason is not None, reason or NotLimited(kind))
