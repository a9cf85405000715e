"""Owner of what is known of the pods that would have to leave a node, for as long as the same pods are there.

Most pods are plain: nothing about themselves keeps them. Of a node that has only such pods, and healthy ones, budgets
are asked by the labels of pods, and whether one can tell where they fit by their classes. That answers for each of
them what `blocker` would, and costs a small part of it.
"""

from collections import Counter
from itertools import compress

import msgspec

from reconciler.fleet.pod_class import LabelClass, PodClass
from reconciler.fleet.snapshot.per_row import PerRow
from reconciler.model.cluster.metadata import OwnerReference
from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.reason import Reason
from reconciler.plan.drain.blockers import blocker, is_plain, moves
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.nodes.eviction import Remaining, Weights, is_healthy, weighs_nothing


class Moving(msgspec.Struct, frozen=True, eq=False):
    """Of one node."""

    pods: tuple[Pod, ...]  # by namespace and name; what is leaving has another place, or needs none
    is_plain: bool  # all of them are
    healthy: Weights | None  # what of them budgets weigh; None where some are not healthy, and are weighed one by one
    unsure: tuple[PodClass, ...]  # classes of which it may not be known where they fit
    controllers: tuple[tuple[str, OwnerReference], ...]  # with the namespace of their pods; safe pods left out


class Movings(PerRow[Moving]):
    """Owner of these."""

    def find(self, row: int) -> Moving:
        pods = tuple(filter(moves, self.fleet.pods_of_row(row)))
        classes = list(map(self.fleet.classes.of, pods))
        owned = (each for each in pods if each.metadata.annotations.safe_to_evict != "true")
        controllers = ((each.metadata.namespace, each.metadata.controller) for each in owned)
        weighed = [not weighs_nothing(each) for each in pods]
        kins = Counter[LabelClass](each.label_class for each in compress(classes, weighed))
        return Moving(
            pods,
            is_plain=all(map(is_plain, pods)),
            healthy=tuple(kins.items()) if all(map(is_healthy, compress(pods, weighed))) else None,
            unsure=tuple(dict.fromkeys(each for each in classes if not each.is_plain or each.unmodelled)),
            controllers=tuple({(at, of.kind, of.uid, of.name): (at, of) for at, of in controllers if of}.values()),
        )


def first_blocker(context: DrainContext, remaining: Remaining, drain_node: DrainNode, moving: Moving) -> Reason | None:
    """What keeps the first of a node's pods that is kept; nothing when all may be asked to leave now."""
    is_clear = moving.is_plain and moving.healthy is not None and remaining.allow(moving.healthy)
    is_clear = is_clear and not any(context.controllers.is_gone(*each) for each in moving.controllers)
    if is_clear and not any(map(context.why_such_stay, moving.unsure)):
        return None
    return next((reason for pod in moving.pods if (reason := blocker(context, remaining, drain_node, pod))), None)


def take(remaining: Remaining, moving: Moving) -> None:
    """All of them go, and nothing keeps them."""
    if moving.healthy is not None:
        remaining.take_all(moving.healthy)
    else:
        for pod in moving.pods:
            remaining.take(pod)
