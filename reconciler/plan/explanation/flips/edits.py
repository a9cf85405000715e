"""Inputs as they would be after a change, and what the change is: what every line of the table is made of."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from reconciler.model.cluster.metadata import Annotations
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.workload import PodDisruptionBudget
from reconciler.model.instant import instant
from reconciler.model.planned.inputs import Inputs
from reconciler.model.planned.weighed import Weighed

replace = msgspec.structs.replace


class Edit(msgspec.Struct, frozen=True):
    """The inputs after it, and what it is."""

    inputs: Inputs
    told: str
    about: str = ""  # what is edited, where what is told begins with it: the same of others is told together


Line = Callable[[Inputs, Weighed], Edit | None]  # nothing where no such change lifts it


def seen_with(inputs: Inputs, **fields: Any) -> Inputs:
    """With other sightings of some kinds."""
    observed: Observed = replace(inputs.observed, **fields)
    return replace(inputs, observed=observed)


def with_node(inputs: Inputs, name: str, changed: Callable[[Node], Node]) -> Inputs:
    nodes = tuple(changed(each) if each.name == name else each for each in inputs.observed.nodes)
    return seen_with(inputs, nodes=nodes)


def with_pod(inputs: Inputs, title: str, changed: Callable[[Pod], Pod | None]) -> Inputs:
    """`title`: Pod/team/web-0; None takes it away."""
    pods = (changed(each) if f"Pod/{each.title}" == title else each for each in inputs.observed.pods)
    return seen_with(inputs, pods=tuple(each for each in pods if each is not None))


def with_budget(inputs: Inputs, title: str, allowed: int) -> Inputs:
    """Its status is up to date, and allows so many disruptions."""

    def opened(budget: PodDisruptionBudget) -> PodDisruptionBudget:
        generation = budget.metadata.generation
        return replace(
            budget, status=replace(budget.status, disruptions_allowed=allowed, observed_generation=generation)
        )

    budgets = (opened(each) if each.title == title else each for each in inputs.observed.budgets)
    return seen_with(inputs, budgets=tuple(budgets))


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


def once_it_is(fact: str) -> Line:
    """Time passes; `fact` names the moment."""

    def line(inputs: Inputs, weighed: Weighed) -> Edit | None:
        written = str(weighed.reason.fact(fact))
        return Edit(replace(inputs, now=max(inputs.now, instant(written))), f"it is {written} or later")

    return line


def pod_of(inputs: Inputs, weighed: Weighed) -> Pod | None:
    """The one that the reason names."""
    title = str(weighed.reason.fact("pod"))
    return next((each for each in inputs.observed.pods if f"Pod/{each.title}" == title), None)
