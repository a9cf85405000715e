"""Simulated changes of inputs: building blocks of the table of changes."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.metadata import Annotations
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.instant import Instant, instant, timestamp
from reconciler.model.plan.decision import Reason, Ref
from reconciler.model.plan.evaluation import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.draft import Draft
from reconciler.plan.drain.blockers import blocker, stays
from reconciler.plan.drain.codes.blockers import (
    BudgetBlocker,
    DrainFailedLately,
    NodeSettles,
    NotTried,
    PodBlocker,
    PodLeavesSlowly,
)
from reconciler.plan.drain.context import DrainContext
from reconciler.plan.guards.frozen import FreezeScope
from reconciler.plan.nodes.eviction import Remaining

# --- Pods of one node that block it for the same reason: the change is applied to all of them at once.
#
# Otherwise candidates would have to be evaluated again after each of many pods.


def all_like(inputs: Inputs, weighed: DrainEligibility) -> Iterator[Reason]:
    """The reason itself first, then equal reasons of other pods on the node."""
    yield weighed.reason
    facts = weighed.reason.facts
    if not isinstance(facts, PodBlocker) or not facts.is_independent:
        return
    context = DrainContext(inputs, Draft(Fleet(inputs.observed), inputs.desired))
    remaining, drain_node = Remaining(context.budgets), context.by_name[weighed.node]
    known = {_of(weighed.reason)}
    for pod in context.fleet.pods_on(weighed.node):
        reason = blocker(context, remaining, drain_node, pod) if stays(pod) else None
        if reason is not None and type(reason.facts) is type(facts) and _of(reason) not in known:
            known.add(_of(reason))
            yield reason


def _of(reason: Reason) -> object:
    match reason.facts:
        case BudgetBlocker(budgets=budgets):
            return budgets
        case PodBlocker(pod=pod):
            return pod
    return None


# --- Required changes as data: one class per kind of change.


class Change(msgspec.Struct, frozen=True, tag=True):
    """A required change. Texts are in reconciler/report/explain/node.py."""


class ChangeOf(Change, frozen=True):
    """A change that may apply to several objects of a kind."""

    of: tuple[Ref, ...]


# Nodes, and actions of others on them


class ChangeOfNode(Change, frozen=True):
    node: str


class DisruptionEnds(ChangeOfNode, frozen=True):
    """Karpenter ends its disruption of the node."""


class TaintRemoved(ChangeOfNode, frozen=True):
    key: str


class NodeUncordoned(ChangeOfNode, frozen=True):
    pass


class DriverUpgraded(ChangeOfNode, frozen=True):
    pass


class OptOutRemoved(ChangeOfNode, frozen=True):
    key: str
    value: str


class GpusReturned(ChangeOfNode, frozen=True):
    """No GPU of the node is lent."""


class PodArrives(ChangeOfNode, frozen=True):
    """A movable pod runs on the node."""


class NodeReady(ChangeOfNode, frozen=True):
    pass


class NodeLikeIt(ChangeOfNode, frozen=True):
    """Another node of the same kind is in use and has free capacity."""


class NodesReady(Change, frozen=True):
    pool: str
    nodes: int  # more ready nodes


class PoolResumed(Change, frozen=True):
    pool: str


class Thawed(Change, frozen=True):
    scope: FreezeScope


class TurnComes(Change, frozen=True):
    """The node is evaluated in one of the next plans."""


class PlannerDone(Change, frozen=True):
    planner: str


class TimePasses(Change, frozen=True):
    at: Instant


# Pods, their budgets and claims


class PodAnnotated(ChangeOf, frozen=True):
    key: str
    value: str


class AnnotationRemoved(ChangeOf, frozen=True):
    key: str


class RunsNotToCompletion(ChangeOf, frozen=True):
    pass


class NotUnsafeToEvict(ChangeOf, frozen=True):
    pass


class NoGpuClaim(ChangeOf, frozen=True):
    pass


class PodGone(ChangeOf, frozen=True):
    pass


class BudgetAllows(ChangeOf, frozen=True):
    disruptions: int


class BudgetsSelectOthers(Change, frozen=True):
    budgets: tuple[str, ...]  # titles
    pod: str  # its title


class GangRefRemoved(Change, frozen=True):
    claims: tuple[Ref, ...]


class PodsGone(Change, frozen=True):
    pods: tuple[Ref, ...]


# Policies


class ThresholdRaised(Change, frozen=True):
    policy: str
    percent: int


class ClusterMinLowered(Change, frozen=True):
    policies: tuple[str, ...]
    resource: str
    left: str


class ParallelismRaised(Change, frozen=True):
    policy: str
    nodes: int


SizeField = Literal["min_gpu_utilization_percent", "min_unutilized_gpu_nodes", "warm_nodes", "min_size"]


class SizeLowered(Change, frozen=True):
    """Lower sizes of a NodeProvisioner."""

    provisioner: str
    figures: tuple[tuple[SizeField, int], ...]
    without_schedules: bool = False


class ProvisionerRemoved(Change, frozen=True):
    provisioner: str


def together(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Merges the same change of several objects of a kind."""
    groups: dict[tuple[str, Change], dict[str, Ref]] = {}
    for each in changes:
        of = each.of if isinstance(each, ChangeOf) else ()
        alike = msgspec.structs.replace(each, of=()) if of else each
        groups.setdefault((of[0].kind if of else "", alike), {}).update({ref.title: ref for ref in of})
    return tuple(
        msgspec.structs.replace(change, of=tuple(refs[title] for title in sorted(refs))) if refs else change
        for (_, change), refs in groups.items()
    )


