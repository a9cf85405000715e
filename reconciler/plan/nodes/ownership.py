"""Ownership of nodes: no planner acts on a node that another controller or a person handles.

The rules are checked in order, and the first matching rule is the reason.

Opt-outs are a separate case: no planner marks, drains or deletes a node that opts out of removal, and removal taints
of reconciler are removed from that node. Labels and all actions that keep the node go on.
"""

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.fleet.snapshot.pools import PoolTotals
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.desired import Declared, Desired
from reconciler.model.instant import Instant, later, moment
from reconciler.model.plan.decision import CodeFacts, Decision, Preconditions, Reason
from reconciler.model.plan.inputs import Inputs
from reconciler.model.policy.scaling import DrainPolicy, NodeProvisioner
from reconciler.plan.nodes.eviction import FOREVER, stays_until_of
from reconciler.plan.reasons import OfNode
from reconciler.plan.windows import provisioners_now


class NodeGone(OfNode, frozen=True):
    template = "{node} no longer exists."


class NodeLeaving(OfNode, frozen=True):
    template = "{node} is already being deleted."


class DisruptedByKarpenter(OfNode, frozen=True):
    template = "Karpenter is disrupting {node}: the node is left to Karpenter."


class DriverUpgrade(OfNode, frozen=True):
    template = (
        "the GPU driver of {node} is being upgraded ({upgrade}): no action is carried out on the node until the "
        "upgrade is done."
    )

    upgrade: str  # the state, as the GPU operator writes it


class CordonedByOthers(OfNode, frozen=True):
    template = (
        "{node} was cordoned, and not by reconciler: no action is carried out on the node until it is uncordoned."
    )
    by_person = True


class NodeOptedOut(OfNode, frozen=True):
    template = "{node} has the annotation {key}: {value}, so the node is neither drained nor deleted."
    by_person = True

    key: str  # of the annotation
    value: str


REASONS = (NodeGone, NodeLeaving, DisruptedByKarpenter, DriverUpgrade, CordonedByOthers, NodeOptedOut)


def untouchable(node: Node) -> Reason | None:
    """Why reconciler may not act on the node; None if it may."""
    facts = _why_untouchable(node)
    return Reason(facts) if facts is not None else None


def _why_untouchable(node: Node) -> CodeFacts | None:
    if node.metadata.leaving:
        return NodeLeaving(node=node.name)
    if node.taint(names.DISRUPTED) is not None:
        return DisruptedByKarpenter(node=node.name)
    if node.driver_upgrade:
        return DriverUpgrade(node=node.name, upgrade=node.driver_upgrade)
    # Drains of reconciler use a taint, never this field.
    return CordonedByOthers(node=node.name) if node.spec.unschedulable else None


def closed_nodes(pool: PoolTotals) -> int:
    """Number of empty nodes of a pool that others have cordoned. They stay, take no pods, and are no spare nodes."""
    return sum(untouchable(each.node) is not None for each in pool.empty if not _is_leaving(each.node))


def _is_leaving(node: Node) -> bool:
    return any(node.taint(key) is not None for key in (names.DRAINING, names.DISRUPTED))


class OptOut(msgspec.Struct, frozen=True, gc=False):
    """An annotation by which a node opts out of removal."""

    node: str
    key: str
    value: str
    until: Instant | None = None  # None: for as long as the node carries the annotation

    @property
    def reason(self) -> Reason:
        return Reason(NodeOptedOut(node=self.node, key=self.key, value=self.value))


def opt_out(node: Node, now: Instant) -> OptOut | None:
    """The annotation that protects the node from removal now: that of Cluster Autoscaler, else that of Karpenter, whose
    value may be a duration from the creation of the node.
    """
    annotations = node.metadata.annotations
    if annotations.scale_down_disabled == "true":
        return OptOut(node.name, names.SCALE_DOWN_DISABLED, annotations.scale_down_disabled)
    if not annotations.do_not_disrupt:
        return None
    until = stays_until_of(annotations.do_not_disrupt, node.metadata.creation_timestamp)
    if until <= now:
        return None
    return OptOut(node.name, names.DO_NOT_DISRUPT, annotations.do_not_disrupt, None if until == FOREVER else until)


def why_untouchable(fleet: Fleet, decision: Decision) -> Reason | None:
    """Why reconciler may not act on the subject of the decision, if the subject is a node."""
    subject = decision.subject
    if subject.kind != "Node":
        return None
    node = fleet.node(subject.name)
    if node is None or (subject.uid and node.metadata.uid != subject.uid):
        return Reason(NodeGone(node=subject.name))
    return untouchable(node)


