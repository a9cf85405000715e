"""Totals of a simulated cluster: pods and GPUs by pool and node, and the cost of machines."""

from collections import Counter

import msgspec

from reconciler.fleet.amounts import GpuRequests, count_of
from reconciler.model import names
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant
from reconciler.plan.sums import Bill, MachineType, Tariff, machine_of, tariffs
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cloud import MarketOffering
from reconciler.simulate.api_server import DISRUPTED
from reconciler.simulate.objects import (
    Key,
    ObjectWrite,
    annotations_of,
    condition_of,
    declared_pool_of,
    is_finished,
    is_leaving,
    labels_of,
    node_of,
    taints_of,
)

# --- Totals are updated from each written object of a simulated cluster.

SMART = "smart-scheduler"  # component label of smart pods
_OURS = frozenset({names.DELETION_TIME, names.DRAINING})


class ObservedPod(msgspec.Struct, frozen=True, gc=False):
    """The counted properties of a pod."""

    node: str
    gpus: int
    is_waiting: bool  # pending
    is_placed: bool  # on a node, using its requested resources
    counts: bool  # a workload pod
    is_smart: bool = False  # a smart pod: its own wait and loss do not count
    claim: str = ""  # name of its GpuClaim
    requested: int = 0  # GPUs, without those of its claim


class ObservedNode(msgspec.Struct, frozen=True, gc=False):
    """The counted properties of a node."""

    pool: str
    gpus: int
    is_leaving: bool
    is_tainted: bool  # with a removal taint of reconciler
    machine: MachineType
    provider_id: str


def read_pod(body: Object, gpu_requests: GpuRequests) -> ObservedPod:
    """`gpu_requests`: from the existing GpuClaims."""
    spec, metadata, node = body.get("spec") or {}, body["metadata"], node_of(body)
    is_over = is_finished(body)
    is_smart = labels_of(body).get(names.COMPONENT) == SMART
    is_waiting = not (node or is_over or is_smart or is_leaving(body))
    counts = not is_over and not _stays(body)
    claim, requested = annotations_of(body).get(names.CLAIM, ""), gpus_of(spec)
    gpus = max(requested, gpu_requests.counts.get((metadata.get("namespace", ""), claim), 0)) if claim else requested
    return ObservedPod(node, gpus, is_waiting, bool(node) and not is_over, counts, is_smart, claim, requested)


def read_node(body: Object) -> ObservedNode:
    return ObservedNode(
        pool=declared_pool_of(body),
        gpus=gpus_in((body.get("status") or {}).get("allocatable") or {}),
        is_leaving=is_leaving(body),
        is_tainted=any(each["key"] in _OURS for each in taints_of(body)),
        machine=machine_of(labels_of(body)),
        provider_id=(body.get("spec") or {}).get("providerID") or body["metadata"]["name"],
    )


def gpus_in(amounts: Object) -> int:
    found = str(amounts.get(names.NVIDIA_GPU, "0"))
    return int(found) if found.isdigit() else 0


def gpus_of(spec: Object) -> int:
    """Requested GPUs: the sum over containers, or the largest init container."""
    wanted = sum(_requested_gpus(each) for each in spec.get("containers") or ())
    return max([wanted, *(_requested_gpus(each) for each in spec.get("initContainers") or ())])


def _requested_gpus(container: Object) -> int:
    resources = container.get("resources") or {}
    return gpus_in(resources.get("requests") or {}) or gpus_in(resources.get("limits") or {})


def is_evicted(before: Object, after: Object) -> bool:
    """Whether this write is an eviction."""
    if is_leaving(before) or not is_leaving(after):
        return False
    found = condition_of(after, DISRUPTED["type"])
    return found is not None and found.get("reason") == DISRUPTED["reason"]


def _stays(body: Object) -> bool:
    """Like Pod.stays_with_its_node, for an undecoded object."""
    annotations, owners = annotations_of(body), body["metadata"].get("ownerReferences") or ()
    if names.MIRROR_POD in annotations or annotations.get(names.DAEMONSET_POD) == "true":
        return True
    return any(each.get("controller") and each["kind"] in {"DaemonSet", "Node"} for each in owners)


class Totals(msgspec.Struct, gc=False):
    """Of one pool: its nodes that are not being deleted."""

    nodes: int = 0
    busy_nodes: int = 0
    gpus: int = 0
    gpus_used: int = 0
    tainted: int = 0

    def add(self, other: "Totals", sign: int) -> None:
        self.nodes += sign * other.nodes
        self.busy_nodes += sign * other.busy_nodes
        self.gpus += sign * other.gpus
        self.gpus_used += sign * other.gpus_used
        self.tainted += sign * other.tainted


class _On(msgspec.Struct):
    """The pods of a node, which may not be known yet."""

    pods: dict[Key, None]
    gpus: int = 0
    counting: int = 0


