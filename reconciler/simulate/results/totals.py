"""Owner of what is where in an imagined cluster, counted: each write costs the same, however large the cluster is."""

import msgspec

from reconciler.fleet.gpu_requests import GpuRequests, count_of
from reconciler.model.instant import Instant
from reconciler.simulate.objects import Key, ObjectWrite
from reconciler.simulate.results.read_objects import ObservedNode, ObservedPod, read_node, read_pod


class Totals(msgspec.Struct, gc=False):
    """Of one pool: its nodes without those that are being deleted."""

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
    """What is on a node, which need not be known yet itself."""

    pods: dict[Key, None]
    gpus: int = 0
    counting: int = 0


class PoolTotalsTracker:
    """Told of each write; `pools` has what the nodes of each come to."""

    def __init__(self) -> None:
        self.pools: dict[str, Totals] = {}
        self.nodes: dict[str, ObservedNode] = {}
        self.pods: dict[Key, ObservedPod] = {}
        self.waiting: dict[Key, Instant] = {}  # since when, the longest first
        self.waiting_gpus = 0
        self.smart: dict[Key, None] = {}  # smart pods, as they came
        self.placed: dict[Key, Instant] = {}  # pods on nodes, since when
        self.flipped: dict[str, Instant] = {}  # nodes, since when they are busy, or empty
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
        """The pods bound to it, finished ones included, in the order in which they came."""
        on = self._on.get(node)
        return tuple(on.pods) if on else ()

    def gpus_on(self, node: str) -> int:
        """That unfinished pods ask for."""
        on = self._on.get(node)
        return on.gpus if on else 0

    def counting_on(self, node: str) -> int:
        """Pods because of which it is busy."""
        on = self._on.get(node)
        return on.counting if on else 0

    def _note_pod(self, written: ObjectWrite, now: Instant) -> None:
        key, before = written.key, self.pods.get(written.key)
        self._move(key, before, read_pod(written.after, GpuRequests(self._counts)) if written.after else None, now)

    def _note_claim(self, written: ObjectWrite, now: Instant) -> None:
        """Its pods ask for as many GPUs as it says now."""
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
        """Puts the node's part into its pool, or takes it out."""
        node = self.nodes.get(name)
        if node is None or node.is_leaving:
            return
        used = min(node.gpus, self.gpus_on(name))
        part = Totals(1, int(self.counting_on(name) > 0), node.gpus, used, int(node.is_tainted))
        self.pools.setdefault(node.pool, Totals()).add(part, sign)
