"""Existing nodes as capacity for pods, requirements of pods, and DaemonSet overhead of new nodes."""

from collections.abc import Callable, Collection, Sequence

import msgspec
import numpy as np

from reconciler.fleet.amounts import pod_request
from reconciler.fleet.filters.chain import FilterChain
from reconciler.fleet.filters.node import tolerated
from reconciler.fleet.pod_classes import Needs, PodClass
from reconciler.fleet.rows import Mask
from reconciler.fleet.snapshot.snapshot import Snapshot
from reconciler.fleet.topology.term_counts import Counting
from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node, NodeSpec, NodeStatus, NodeTaint
from reconciler.model.cluster.pod import Pod
from reconciler.plan.karpenter.drift import Demands
from reconciler.protocol.preconditions import Object
from reconciler.simulate.actors.karpenter.cloud import WELL_KNOWN, alternatives, compatible
from reconciler.simulate.actors.karpenter.cluster_state import Knowledge, NodePool
from reconciler.simulate.actors.karpenter.machines import node_name_of
from reconciler.simulate.actors.scheduler import avoided_nodes
from reconciler.simulate.objects import labels_of, taints_of

# --- Owner of existing and launching nodes during scheduling; within a fork of the snapshot.
#
# Nodes that are being removed are excluded. Machines that are not registered or not ready are added in their expected
# state. Pods go to the first node that accepts them: ready nodes first, then by name. A PreferNoSchedule taint counts
# like any other until all other relaxations are exhausted.

_PREFER = "PreferNoSchedule"

# Taints that are removed during node startup.
_PASSING = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "karpenter.sh/unregistered",
    }
)


class ExistingCapacity:
    """Capacity without new launches."""

    def __init__(self, known: Knowledge, snapshot: Snapshot, leaving: Collection[str]) -> None:
        self._snapshot = snapshot
        self._judging = snapshot.part(FilterChain)
        self._claim_at: dict[int, str] = {}
        self._avoided: dict[tuple[Needs, int], Mask | None] = {}
        self._leave(known, leaving)
        gone = {*leaving, *known.machines.marked}
        coming = [
            self._bring(known.machines.claims[name], known) for name in sorted(known.machines.fresh.keys() - gone)
        ]
        rows = snapshot.rows
        ready = rows.alive.copy()
        ready[coming] = False
        first = rows.order[ready[rows.order]]
        self._order = np.concatenate((first, np.array(coming, np.intp)))
        self._claims = known.machines

    def put(self, pod_class: PodClass, tolerant: bool) -> int | None:
        """Books a pod on the first node that accepts it; returns the row."""
        if not len(self._order):
            return None
        takes = self._judging.mask(pod_class)[self._order]
        if not tolerant and (avoided := self._avoids(pod_class.needs)) is not None:
            takes &= ~avoided[self._order]
        place = int(takes.argmax())
        if not takes[place]:
            return None
        row = int(self._order[place])
        self._snapshot.add(pod_class, row)
        return row

    def claim_at(self, row: int) -> str:
        """The NodeClaim of a row; empty if there is none."""
        if row in self._claim_at:
            return self._claim_at[row]
        body = self._claims.claim_of(self._snapshot.rows.node(row).name)
        return body["metadata"]["name"] if body is not None else ""

    def is_coming(self, row: int) -> bool:
        """Whether the node is not ready yet."""
        return row in self._claim_at

    def _leave(self, known: Knowledge, leaving: Collection[str]) -> None:
        rows, machines = self._snapshot.rows, known.machines
        bodies = [
            *machines.leaving_claims(),
            *(machines.claims[name] for name in sorted(leaving) if name in machines.claims),
        ]
        for body in bodies:
            row = rows.row_of.get(node_name_of(body))
            if row is not None and rows.alive[row]:
                self._snapshot.take_away(row)

    def _bring(self, claim: Object, known: Knowledge) -> int:
        """Adds a claim's machine in the state of its future ready node."""
        snapshot, name = self._snapshot, claim["metadata"]["name"]
        node = known.machines.node_of(claim)
        booked: dict[PodClass, int] = {}
        if node is not None and (row := snapshot.rows.row_of.get(node["metadata"]["name"])) is not None:
            booked = dict(snapshot.booked_on(row))
            snapshot.take_away(row)
        row = snapshot.bring(_as_it_will_be(claim, node))
        self._claim_at[row] = name
        for pod_class, count in booked.items():
            snapshot.add(pod_class, row, count)
        for pod in known.daemons():
            daemon = snapshot.classes.of(pod)
            if daemon not in booked and self._judging.fits(daemon, row):
                snapshot.add(daemon, row)
        return row

    def _avoids(self, needs: Needs) -> Mask | None:
        rows = self._snapshot.rows
        key = needs, rows.version
        if key not in self._avoided:
            self._avoided[key] = avoided_nodes(self._snapshot, needs)
        mask = self._avoided[key]
        return mask if mask is None or len(mask) == rows.capacity else None


