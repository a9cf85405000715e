"""Resource requests of pods and capacities of nodes, as integers in the units of kube-scheduler.

cpu is counted in thousandths, all other resources in units; sums are rounded up. A pod requests the sum of its
containers and sidecars, or the maximum over its init containers if that is larger. Pod-level resources take precedence;
pod overhead is added. On its node, a pod is counted with the maximum of requested, allocated and actual resources,
which differ during an in-place resize.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import msgspec

from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.pod import Amounts, Container, ContainerStatus, Pod, PodStatus, ResourceRequirements
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.quantity import MOST, amount_offered, requested_amount

CPU, MEMORY, STORAGE, PODS = "cpu", "memory", "ephemeral-storage", "pods"

Billionths = dict[str, int]  # amounts by resource name

_KNOWN = frozenset({CPU, MEMORY, STORAGE, PODS})
_HUGE_PAGES = "hugepages-"


class _PodAllocation(msgspec.Struct, frozen=True):
    """The resources allocated to a running pod."""

    containers: Mapping[str, ContainerStatus] = {}  # by name
    whole: PodStatus | None = None  # pod-level resources, if any
    feasible: bool = True  # the node can satisfy the pod's current requests


_NOTHING = _PodAllocation()


def counted(amounts: Amounts) -> dict[str, int]:
    """Allocatable resources of a node, without resources that the scheduler ignores."""
    return {name: _whole(name, amount_offered(text)) for name, text in amounts.items() if _counts(name)}


def pod_request(pod: Pod) -> dict[str, int]:
    """What the pod requests from a new node; resources with amount 0 are omitted."""
    spec = pod.spec
    if len(spec.containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None:
        resources = spec.containers[0].resources
        requested = resources.requests if resources.requests.keys() >= resources.limits.keys() else _requests(resources)
        return {name: amount for name, text in requested.items() if (amount := _simple(name, text))}
    return _wholes(_requested_amounts(pod, _NOTHING))


def pod_held(pod: Pod) -> dict[str, int]:
    """What the pod occupies on its node."""
    status = pod.status
    said = (*status.container_statuses, *status.init_container_statuses)
    pending = next((each for each in status.conditions if each.type == "PodResizePending"), None)
    given = _PodAllocation(
        {each.name: each for each in said if each.resources is not None},
        status if status.resources is not None else None,
        pending is None or pending.reason != "Infeasible",
    )
    return _wholes(_requested_amounts(pod, given)) if given.containers or given.whole else pod_request(pod)


def is_settled(pod: Pod) -> bool:
    """Whether the pod's allocation plainly equals its requests. Fast; False for pods that need a detailed check."""
    status = pod.status
    if status.resources is not None:
        return False
    requested = None
    for each in (*status.container_statuses, *status.init_container_statuses):
        if each.resources is None:
            continue
        if requested is None:
            containers = (*pod.spec.containers, *pod.spec.init_containers)
            requested = {container.name: container.resources.requests for container in containers}
        requests = requested.get(each.name)
        if each.resources.requests != requests or (each.allocated_resources and each.allocated_resources != requests):
            return False
    return True


def _requested_amounts(pod: Pod, given: _PodAllocation) -> Billionths:
    together: Billionths = {}
    for each in pod.spec.containers:
        _add(together, _effective(each, given))
    beside: Billionths = {}
    before: Billionths = {}
    for each in pod.spec.init_containers:
        if each.restart_policy == "Always":
            requested = _effective(each, given)
            _add(together, requested)
            _add(beside, requested)
            _raise(before, beside)
        else:
            running = dict(beside)
            _add(running, _read(_requests(each.resources)))
            _raise(before, running)
    _raise(together, before)
    together |= _of_the_whole(pod, given)
    _add(together, _read(pod.spec.overhead))
    return together


def _effective(container: Container, given: _PodAllocation) -> Billionths:
    requested = _read(_requests(container.resources))
    status = given.containers.get(container.name)
    if status is None or status.resources is None:
        return requested
    has, granted = _read(status.resources.requests), _read(status.allocated_resources)
    return _most(requested if given.feasible else {}, has, granted)


def _of_the_whole(pod: Pod, given: _PodAllocation) -> Billionths:
    """Pod-level requests, for the few resources that support them."""
    if pod.spec.resources is None:
        return {}
    requested = {
        name: amount for name, amount in _read(pod.spec.resources.requests).items() if _may_be_of_the_whole(name)
    }
    if given.whole is None or given.whole.resources is None:
        return requested
    has, granted = _read(given.whole.resources.requests), _read(given.whole.allocated_resources)
    most = _most(requested if given.feasible else {}, has, granted)
    return {name: most.get(name, 0) for name in requested}


