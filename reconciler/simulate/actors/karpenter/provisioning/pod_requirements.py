"""What the pods of one class want of a node that is to be bought for them."""

from collections.abc import Callable

import msgspec

from reconciler.fleet.amounts import pod_request
from reconciler.fleet.pod_class import PodClass
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.plan.karpenter.requirements import Demands
from reconciler.simulate.actors.karpenter.requirements import alternatives


class PodRequirements(msgspec.Struct, frozen=True):
    """Found out once for all pods of the class."""

    pod_class: PodClass
    request: dict[str, int]
    alternatives: tuple[Demands, ...]
    is_plain: bool  # neither other pods nor volumes have to do with where it can be


def wanting(pod: Pod, snapshot: Snapshot) -> PodRequirements:
    """`pod` may be anywhere now: it is asked about as the one that would take its place."""
    pod_class = snapshot.classes.of(pod).anew
    counting = snapshot.part(Counting)
    counting.catch_up(snapshot)
    request = pod_request(pod_class.pod) | {"pods": 1}
    return PodRequirements(pod_class, request, alternatives(pod), pod_class.is_plain and counting.is_idle)


def hangs_on_zone(pod_class: PodClass, snapshot: Snapshot) -> bool:
    """Whether pods in other zones or the same have to do with where it can be, or its volumes."""
    counting = snapshot.part(Counting)
    counting.catch_up(snapshot)
    terms = counting.terms(pod_class)
    keys: set[str] = set()
    if terms is not None:
        keys |= {each.key for each in terms.near + terms.apart} | {each.key for each in terms.spread}
    if not counting.is_idle:
        keys |= {each.key for each in counting.repelling(pod_class) if counting.fresh(each, snapshot).total}
    return names.ZONE in keys or any(each.ties for each in pod_class.pod.spec.volumes)


def crowding(pod_class: PodClass, snapshot: Snapshot) -> Callable[[str], int]:
    """How many of those that it is to be spread with a zone has."""
    counting = snapshot.part(Counting)
    terms = counting.terms(pod_class)
    rules = [each for each in terms.spread if each.key == names.ZONE] if terms is not None else []
    if not rules:
        return lambda _: 0
    pods = counting.tally((rules[0].matcher,), staying=True)
    column = counting.column(names.ZONE, snapshot)
    found = pods.by_domain(column, snapshot.rows.alive.tobytes())
    texts = snapshot.rows.values(names.ZONE)
    by_zone = {texts[each]: count for each, count in found.items()}
    return lambda zone: by_zone.get(zone, 0)