def shut_out(taints: Collection[NodeTaint], pod: Pod, tolerant: bool) -> bool:
    """Whether a taint of a new node excludes a pod."""
    return any(
        not (tolerant and each.effect == _PREFER) and not tolerated(each, pod.spec.tolerations) for each in taints
    )


def _as_it_will_be(claim: Object, node: Object | None) -> Node:
    metadata, spec, status = claim["metadata"], claim.get("spec") or {}, claim.get("status") or {}
    body, allocatable = node or claim, status.get("allocatable") or {}
    if node is not None:  # devices count only once their plugin has published them
        published = (node.get("status") or {}).get("allocatable") or {}
        allocatable = allocatable | {name: text for name, text in published.items() if text != "0"}
    passing = {(each["key"], each["effect"]) for each in spec.get("startupTaints") or ()}
    kept = tuple(
        NodeTaint(each["key"], each["effect"], each.get("value", ""))
        for each in taints_of(body)
        if each["key"] not in _PASSING and (each["key"], each["effect"]) not in passing
    )
    labels = {names.HOSTNAME: metadata["name"], **labels_of(body)}
    return Node(
        Metadata(f"coming/{metadata['name']}", labels=labels),
        NodeSpec(taints=kept),
        NodeStatus(allocatable=allocatable),
    )


# --- DaemonSet overhead of a new node of a NodePool.


def overhead_of(daemons: Sequence[Pod], pool: NodePool, snapshot: Snapshot) -> dict[str, int]:
    """The sum over DaemonSets."""
    result: dict[str, int] = {}
    for pod in daemons:
        requirements = wanting(pod, snapshot)
        if shut_out(pool.taints, pod, tolerant=True):
            continue
        if any(compatible(pool.demands, each, WELL_KNOWN) for each in requirements.alternatives):
            for name, amount in requirements.request.items():
                result[name] = result.get(name, 0) + amount
    return result


# --- Requirements of a pod class for a new node.


class PodRequirements(msgspec.Struct, frozen=True):
    """Computed once per class."""

    pod_class: PodClass
    request: dict[str, int]
    alternatives: tuple[Demands, ...]
    is_plain: bool  # independent of other pods and of volumes


def wanting(pod: Pod, snapshot: Snapshot) -> PodRequirements:
    """Evaluates a pod on any node, or pending, as its replacement."""
    pod_class = snapshot.classes.of(pod).anew
    counting = snapshot.part(Counting)
    counting.catch_up(snapshot)
    request = pod_request(pod_class.pod) | {"pods": 1}
    return PodRequirements(pod_class, request, alternatives(pod), pod_class.is_plain and counting.is_idle)


def hangs_on_zone(pod_class: PodClass, snapshot: Snapshot) -> bool:
    """Whether placement depends on pods in zones, or on volumes."""
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
    """The number of pods per zone that count for the pod's spread."""
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
