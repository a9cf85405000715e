"""Simulated changes of inputs: building blocks of the table of changes."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model.cluster.metadata import Annotations, Condition
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod, PodStatus
from reconciler.model.instant import instant, timestamp
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
from reconciler.plan.nodes.eviction import Remaining
from reconciler.report.wording import counted

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


# --- Required changes.

_MOST_NAMED = 10


class Change(msgspec.Struct, frozen=True):
    """A required change: a clause, or the predicate of the objects of one kind that the change applies to."""

    clause: str
    of: tuple[Ref, ...] = ()

    @property
    def words(self) -> str:
        """Such as Pod/team/web-0 is deleted."""
        return f"{_each(self.of)} {self.clause}" if self.of else self.clause


def _each(refs: Sequence[Ref]) -> str:
    if len(refs) == 1:
        return refs[0].title
    named = [each.title for each in refs[:_MOST_NAMED]]
    if len(refs) > _MOST_NAMED:
        named.append(f"{len(refs) - _MOST_NAMED} more")
    return f"each of these {counted(len(refs), 'pod' if refs[0].kind == 'Pod' else refs[0].kind)} ({', '.join(named)})"


def together(changes: Iterable[Change]) -> tuple[Change, ...]:
    """Merges the same change of several objects of a kind."""
    groups: dict[tuple[str, str], dict[str, Ref]] = {}
    for each in changes:
        kind = each.of[0].kind if each.of else ""
        groups.setdefault((kind, each.clause), {}).update({ref.title: ref for ref in each.of})
    return tuple(Change(clause, tuple(refs[title] for title in sorted(refs))) for (_, clause), refs in groups.items())


replace = msgspec.structs.replace


class Counterfactual(msgspec.Struct, frozen=True):
    """The inputs after a change, and the change."""

    inputs: Inputs
    clause: str
    of: tuple[Ref, ...] = ()

    @property
    def change(self) -> Change:
        return Change(self.clause, self.of)


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


def with_policy(inputs: Inputs, kind: str, name: str, **fields: Any) -> Inputs:
    """Inputs with another spec of a policy; `kind` is a field of Desired."""
    declared: Iterable[Any] = getattr(inputs.desired, kind)
    after = tuple(replace(each, spec=replace(each.spec, **fields)) if each.name == name else each for each in declared)
    return replace(inputs, desired=replace(inputs.desired, **{kind: after}))


def annotated(node_or_pod: Any, **annotations: str) -> Any:
    """The object with additional annotations."""
    after: Annotations = replace(node_or_pod.metadata.annotations, **annotations)
    return replace(node_or_pod, metadata=replace(node_or_pod.metadata, annotations=after))


def once_it_is_time(inputs: Inputs, weighed: DrainEligibility) -> Counterfactual | None:
    """Time passes."""
    match weighed.reason.facts:
        case NodeSettles(time=at) | DrainFailedLately(until=at):
            # Messages show times in whole seconds.
            until = instant(timestamp(at))
            return Counterfactual(replace(inputs, now=max(inputs.now, until)), f"it is {timestamp(at)} or later")
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


RUNNING = PodStatus("Running", conditions=(Condition("Ready", "True"),))


def made_ready(node: Node) -> Node:
    conditions = (replace(each, status="True") if each.type == "Ready" else each for each in node.status.conditions)
    return replace(node, status=replace(node.status, conditions=tuple(conditions)))