def _may_be_of_the_whole(name: str) -> bool:
    return name in {CPU, MEMORY} or name.startswith(_HUGE_PAGES)


def _requests(resources: ResourceRequirements) -> Amounts:
    """A limit without a request counts as the request, as the API server defaults it."""
    return resources.limits | resources.requests


def _most(*each: Billionths) -> Billionths:
    result: Billionths = {}
    for amounts in each:
        _raise(result, amounts)
    return result


def _add(to: Billionths, more: Billionths) -> None:
    for name, amount in more.items():
        to[name] = to.get(name, 0) + amount


def _raise(to: Billionths, least: Billionths) -> None:
    for name, amount in least.items():
        if name not in to or amount > to[name]:
            to[name] = amount


def _read(amounts: Amounts) -> Billionths:
    """Unreadable amounts become the maximum: then nothing else fits beside the pod."""
    return {name: requested_amount(text) for name, text in amounts.items()}


def _wholes(amounts: Billionths) -> dict[str, int]:
    found = {name: _whole(name, amount) for name, amount in amounts.items() if _is_requested(name)}
    return {name: amount for name, amount in found.items() if amount}


def _simple(name: str, text: str) -> int:
    """One quantity."""
    if not _is_requested(name):
        return 0
    number, milli = (text[:-1], True) if text.endswith("m") else (text, False)
    if number.isdecimal() and number.isascii() and len(number) < 16 and milli <= (name == CPU):
        return min(MOST, int(number) * (1000 if name == CPU and not milli else 1))
    return _whole(name, requested_amount(text))


def _whole(name: str, billionths: int) -> int:
    unit = 1_000_000 if name == CPU else 1_000_000_000
    return max(0, min(MOST, -(-billionths // unit)))  # the API server refuses negative amounts


@lru_cache(maxsize=10_000)
def _counts(name: str) -> bool:
    """Whether the scheduler counts the resource: four native ones, huge pages, volume limits, names with a domain."""
    if name in _KNOWN or "kubernetes.io/" in name or name.startswith((_HUGE_PAGES, "attachable-volumes-")):
        return True
    return "/" in name and not name.startswith("requests.")


@lru_cache(maxsize=10_000)
def _is_requested(name: str) -> bool:
    """`pods` is excluded: each pod counts as one."""
    return name != PODS and _counts(name)


# --- GPUs that pods use on their node: the requests of their containers, or the count of their GpuClaim if larger.
#
# The scheduler of GpuClaims allocates `count` GPUs to each pod of a claim, whether or not its containers request GPUs.
# A pod with both does not use the sum: its requests are for the GPUs of its claim.
#
# Lent GPUs are those with a held Lease. The holders are pods that are counted already, so the GPUs in use on a node are
# the maximum of both sums, never their sum.

Lent = Mapping[str, int]  # GPUs, by node name

_MOST = 1_000_000  # far more than a node has; larger values are errors


def claim_of(pod: Pod) -> tuple[str, str]:
    """Namespace and name of the pod's GpuClaim; empty name if there is none."""
    return pod.metadata.namespace, pod.metadata.annotations.claim


class GpuRequests(msgspec.Struct, frozen=True):
    """GPU requests of pods, given the observed GpuClaims."""

    counts: Mapping[tuple[str, str], int] = {}  # of each readable claim, by namespace and name

    def claimed_by(self, pod: Pod) -> int:
        """The count of the pod's claim; 0 without a claim."""
        return self.counts.get(claim_of(pod), 0) if pod.metadata.annotations.claim else 0

    def of(self, pod: Pod) -> int:
        """GPUs that the pod uses on its node."""
        return max(pod.gpus, self.claimed_by(pod))

    def differing(self, other: "GpuRequests") -> frozenset[tuple[str, str]]:
        """Claims whose counts differ."""
        return frozenset(name for name, _ in self.counts.items() ^ other.counts.items())


def read_gpu_requests(policies: Iterable[Unstructured]) -> GpuRequests:
    """From all objects of reconciler's kinds."""
    claims = (each for each in policies if each.kind == "GpuClaim")
    return GpuRequests(
        {(each.metadata.namespace, each.name): count for each in claims if (count := count_of(each.spec))}
    )


def count_of(spec: Mapping[str, Any]) -> int:
    """GPUs per pod of a claim, from its unstructured spec; 0 if unreadable."""
    devices = spec.get("devices")
    count = devices.get("count") if isinstance(devices, dict) else None
    return min(max(0, count), _MOST) if type(count) is int else 0


def lent_by(leases: Iterable[Lease]) -> Lent:
    """One Lease exists per GPU, owned by the Node."""
    held = (each for each in leases if each.spec.holder_identity)
    return Counter(owner.name for each in held for owner in each.metadata.owner_references if owner.kind == "Node")
