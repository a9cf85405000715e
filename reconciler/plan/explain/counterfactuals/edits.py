"""Inputs as they would be after a change, and what the change is: what every line of the table is made of."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from reconciler.model.cluster.metadata import Annotations
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.instant import instant, timestamp
from reconciler.model.plan.action import Ref
from reconciler.model.plan.drain_eligibility import DrainEligibility
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.drain.codes.blockers import PodBlocker
from reconciler.plan.drain.codes.eligibility import DrainFailedLately, NodeSettles, NotTried, PodLeavesSlowly
from reconciler.plan.explain.counterfactuals.change import Change, TimePasses

replace = msgspec.structs.replace


class Counterfactual(msgspec.Struct, frozen=True):
    """The inputs after it, and what it is."""

    inputs: Inputs
    change: Change


EditRule = Callable[[Inputs, DrainEligibility], Counterfactual | None]  # nothing where no such change lifts it


def with_observed(inputs: Inputs, **fields: Any) -> Inputs:
    """With other sightings of some kinds."""
    observed: Observed = replace(inputs.observed, **fields)
    return replace(inputs, observed=observed)


def with_node(inputs: Inputs, name: str, changed: Callable[[Node], Node]) -> Inputs:
    nodes = tuple(changed(each) if each.name == name else each for each in inputs.observed.nodes)
    return with_observed(inputs, nodes=nodes)


def with_pod(inputs: Inputs, pod: Ref, changed: Callable[[Pod], Pod | None]) -> Inputs:
    """None takes it away."""
    pods = (changed(each) if is_of(each, pod) else each for each in inputs.observed.pods)
    return with_observed(inputs, pods=tuple(each for each in pods if each is not None))


def with_budget(inputs: Inputs, title: str, allowed: int) -> Inputs:
    """Its status is up to date, and allows so many disruptions."""

    def opened(budget: PodDisruptionBudget) -> PodDisruptionBudget:
        generation = budget.metadata.generation
        return replace(
            budget, status=replace(budget.status, disruptions_allowed=allowed, observed_generation=generation)
        )

    budgets = (opened(each) if each.title == title else each for each in inputs.observed.budgets)
    return with_observed(inputs, budgets=tuple(budgets))


def with_policy(inputs: Inputs, kind: str, name: str, **fields: Any) -> Inputs:
    """Another spec of one of the policies; `kind`: as Desired has them."""
    declared: Iterable[Any] = getattr(inputs.desired, kind)
    after = tuple(replace(each, spec=replace(each.spec, **fields)) if each.name == name else each for each in declared)
    return replace(inputs, desired=replace(inputs.desired, **{kind: after}))


def annotated(node_or_pod: Any, **annotations: str) -> Any:
    """The same with other annotations."""
    after: Annotations = replace(node_or_pod.metadata.annotations, **annotations)
    return replace(node_or_pod, metadata=replace(node_or_pod.metadata, annotations=after))


def untainted(node: Node, key: str) -> Node:
    taints = tuple(each for each in node.spec.taints if each.key != key)
    return replace(node, spec=replace(node.spec, taints=taints))


def once_it_is_time(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Time passes."""
    match weighed.reason.facts:
        case NodeSettles(time=at) | DrainFailedLately(until=at):
            # Times are told in whole seconds.
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
    """The same, as it is observed."""
    ref = ref_of_pod_in(weighed)
    return next((each for each in inputs.observed.pods if ref is not None and is_of(each, ref)), None)


def is_of(pod: Pod, ref: Ref) -> bool:
    """Whether it is the pod of that name."""
    return (pod.metadata.namespace, pod.name) == (ref.namespace, ref.name)