_NOBODY = _On({})


class PoolTotalsTracker:
    """Updated with each write; `pools` has the totals of each pool."""

    def __init__(self) -> None:
        self.pools: dict[str, Totals] = {}
        self.nodes: dict[str, ObservedNode] = {}
        self.pods: dict[Key, ObservedPod] = {}
        self.waiting: dict[Key, Instant] = {}  # since when, longest first
        self.waiting_gpus = 0
        self.smart: dict[Key, None] = {}  # smart pods, in order of arrival
        self.placed: dict[Key, Instant] = {}  # pods on nodes, since when
        self.flipped: dict[str, Instant] = {}  # nodes, since when they are busy or empty
        self._on: dict[str, _On] = {}
        self._counts: dict[tuple[str, str], int] = {}  # of GpuClaims

    def note(self, written: ObjectWrite, now: Instant) -> None:
        kind = written.key[0]
        if kind == "Pod":
            self._note_pod(written, now)
        elif kind == "Node":
            self._note_node(written, now)
        elif kind == "GpuClaim":
            self._note_claim(written, now)

    def pods_on(self, node: str) -> tuple[Key, ...]:
        """The pods bound to the node, including finished ones, in order of arrival."""
        return tuple(self._on.get(node, _NOBODY).pods)

    def gpus_on(self, node: str) -> int:
        """GPUs requested by unfinished pods."""
        return self._on.get(node, _NOBODY).gpus

    def counting_on(self, node: str) -> int:
        """Workload pods on the node."""
        return self._on.get(node, _NOBODY).counting

    def _note_pod(self, written: ObjectWrite, now: Instant) -> None:
        key, before = written.key, self.pods.get(written.key)
        self._move(key, before, read_pod(written.after, GpuRequests(self._counts)) if written.after else None, now)

    def _note_claim(self, written: ObjectWrite, now: Instant) -> None:
        """Updates the GPU counts of a changed claim's pods."""
        name = written.key[1:]
        count = count_of(written.after.get("spec") or {}) if written.after else 0
        if count == self._counts.get(name, 0):
            return
        self._counts[name] = count
        for key in [key for key, pod in self.pods.items() if (key[1], pod.claim) == name]:
            pod = self.pods[key]
            self._move(key, pod, msgspec.structs.replace(pod, gpus=max(pod.requested, count)), now)

    def _move(self, key: Key, before: ObservedPod | None, after: ObservedPod | None, now: Instant) -> None:
        if before == after:
            return
        nodes = sorted({each.node for each in (before, after) if each is not None and each.node})
        were_busy = [self.counting_on(node) > 0 for node in nodes]
        for node in nodes:
            self._count(node, -1)
        self._take(key, before)
        self._put(key, after, now)
        for node, was_busy in zip(nodes, were_busy, strict=True):
            self._count(node, 1)
            if node in self.nodes and was_busy != (self.counting_on(node) > 0):
                self.flipped[node] = now

    def _take(self, key: Key, pod: ObservedPod | None) -> None:
        if pod is None:
            return
        del self.pods[key]
        if pod.is_smart:
            self.smart.pop(key, None)
        if pod.node:
            on = self._on[pod.node]
            del on.pods[key]
            on.gpus -= pod.gpus * pod.is_placed
            on.counting -= pod.counts
            if not on.pods:
                del self._on[pod.node]
        if pod.is_waiting:
            self.waiting_gpus -= pod.gpus

    def _put(self, key: Key, pod: ObservedPod | None, now: Instant) -> None:
        if pod is None or not pod.is_waiting:
            self.waiting.pop(key, None)
        if pod is None or not pod.is_placed:
            self.placed.pop(key, None)
        else:
            self.placed.setdefault(key, now)
        if pod is None:
            return
        self.pods[key] = pod
        if pod.is_smart:
            self.smart[key] = None
        if pod.node:
            on = self._on.setdefault(pod.node, _On({}))
            on.pods[key] = None
            on.gpus += pod.gpus * pod.is_placed
            on.counting += pod.counts
        if pod.is_waiting:
            self.waiting.setdefault(key, now)
            self.waiting_gpus += pod.gpus

    def _note_node(self, written: ObjectWrite, now: Instant) -> None:
        name = written.key[2]
        self._count(name, -1)
        if written.after is None:
            self.nodes.pop(name, None)
            self.flipped.pop(name, None)
        else:
            self.flipped.setdefault(name, now)
            self.nodes[name] = read_node(written.after)
        self._count(name, 1)

    def _count(self, name: str, sign: int) -> None:
        """Adds the node to its pool's totals, or subtracts it."""
        node = self.nodes.get(name)
        if node is None or node.is_leaving:
            return
        used = min(node.gpus, self.gpus_on(name))
        part = Totals(1, int(self.counting_on(name) > 0), node.gpus, used, int(node.is_tainted))
        self.pools.setdefault(node.pool, Totals()).add(part, sign)


