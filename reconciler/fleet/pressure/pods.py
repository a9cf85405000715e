"""How a pod counts in the ledger of its node: by its elastic bounds, or by its requests.

Only pods of our scheduler count. All others are part of `system`, so that nothing is counted twice. The annotation
`gpu.scheduling/elastic` makes a pod elastic and bounds its resources, such as

    cpu=250m..4,memory=1Gi..16Gi

Other resources of an elastic pod keep their requests.
"""

from typing import NamedTuple

from reconciler.fleet.amounts import CPU, MEMORY, pod_held, pod_request
from reconciler.fleet.pressure.bounds import amount_in_units
from reconciler.fleet.pressure.obstacles import ElasticBoundsUnreadable, RequestAbsent
from reconciler.model import names
from reconciler.model.cluster.pod import Container, Pod
from reconciler.model.plan.decision import Obstacle
from reconciler.model.plan.pressure import Amounts, ElasticPod, LedgerPod, PlainPod
from reconciler.model.quantity import MOST, Quantity

_NEEDED = (CPU, MEMORY)  # of each container


class Placement(NamedTuple):
    """What a pod needs of a node to be placed there."""

    requests: Amounts
    is_elastic: bool
    obstacle: Obstacle | None  # why the pod fits on no node with bounds

    @classmethod
    def of(cls, pod: Pod) -> "Placement":
        obstacle: Obstacle | None = None
        if is_elastic(pod) and elastic_bounds(pod.metadata.annotations.elastic) is None:
            obstacle = ElasticBoundsUnreadable()
        elif (absent := container_without_requests(pod)) is not None:
            obstacle = RequestAbsent(*absent)
        return cls(pod_request(pod), is_elastic(pod), obstacle)


ElasticBounds = dict[str, tuple[int, int]]  # the least and the most, by resource


def counts(pod: Pod) -> bool:
    """Whether the pod is in the ledger of its node."""
    return bool(pod.node) and not pod.is_finished and is_placed_by_us(pod)


def is_placed_by_us(pod: Pod) -> bool:
    """Whether our scheduler places the pod."""
    return pod.spec.scheduler_name == names.GPU_SCHEDULER


def is_elastic(pod: Pod) -> bool:
    """Whether the pod declares elastic bounds, readable or not."""
    return bool(pod.metadata.annotations.elastic)


def ledger_pod(pod: Pod, *, is_silent: bool) -> LedgerPod:
    """The entry of a pod. `is_silent`: whether an earlier process may have permitted more than the pod has."""
    has, uid = pod_held(pod), pod.metadata.uid
    bounds = elastic_bounds(pod.metadata.annotations.elastic) if is_elastic(pod) else None
    if not bounds:
        return PlainPod(uid, pod.title, has)
    has |= {name: has.get(name, 0) for name in bounds}
    least = {name: bounds[name][0] if name in bounds else amount for name, amount in has.items()}
    most = {name: bounds[name][1] if name in bounds else amount for name, amount in has.items()}
    return ElasticPod(uid, pod.title, least, most, has, permitted=has, is_silent=is_silent)


def elastic_bounds(text: str) -> ElasticBounds | None:
    """None if the text cannot be read."""
    found: ElasticBounds = {}
    for part in text.split(","):
        name, equals, span = (each.strip() for each in part.partition("="))
        least, dots, most = (each.strip() for each in span.partition(".."))
        if not (name and equals and dots) or name in found:
            return None
        try:
            low, high = (amount_in_units(name, Quantity.parse(each)) for each in (least, most))
        except ValueError:
            return None
        if not 0 < low <= high <= MOST:
            return None
        found[name] = low, high
    return found


def container_without_requests(pod: Pod) -> tuple[str, str] | None:
    """The first container without a request and a limit of cpu or memory, and the resource. Without these, a pod cannot
    be counted.
    """
    whole = pod.spec.resources.requests if pod.spec.resources is not None else {}
    for container in pod.spec.containers:
        for name in _NEEDED:
            if name not in whole and not _says(container, name):
                return container.name, name
    return None


def _says(container: Container, name: str) -> bool:
    return name in container.resources.requests or name in container.resources.limits