def why_opted_out(fleet: Fleet, decision: Decision, now: Instant) -> OptOut | None:
    """Opt-out of the node that is the subject of the decision."""
    node = fleet.node(decision.subject.name) if decision.subject.kind == "Node" else None
    return opt_out(node, now) if node is not None else None


def nobody_elses(key: str, node: Node) -> Preconditions:
    """Preconditions for adding a taint that begins the removal of a node: nobody else removes or handles the node. An
    older decision may be written only now.
    """
    upgrade, annotations = node.metadata.labels.get(names.UPGRADE_STATE, ""), node.metadata.annotations
    in_hand = (
        ("spec.unschedulable", ""),
        (f"metadata.labels[{names.UPGRADE_STATE}]", upgrade),
        (f"metadata.annotations[{names.SCALE_DOWN_DISABLED}]", annotations.scale_down_disabled),
        (f"metadata.annotations[{names.DO_NOT_DISRUPT}]", annotations.do_not_disrupt),
    )
    return Preconditions(fields=in_hand, untainted=tuple(each for each in names.TAKING if each != key))


# --- Which policy removes which nodes.
#
# A NodeProvisioner, suspended or not, is the only policy that removes empty nodes of its pool. In a pool without a
# NodeProvisioner, the DrainPolicy of the pool removes them. Unready nodes belong to the DrainPolicy in both cases, and
# are removed after scaleDownUnreadyTime.


def drain_policies(desired: Desired) -> dict[str, Declared[DrainPolicy]]:
    """DrainPolicy by pool, without suspended policies."""
    declareds: dict[str, Declared[DrainPolicy]] = {}
    for policy in desired.drains:
        if not policy.spec.suspend:
            for pool in desired.pools:
                if {"*", pool.name} & set(policy.spec.pool_names):
                    declareds.setdefault(pool.name, policy)
    return declareds


def provisioners(inputs: Inputs) -> dict[str, Declared[NodeProvisioner]]:
    """NodeProvisioner by pool, with the current sizes, suspended ones included."""
    return {each.spec.pool_name: each for each in provisioners_now(inputs)}


# --- Settling: a new node is not empty yet, because its pods have not arrived.
#
# Karpenter sets the condition Initialized of a NodeClaim when its node is ready and has all promised resources. Until
# then the node is in flight, but at most as long as Karpenter gives a machine to register: after that, a node that
# hangs is handled like any other node.
#
# An unready node may be ready again soon, for example after a restart of its kubelet. After that time it has no room
# for waiting pods.

SETTLES_AFTER_MS = 60_000
LONGEST_ARRIVAL_MS = 900_000
READY_AGAIN_WITHIN_MS = 120_000


def settles_at(node: Node, claim: NodeClaim | None, now: Instant) -> Instant | None:
    """When the node will have settled, or must be checked again; None if the node has settled."""
    latest = settled_at(node)
    if latest == FOREVER:
        return later(now, SETTLES_AFTER_MS)
    if is_initializing(node, claim, now):
        latest = max(latest, _after(node.metadata.creation_timestamp, LONGEST_ARRIVAL_MS))
    return latest if latest > now else None


def settled_at(node: Node) -> Instant:
    """When a node without a NodeClaim settles; FOREVER while the node has the startup taint."""
    if node.taint(names.ARRIVING) is not None:
        return FOREVER
    written = [node.metadata.creation_timestamp]
    written += [each.last_transition_time for each in node.status.conditions if each.type == "Ready"]
    return max(_after(each, SETTLES_AFTER_MS) for each in written)


def is_initializing(node: Node, claim: NodeClaim | None, now: Instant) -> bool:
    """Whether the node has registered and can't be used yet."""
    condition = claim.condition("Initialized") if claim is not None else None
    if condition is None or condition.status == "True":
        return False
    return _after(node.metadata.creation_timestamp, LONGEST_ARRIVAL_MS) > now


def may_take_pods(node: Node, now: Instant) -> bool:
    """Whether the node is ready, or has been unready for a short time only."""
    if node.is_ready:
        return True
    turned = [each.last_transition_time for each in node.status.conditions if each.type == "Ready"]
    turned = turned or [node.metadata.creation_timestamp]
    return max(_after(each, READY_AGAIN_WITHIN_MS) for each in turned) > now


def _after(written: str, wait_ms: int) -> Instant:
    """Time `wait_ms` after `written`. A missing or unreadable time counts as long ago."""
    at = moment(written)
    return Instant(0) if at is None else later(at, wait_ms)