# --- Owner of the paid machines, and of their cost per hour.
#
# A machine is paid from its launch until both its NodeClaim and its Node are gone. Machines of a pool have the prices
# of the pool's policy, including its commitment; others have market prices; machines without a price are reported.


class _Paid(msgspec.Struct):
    """One machine, and its objects."""

    pool: str
    machine: MachineType
    gpus: int
    by: dict[Key, None]


class CostMeter:
    """Updated with each write; knows the current cost per hour."""

    def __init__(
        self, desired: Desired, market: tuple[MarketOffering, ...], priced_by: tuple[Desired, ...] = ()
    ) -> None:
        """`priced_by`: policies that define prices for the whole run; the first ones take precedence."""
        self._priced_by = priced_by
        self._prices: dict[MachineType, int] = {}
        for each in market:
            price = each.micro_dollars_per_hour
            machine = MachineType(each.instance_type, each.capacity_type)
            self._prices[machine] = max(price, self._prices.get(machine, 0))
        self._paid: dict[str, _Paid] = {}
        self._identity: dict[Key, str] = {}
        self._machines: dict[str, Counter[MachineType]] = {}
        self._bills: dict[str, Bill] = {}
        self._tariffs: dict[str, Tariff] = {}
        self.gpus = 0
        self.bought = 0  # machines launched in total
        self.follow(desired)

    def follow(self, desired: Desired) -> None:
        """Sets the policies that define prices, unless `priced_by` does."""
        self._tariffs = tariffs(self._priced_by or (desired,))
        for name in sorted({*self._machines, *self._tariffs, *self._bills}):
            self._bill(name)

    def micro_dollars_per_hour(self, pool: str) -> int:
        bill = self._bills.get(pool)
        return bill.micro_dollars_per_hour if bill else 0

    @property
    def pools(self) -> tuple[str, ...]:
        return tuple(sorted(self._bills))

    @property
    def total_per_hour(self) -> int:
        return sum(each.micro_dollars_per_hour for each in self._bills.values())

    @property
    def is_unpriced(self) -> bool:
        return any(each.unpriced for each in self._bills.values())

    def note(self, written: ObjectWrite) -> None:
        kind, key = written.key[0], written.key
        if kind not in {"Node", "NodeClaim"}:
            return
        paid = None if written.after is None else (_of_node if kind == "Node" else _of_claim)(written.after)
        known = self._identity.get(key)
        if known is not None and (paid is None or paid[0] != known):
            self._leave(known, key)
        if paid is not None:
            self._join(paid[0], paid[1], key)

    def _join(self, identity: str, paid: _Paid, key: Key) -> None:
        found = self._paid.get(identity)
        self._identity[key] = identity
        if found is None:
            self._paid[identity] = paid
            paid.by[key] = None
            self.bought += 1
            self._change(paid, 1)
            return
        found.by[key] = None
        if paid.gpus > found.gpus:  # a registered node has more information than its claim
            self.gpus += paid.gpus - found.gpus
            found.gpus = paid.gpus

    def _leave(self, identity: str, key: Key) -> None:
        del self._identity[key]
        paid = self._paid[identity]
        del paid.by[key]
        if not paid.by:
            del self._paid[identity]
            self._change(paid, -1)

    def _change(self, paid: _Paid, sign: int) -> None:
        self.gpus += sign * paid.gpus
        machines = self._machines.setdefault(paid.pool, Counter())
        machines[paid.machine] += sign
        if not machines[paid.machine]:
            del machines[paid.machine]
        self._bill(paid.pool)

    def _bill(self, pool: str) -> None:
        machines = self._machines.get(pool, Counter[MachineType]())
        if tariff := self._tariffs.get(pool):
            self._bills[pool] = tariff.bill(machines)
            return
        known = {each: count for each, count in machines.items() if each in self._prices}
        priced = sum(count * self._prices[each] for each, count in known.items())
        self._bills[pool] = Bill(priced, 0, sum(machines.values()) - sum(known.values()))


def _of_node(body: Object) -> tuple[str, _Paid]:
    observed = read_node(body)
    return observed.provider_id, _Paid(observed.pool, observed.machine, observed.gpus, {})


def _of_claim(body: Object) -> tuple[str, _Paid] | None:
    """None before the launch."""
    status = body.get("status") or {}
    if not status.get("providerID"):
        return None
    labels, capacity = labels_of(body), status.get("capacity") or status.get("allocatable") or {}
    pool = labels.get(names.KARPENTER_POOL, "")
    return status["providerID"], _Paid(pool, machine_of(labels), gpus_in(capacity), {})
