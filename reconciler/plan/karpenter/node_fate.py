"""Fate of one node under an intended change: an ordered table, first match wins."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from reconciler.fleet.amounts import GpuRequests
from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.pod import Pod, Toleration
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Cause, Fate, Hindrance, Homeless
from reconciler.model.quantity import whole_number
from reconciler.plan.karpenter.budgets import allowed_at_once, nanoseconds
from reconciler.plan.nodes.eviction import FOREVER, EvictionObstacle, PodBudgets, stays_until, why_immovable
from reconciler.plan.sums import MachineType, machine_of

# --- Nodes of a NodePool: the NodeClaim, its Node once it exists, and its pods.


class Surveyed(msgspec.Struct, frozen=True, gc=False):
    """A node; at least one of claim and node exists."""

    claim: NodeClaim | None
    node: Node | None
    pods: Sequence[Pod]
    now: Instant

    @property
    def name(self) -> str:
        if self.node is not None:
            return self.node.name
        return (self.claim.status.node_name or self.claim.name) if self.claim is not None else ""

    @property
    def gpus(self) -> int:
        if self.node is not None:
            return self.node.gpus
        return whole_number(self.claim.status.allocatable.get(names.NVIDIA_GPU, "0")) if self.claim is not None else 0

    @property
    def capacity(self) -> Mapping[str, str]:
        """Capacity of the node, including used capacity; for a machine that has not joined, the expected capacity."""
        if self.node is not None and self.node.status.capacity:
            return self.node.status.capacity
        return self.claim.status.capacity if self.claim is not None else {}

    @property
    def machine(self) -> MachineType | None:
        """The machine that is paid for; None before its launch."""
        if self.node is not None:
            return machine_of(self.node.metadata.labels)
        is_bought = self.claim is not None and self.claim.status.provider_id
        return machine_of(self.claim.metadata.labels) if self.claim is not None and is_bought else None

    @property
    def is_leaving(self) -> bool:
        node, claim = self.node, self.claim
        going = node is not None and (node.metadata.leaving or node.taint(names.DISRUPTED) is not None)
        return going or (claim is not None and (claim.metadata.leaving or claim.says("InstanceTerminating")))

    @property
    def is_kept(self) -> bool:
        one = self.node or self.claim
        return one is not None and one.metadata.annotations.do_not_disrupt == "true"

    @property
    def bound_seconds(self) -> int | None:
        """The longest time that its pods can delay its deletion."""
        written = self.claim.spec.termination_grace_period if self.claim is not None else ""
        try:
            return -(-nanoseconds(written) // 1_000_000_000)
        except ValueError:
            return None


class NodePoolSurvey(msgspec.Struct, frozen=True):
    """One NodePool of a fleet at one time."""

    fleet: Fleet
    node_pool: str
    now: Instant

    def of_claim(self, claim: NodeClaim) -> Surveyed:
        node = self.fleet.node(claim.status.node_name) if claim.status.node_name else None
        name = claim.status.node_name or claim.name
        return Surveyed(claim, node, self.fleet.pods_on(name), self.now)

    def all(self) -> Iterator[Surveyed]:
        """Every NodeClaim, and every node of the NodePool without a NodeClaim."""
        claims = self.fleet.claims_of(self.node_pool)
        for claim in claims:
            yield self.of_claim(claim)
        named = {claim.status.node_name for claim in claims}
        for node in self.fleet.nodes_of(self.node_pool):
            if node.name not in named and node.metadata.labels.get(names.KARPENTER_POOL) == self.node_pool:
                yield Surveyed(None, node, self.fleet.pods_on(node.name), self.now)

    def machines(self) -> Counter[MachineType]:
        """Machines that are paid for."""
        return Counter(surveyed_node.machine for surveyed_node in self.all() if surveyed_node.machine is not None)


# --- Outlook of one node for a disruption by Karpenter: pods to move, obstacles, duration.
#
# Rules of Karpenter: a finished or terminating pod is no obstacle; a DaemonSet pod never has to move, but its
# do-not-disrupt annotation or PodDisruptionBudget is an obstacle like any other's; obstacles of pods are limited by the
# terminationGracePeriod of the NodeClaim (not that of the NodePool, which may have changed since), whereas the
# annotation of the node itself has no time limit.

# Default of the API server for pods.
_DEFAULT_GRACE_SECONDS = 30


class NodeOutlook(msgspec.Struct, frozen=True, gc=False):
    """Outlook of one node, or of a NodeClaim without a node yet."""

    name: str
    machine: MachineType | None  # None: not launched yet
    gpus: int
    gpus_in_use: int
    pods: int  # pods that have to move
    leaving: bool  # already being deleted
    kept: bool  # the node itself is annotated: Karpenter does not begin
    held_by: tuple[Hindrance, ...]  # obstacles of its pods
    stalls: bool  # without a known end
    wait_seconds: int  # until Karpenter may begin
    drain_seconds: int  # from then on, until its pods are gone


class _EvictionDelay(msgspec.Struct, frozen=True, gc=False):
    by: frozenset[Hindrance]
    until: Instant  # FOREVER: no known end


def outlook(surveyed_node: Surveyed, budgets: PodBudgets, gpu_requests: GpuRequests) -> NodeOutlook:
    moving = moving_pods(surveyed_node)
    held = _held(surveyed_node, budgets)
    bound = surveyed_node.bound_seconds
    given = (pod.spec.termination_grace_period_seconds for pod in moving)
    grace = max((_DEFAULT_GRACE_SECONDS if seconds is None else seconds for seconds in given), default=0)
    endless = held.until == FOREVER
    wait = 0 if endless else max(0, -((surveyed_node.now - held.until) // 1000))
    # With a limit, Karpenter begins at once, and waits for the pods until then.
    begins_in = wait if bound is None else 0
    drains_in = grace if bound is None else bound if endless else min(bound, wait + grace)
    gpus = surveyed_node.gpus
    return NodeOutlook(
        name=surveyed_node.name,
        machine=surveyed_node.machine,
        gpus=gpus,
        gpus_in_use=min(gpus, sum(map(gpu_requests.of, moving))),
        pods=len(moving),
        leaving=surveyed_node.is_leaving,
        kept=surveyed_node.is_kept,
        held_by=tuple(sorted(held.by)),
        stalls=endless and bound is None,
        wait_seconds=begins_in,
        drain_seconds=drains_in,
    )


def held_by(surveyed_node: Surveyed, budgets: PodBudgets) -> frozenset[Hindrance]:
    """Obstacles of its pods."""
    return _held(surveyed_node, budgets).by


def moving_pods(surveyed_node: Surveyed) -> list[Pod]:
    """Pods that need another node."""
    return [pod for pod in surveyed_node.pods if pod.is_reschedulable and not _goes_by_itself(pod)]


def _held(surveyed_node: Surveyed, budgets: PodBudgets) -> _EvictionDelay:
    by: set[Hindrance] = set()
    until = Instant(0)
    for pod in surveyed_node.pods:
        why = why_immovable(pod, budgets, surveyed_node.now)
        if why is EvictionObstacle.DO_NOT_DISRUPT:
            by.add(_ANNOTATED)
            until = max(until, stays_until(pod))
        elif why is not None and not outlasts_the_drain(pod):
            by.update(Hindrance(each.title, "pod_budget") for each in budgets.of(pod))
            until = FOREVER
    return _EvictionDelay(frozenset(by), until)


def _goes_by_itself(pod: Pod) -> bool:
    """A terminating pod needs no new node, except that of a StatefulSet: its successor starts only after it is gone."""
    if not pod.metadata.leaving:
        return False
    owner = pod.metadata.controller
    return owner is None or owner.kind != "StatefulSet"


def outlasts_the_drain(pod: Pod) -> bool:
    """Karpenter never evicts a pod that tolerates its disruption taint, so budgets do not matter."""
    return any(_tolerates_the_drain(each) for each in pod.spec.tolerations)


def _tolerates_the_drain(toleration: Toleration) -> bool:
    if toleration.effect not in {"", "NoSchedule"} or toleration.key not in {"", names.DISRUPTED}:
        return False
    exists = toleration.operator == "Exists"
    return exists or (bool(toleration.key) and not toleration.value)


# Karpenter does not begin with a node whose pods would not all fit elsewhere.
FITS_NOWHERE = Hindrance("pods that would fit on no other node", "no_place")
_ANNOTATED = Hindrance(names.DO_NOT_DISRUPT, "annotation")

Intent = Literal["drifts", "deleted", "undrifted"]


class Rules(msgspec.Struct, frozen=True):
    """Rules of a NodePool's spec for drifted nodes."""

    node_pool: str
    spec: Mapping[str, Any]
    nodes: int  # the base of percentages
    now: Instant

    def wave(self, gone: int = 0) -> int | None:
        """Number of nodes at once, after some are gone; None: no budget limits it."""
        return allowed_at_once(self.spec, self.nodes - gone, "Drifted", self.now)


