"""What pods ask for and nodes have, in the whole numbers that kube-scheduler counts in.

cpu is counted in thousandths, all else in units; what lies between two is rounded up, and only after adding. A pod asks
for what its containers and sidecars ask for together, or for the most of what runs before them where that is more; what
it says of itself as a whole comes first; what running a pod costs is added. On its node it is counted with the most of
what it asks for, was granted and really has: they differ while it is resized in place.
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

Billionths = dict[str, int]  # of a resource, by its name

_KNOWN = frozenset({CPU, MEMORY, STORAGE, PODS})
_HUGE_PAGES = "hugepages-"


class _PodAllocation(msgspec.Struct, frozen=True):
    """What a pod was given where it is."""

    containers: Mapping[str, ContainerStatus] = {}  # by name
    whole: PodStatus | None = None  # where it says what the pod as a whole has
    feasible: bool = True  # the node can give what the pod asks for by now


_NOTHING = _PodAllocation()


def counted(amounts: Amounts) -> dict[str, int]:
    """What a node has; resources that the scheduler does not look at are left out."""
    return {name: _whole(name, amount_offered(text)) for name, text in amounts.items() if _counts(name)}


def pod_request(pod: Pod) -> dict[str, int]:
    """What the pod asks of a node that it is to come to; without what it asks nothing of."""
    spec = pod.spec
    if len(spec.containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None:
        resources = spec.containers[0].resources
        requested = resources.requests if resources.requests.keys() >= resources.limits.keys() else _requests(resources)
        return {name: amount for name, text in requested.items() if (amount := _simple(name, text))}
    return _wholes(_requested_amounts(pod, _NOTHING))


def pod_held(pod: Pod) -> dict[str, int]:
    """What the pod takes of the node where it is."""
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
    """Whether the pod was plainly given what it asks for; quick, and no where that takes more than a look."""
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
    """What the pod says it needs as a whole, for the few resources for which that can be said."""
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
    """A limit without a request asks for as much: so the API server writes it into each pod."""
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
    """What can't be read is the most: then nothing else fits beside the pod."""
    return {name: requested_amount(text) for name, text in amounts.items()}


def _wholes(amounts: Billionths) -> dict[str, int]:
    found = {name: _whole(name, amount) for name, amount in amounts.items() if _is_requested(name)}
    return {name: amount for name, amount in found.items() if amount}


def _simple(name: str, text: str) -> int:
    """One quantity by itself."""
    if not _is_requested(name):
        return 0
    number, milli = (text[:-1], True) if text.endswith("m") else (text, False)
    if number.isdecimal() and number.isascii() and len(number) < 16 and milli <= (name == CPU):
        return min(MOST, int(number) * (1000 if name == CPU and not milli else 1))
    return _whole(name, requested_amount(text))


def _whole(name: str, billionths: int) -> int:
    unit = 1_000_000 if name == CPU else 1_000_000_000
    return max(0, min(MOST, -(-billionths // unit)))  # the API server refuses amounts below zero


@lru_cache(maxsize=10_000)
def _counts(name: str) -> bool:
    """The four that the scheduler knows, huge pages, places for volumes, and whatever has a domain."""
    if name in _KNOWN or "kubernetes.io/" in name or name.startswith((_HUGE_PAGES, "attachable-volumes-")):
        return True
    return "/" in name and not name.startswith("requests.")


@lru_cache(maxsize=10_000)
def _is_requested(name: str) -> bool:
    """A pod is one pod, whatever it says."""
    return name != PODS and _counts(name)


# --- How many GPUs pods ask of their node: what their containers request, or the count of their GpuClaim if that is
# more.
#
# The scheduler of GpuClaims allocates `count` GPUs to each pod of a claim, whether the containers request any or not. A
# pod that is given both does not get their sum: what it requests are the GPUs that its claim is for.
#
# GPUs that are lent are those with a Lease that somebody holds. Leases are held by pods that are counted already, so
# that of a node the larger of both sums is in use, and never their sum.

Lent = Mapping[str, int]  # GPUs, by the name of a node

_MOST = 1_000_000  # far more than a node has; whoever wrote more meant no node


def claim_of(pod: Pod) -> tuple[str, str]:
    """Namespace and name of its GpuClaim; no name where it has none."""
    return pod.metadata.namespace, pod.metadata.annotations.claim


class GpuRequests(msgspec.Struct, frozen=True):
    """By the GpuClaims as they were seen."""

    counts: Mapping[tuple[str, str], int] = {}  # of each claim that can be read, by namespace and name

    def claimed_by(self, pod: Pod) -> int:
        """The count of its claim; 0 where the pod has none."""
        return self.counts.get(claim_of(pod), 0) if pod.metadata.annotations.claim else 0

    def of(self, pod: Pod) -> int:
        """GPUs of its node that are in use while the pod is there."""
        return max(pod.gpus, self.claimed_by(pod))

    def differing(self, other: "GpuRequests") -> frozenset[tuple[str, str]]:
        """Claims whose counts are not the same."""
        return frozenset(name for name, _ in self.counts.items() ^ other.counts.items())


def read_gpu_requests(policies: Iterable[Unstructured]) -> GpuRequests:
    """By all objects of our kinds."""
    claims = (each for each in policies if each.kind == "GpuClaim")
    return GpuRequests(
        {(each.metadata.namespace, each.name): count for each in claims if (count := count_of(each.spec))}
    )


def count_of(spec: Mapping[str, Any]) -> int:
    """GPUs for each pod of a claim, from its spec as it was written; 0 where that can't be read."""
    devices = spec.get("devices")
    count = devices.get("count") if isinstance(devices, dict) else None
    return min(max(0, count), _MOST) if type(count) is int else 0


def lent_by(leases: Iterable[Lease]) -> Lent:
    """There is a Lease for each GPU, owned by the Node."""
    held = (each for each in leases if each.spec.holder_identity)
    return Counter(owner.name for each in held for owner in each.metadata.owner_references if owner.kind == "Node")
