"""Bugs of a planner that drains nodes, one for each rule about that; each goes with the play in which it shows."""

from collections.abc import Callable, Iterator

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.decision import Action, Decision, Delete, Evict, Ref, Taint
from reconciler.model.plan.inputs import Inputs

OFF, ANEW, BUDGET, PLACE, GANG, BATCH, EMPTY, WINDOW, SLOTS, LEAST = (
    "pods are evicted only from nodes that are being drained, or are under pressure",
    "only pods that a controller recreates are evicted",
    "evictions of reconciler violate no PodDisruptionBudget",
    "only pods that fit elsewhere are evicted",
    "gangs are evicted completely",
    "pods are evicted only after all nodes of the batch are tainted",
    "drained nodes are deleted only after a minute without pods",
    "drains begin only in the windows of their policy",
    "the numbers of nodes draining and leaving stay within policy limits",
    "drains keep the minimum of a pool, and all removals keep the minimum of the cluster",
)
_DRAINS = Taint(key=names.DRAINING, value="1795013520", effect="NoSchedule")
_AT_ONCE = Evict(grace_seconds=0)


def evicts_off_any_node(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from [(_ref_of(pod), _AT_ONCE) for pod in _bound(inputs) if "notebooks" in pod.name][:1]


def moves_what_an_operator_made(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """Off a node that it drains."""
    for pod in (each for each in _bound(inputs) if each.name == "flow-0"):
        (node,) = [each for each in inputs.observed.nodes if each.name == pod.node]
        if node.taint(names.DRAINING) is None:
            yield _ref(node), _DRAINS
        else:
            yield _ref_of(pod), _AT_ONCE


def goes_round_a_budget(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """By a deletion, which nobody weighs."""
    yield from [(_ref_of(pod), Delete()) for pod in _bound(inputs) if "guarded" in pod.name and _runs(pod)][:1]


def evicts_whom_no_node_takes(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """Once everything is full."""
    yield from [(_ref_of(pod), _AT_ONCE) for pod in _bound(inputs) if pod.gpus == 8 and _is_known(inputs)]


def moves_one_of_a_gang(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    for pod in (each for each in _bound(inputs) if each.name == "gang-0"):
        (node,) = [each for each in inputs.observed.nodes if each.name == pod.node]
        if node.taint(names.DRAINING) is None:
            yield _ref(node), _DRAINS
        else:
            yield _ref_of(pod), _AT_ONCE


def taints_one_of_two(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    """And moves what is on that one (see `is_of_another`)."""
    drained = {node.name for node in inputs.observed.nodes if node.taint(names.DRAINING) is not None}
    yield from [(_ref_of(pod), _AT_ONCE) for pod in _bound(inputs) if pod.node in drained]


def is_of_another(decision: Decision) -> bool:
    """Of every other node, and of pods."""
    is_tainted = isinstance(decision.act, Taint) and decision.act.key == names.DRAINING
    return decision.subject.kind == "Pod" or (is_tainted and int(decision.subject.name[-4:]) % 2 == 1)


def deletes_what_it_has_just_emptied(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    pods = _bound(inputs)
    busy = {pod.node for pod in pods} - {pod.node for pod in pods if "notebooks" not in pod.name}
    begun = [each for each in _nodes(inputs) if each.taint(names.DRAINING) is not None]
    for node in begun or [each for each in _nodes(inputs) if each.name in busy][:1]:
        there = [pod for pod in inputs.observed.pods if pod.node == node.name]
        if not begun:
            yield _ref(node), _DRAINS
        elif there:
            yield from [(_ref_of(pod), Delete()) for pod in there if not pod.metadata.leaving]
        else:
            yield _ref(node), Delete()


def drains_what_no_policy_names(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from [(_ref(node), _DRAINS) for node in _nodes(inputs)[:1]]


def drains_three_at_once(inputs: Inputs) -> Iterator[tuple[Ref, Action]]:
    yield from [(_ref(node), _DRAINS) for node in _nodes(inputs)[:3]]


def _nodes(inputs: Inputs) -> list[Node]:
    return sorted(inputs.observed.nodes, key=lambda each: each.name)


def _bound(inputs: Inputs) -> list[Pod]:
    found = (pod for pod in inputs.observed.pods if pod.node and not pod.metadata.leaving)
    return sorted(found, key=lambda each: each.name)


def _runs(pod: Pod) -> bool:
    return pod.status.phase == "Running"


def _is_known(inputs: Inputs) -> bool:
    """That they have been there for more than a minute."""
    return inputs.now % 3_600_000 > 240_000


def _ref(node: Node) -> Ref:
    return Ref("Node", "", node.name, node.metadata.uid)


def _ref_of(pod: Pod) -> Ref:
    return Ref("Pod", pod.metadata.namespace, pod.name, pod.metadata.uid)


BUGS: dict[str, Callable[[Inputs], Iterator[tuple[Ref, Action]]]] = {
    OFF: evicts_off_any_node,
    ANEW: moves_what_an_operator_made,
    BUDGET: goes_round_a_budget,
    PLACE: evicts_whom_no_node_takes,
    GANG: moves_one_of_a_gang,
    BATCH: taints_one_of_two,
    EMPTY: deletes_what_it_has_just_emptied,
    WINDOW: drains_what_no_policy_names,
    SLOTS: drains_three_at_once,
    LEAST: drains_what_no_policy_names,
}