class Due(msgspec.Struct, frozen=True, gc=False):
    """A node, its intended change, and the rules."""

    ahead: NodeOutlook
    intent: Intent
    cause: Cause
    rules: Rules
    budgets_are_shut: bool  # they allow no node at all
    homeless: tuple[Homeless, ...] = ()  # its pods that would fit on no node
    room: int | None = None  # number of replacements at once; None: unlimited

    @property
    def held_by(self) -> tuple[Hindrance, ...]:
        """Obstacles of the node; a departing node is past its budgets and its own annotation."""
        if self.intent == "undrifted":
            return ()
        hindrances = set(self.ahead.held_by)
        if self.intent == "drifts" and not self.ahead.leaving:
            node_pool = f"NodePool/{self.rules.node_pool}"
            own = (
                (self.ahead.kept, _ANNOTATED),
                (self.budgets_are_shut, Hindrance(f"disruption budget of {node_pool}", "node_budget")),
                (self._has_no_room, Hindrance(f"limits of {node_pool}", "limits")),
                (bool(self.homeless), FITS_NOWHERE),
            )
            hindrances |= {hindrance for applies, hindrance in own if applies}
        return tuple(sorted(hindrances))

    @property
    def has_no_end(self) -> bool:
        kept_back = self.ahead.kept or self.budgets_are_shut or self._has_no_room or bool(self.homeless)
        return self.ahead.stalls or (kept_back and not self.ahead.leaving)

    @property
    def needs_another(self) -> bool:
        """Whether a replacement is launched first, in a NodePool of a fixed size even for an empty node."""
        return self.ahead.pods > 0 or self.rules.spec.get("replicas") is not None

    @property
    def _has_no_room(self) -> bool:
        return self.room == 0 and self.needs_another

    @property
    def fate(self) -> Fate:
        return next(fate for fate, applies in FATES if applies(self))


FATES: tuple[tuple[Fate, Callable[[Due], bool]], ...] = (
    ("undrifted", lambda due: due.intent == "undrifted"),
    ("deleted", lambda due: due.intent == "deleted"),
    ("blocked", lambda due: due.has_no_end),
    ("replaced", lambda due: due.needs_another),
    ("removed", lambda _: True),
)
