"""Answers of the scheduler extender that need sentences: why nodes are excluded, and why a pod was not bound."""

from collections.abc import Mapping

import msgspec

from reconciler.fleet.obstacles import NoIslandOfFreeGpus, TooFewFreeGpus
from reconciler.fleet.pressure.obstacles import TooLittleReservable
from reconciler.model.plan.decision import Obstacle, Ref
from reconciler.plan.capacity.words import obstacle_words
from reconciler.protocol.extender import BindAnswer, FilterAnswer

# Preempted pods would give back what they have.
_RESOLVABLE = (TooFewFreeGpus, NoIslandOfFreeGpus, TooLittleReservable)


def not_ready(why: str) -> FilterAnswer:
    """An error, and no refusal: the scheduler asks again soon, and nobody buys a node meanwhile."""
    return FilterAnswer(error=f"reconciler can't answer: {why}")


def refusals(obstacles: Mapping[str, Obstacle]) -> FilterAnswer:
    """Why no node serves the claim, by node."""
    failed: dict[str, str] = {}
    unresolvable: dict[str, str] = {}
    words: dict[int, str] = {}  # equal nodes share their obstacle
    for name, obstacle in obstacles.items():
        text = words.get(id(obstacle))
        if text is None:
            text = words[id(obstacle)] = obstacle_words(obstacle)
        (failed if isinstance(obstacle, _RESOLVABLE) else unresolvable)[name] = text
    return FilterAnswer([], failed, unresolvable)


def with_refusals(answer: FilterAnswer, obstacles: Mapping[str, Obstacle]) -> FilterAnswer:
    """The answer about some nodes, and why others are excluded."""
    others = refusals(obstacles)
    return msgspec.structs.replace(
        answer,
        failed_nodes=answer.failed_nodes | others.failed_nodes,
        failed_and_unresolvable_nodes=answer.failed_and_unresolvable_nodes | others.failed_and_unresolvable_nodes,
    )


def unbound(pod: Ref, why: str) -> BindAnswer:
    """The pod was not bound."""
    return BindAnswer(f"{pod.title} was not bound: {why}")


def unsuitable(pod: Ref, node: str, obstacle: Obstacle) -> BindAnswer:
    """The node can't serve the pod any more."""
    return unbound(pod, f"Node/{node}: {obstacle_words(obstacle)}")
