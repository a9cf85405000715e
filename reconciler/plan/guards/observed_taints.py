"""Taints that nodes of pools in mode Observe would bear: kept in the memory, since nothing is written there."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeTaint
from reconciler.model.plan.action import Taint
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.observed_taint import ObservedTaint
from reconciler.plan.guards.observing import observes

ByNode = Mapping[tuple[str, str], Sequence[ObservedTaint]]


def by_node(inputs: Inputs) -> ByNode:
    """What is imagined of each node, by its name and uid."""
    observed_taints: dict[tuple[str, str], list[ObservedTaint]] = {}
    for each in inputs.memory.imagined:
        observed_taints.setdefault((each.node, each.uid), []).append(each)
    return observed_taints


def as_imagined(node: Node, taints: Sequence[ObservedTaint]) -> Node:
    """The node, as if it bore them; nothing that it really bears counts beside one of the same key."""
    keys = {each.key for each in taints}
    kept = tuple(each for each in node.spec.taints if each.key not in keys)
    borne = tuple(NodeTaint(each.key, each.effect, each.value) for each in taints)
    return msgspec.structs.replace(node, spec=msgspec.structs.replace(node.spec, taints=kept + borne))


def imagined_after(inputs: Inputs, fleet: Fleet, decisions: Iterable[Decision]) -> tuple[ObservedTaint, ...]:
    """What is imagined once the plan would be carried out; of nodes that went, or are acted on by now, nothing."""
    observed_taints = {
        (each.node, each.uid, each.key): each
        for each in inputs.memory.imagined
        if _is_imagined_still(inputs, fleet, each)
    }
    for each in decisions:
        act, subject = each.act, each.subject
        # What is drained in thought alone is never emptied: it stays what would begin.
        if each.would and isinstance(act, Taint) and subject.kind == "Node" and act.key != names.DRAINING:
            if act.value is None:
                observed_taints.pop((subject.name, subject.uid, act.key), None)
            else:
                taint = ObservedTaint(subject.name, subject.uid, act.key, act.value, act.effect)
                observed_taints[subject.name, subject.uid, act.key] = taint
    return tuple(sorted(observed_taints.values()))


def _is_imagined_still(inputs: Inputs, fleet: Fleet, each: ObservedTaint) -> bool:
    node = fleet.node(each.node)
    if node is None:
        return bool(inputs.observed.why_unread("nodes"))
    return node.metadata.uid == each.uid and not node.metadata.leaving and observes(inputs, node.pool)