replace = msgspec.structs.replace


class Counterfactual(msgspec.Struct, frozen=True):
    """A change, and the inputs after it."""

    inputs: Inputs
    change: Change


EditRule = Callable[[Inputs, DrainEligibility], Counterfactual | None]  # None if no such change removes the reason


def with_observed(inputs: Inputs, **fields: Any) -> Inputs:
    """Inputs with other observed objects of some kinds."""
    observed: Observed = replace(inputs.observed, **fields)
    return replace(inputs, observed=observed)


def with_node(inputs: Inputs, name: str, changed: Callable[[Node], Node]) -> Inputs:
    nodes = tuple(changed(each) if each.name == name else each for each in inputs.observed.nodes)
    return with_observed(inputs, nodes=nodes)


def with_pod(inputs: Inputs, pod: Ref, changed: Callable[[Pod], Pod | None]) -> Inputs:
    """Inputs with a changed pod; without it if `changed` returns None."""
    pods = (changed(each) if is_of(each, pod) else each for each in inputs.observed.pods)
    return with_observed(inputs, pods=tuple(each for each in pods if each is not None))


def with_budget(inputs: Inputs, title: str, allowed: int) -> Inputs:
    """Inputs with an up-to-date budget status that allows this many disruptions."""

    def opened(budget: PodDisruptionBudget) -> PodDisruptionBudget:
        generation = budget.metadata.generation
        return replace(
            budget, status=replace(budget.status, disruptions_allowed=allowed, observed_generation=generation)
        )

    budgets = (opened(each) if each.title == title else each for each in inputs.observed.budgets)
    return with_observed(inputs, budgets=tuple(budgets))


def with_policy(inputs: Inputs, kind: str, name: str, **fields: Any) -> Inputs:
    """Inputs with another spec of a policy; `kind` is a field of Desired."""
    declared: Iterable[Any] = getattr(inputs.desired, kind)
    after = tuple(replace(each, spec=replace(each.spec, **fields)) if each.name == name else each for each in declared)
    return replace(inputs, desired=replace(inputs.desired, **{kind: after}))


def annotated(node_or_pod: Any, **annotations: str) -> Any:
    """The object with additional annotations."""
    after: Annotations = replace(node_or_pod.metadata.annotations, **annotations)
    return replace(node_or_pod, metadata=replace(node_or_pod.metadata, annotations=after))


def untainted(node: Node, key: str) -> Node:
    taints = tuple(each for each in node.spec.taints if each.key != key)
    return replace(node, spec=replace(node.spec, taints=taints))


def once_it_is_time(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Time passes."""
    match weighed.reason.facts:
        case NodeSettles(time=at) | DrainFailedLately(until=at):
            # Messages show times in whole seconds.
            until = instant(timestamp(at))
            return Counterfactual(replace(inputs, now=max(inputs.now, until)), TimePasses(at))
    return None


def ref_of_pod_in(weighed: DrainEligibility) -> Ref | None:
    """The pod that the reason names."""
    match weighed.reason.facts:
        case PodBlocker(pod=pod) | PodLeavesSlowly(pod=pod) | NotTried(pod=pod):
            return pod
    return None


def pod_of(inputs: Inputs, weighed: DrainEligibility) -> Pod | None:
    """The same pod as observed."""
    ref = ref_of_pod_in(weighed)
    return next((each for each in inputs.observed.pods if ref is not None and is_of(each, ref)), None)


def is_of(pod: Pod, ref: Ref) -> bool:
    """Whether the pod has this name."""
    return (pod.metadata.namespace, pod.name) == (ref.namespace, ref.name)
