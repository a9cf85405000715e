"""Who may act on a node: none whose removal, or whose rest, is someone else's affair.

The rules are looked at in order, and the first that applies is the reason told.

A node that opts out of removal is a case of its own: no planner marks, drains or deletes it, and taints of ours that it
bears come off. Labels and everything else that keeps the node go on.
"""

from collections.abc import Callable

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
from reconciler.plan.windows import provisioners_now


class NodeGone(CodeFacts, frozen=True):
    template = "{node} is not among the nodes any more."

    node: str


class NodeLeaving(CodeFacts, frozen=True):
    template = "{node} is being deleted already."

    node: str


class DisruptedByKarpenter(CodeFacts, frozen=True):
    template = "Karpenter is disrupting {node}: what happens to it next is its affair."

    node: str


class DriverUpgrade(CodeFacts, frozen=True):
    template = "the GPU driver of {node} is being upgraded ({upgrade}): it is left alone until that is done."

    node: str
    upgrade: str  # the state, as the GPU operator writes it


class CordonedByOthers(CodeFacts, frozen=True):
    template = "{node} was cordoned by someone else: it is left alone until that is undone."
    by_person = True

    node: str


class NodeOptedOut(CodeFacts, frozen=True):
    template = "{node} carries {key}: {value}: it is neither drained nor deleted."
    by_person = True

    node: str
    key: str  # of the annotation
    value: str


REASONS = (NodeGone, NodeLeaving, DisruptedByKarpenter, DriverUpgrade, CordonedByOthers, NodeOptedOut)


class _OwnershipRule(msgspec.Struct, frozen=True):
    code: type[CodeFacts]
    applies: Callable[[Node], bool]
    facts: Callable[[Node], CodeFacts]


RULES = (
    _OwnershipRule(NodeLeaving, lambda node: node.metadata.leaving, lambda node: NodeLeaving(node=node.name)),
    _OwnershipRule(
        DisruptedByKarpenter,
        lambda node: node.taint(names.DISRUPTED) is not None,
        lambda node: DisruptedByKarpenter(node=node.name),
    ),
    _OwnershipRule(
        DriverUpgrade,
        lambda node: bool(node.driver_upgrade),
        lambda node: DriverUpgrade(node=node.name, upgrade=node.driver_upgrade),
    ),
    # Our own drain cordons by a taint of its own, never by this field.
    _OwnershipRule(
        CordonedByOthers, lambda node: node.spec.unschedulable, lambda node: CordonedByOthers(node=node.name)
    ),
)


def untouchable(node: Node) -> Reason | None:
    """Why nobody here may act on the node; nothing when one may."""
    return next((Reason(rule.facts(node)) for rule in RULES if rule.applies(node)), None)


def closed_nodes(pool: PoolTotals) -> int:
    """How many empty nodes of a pool others have cordoned: these stay, take no pods, and are no spare nodes."""
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
    """The annotation that keeps the node from removal now: Cluster Autoscaler's, else Karpenter's, whose value may be a
    duration that counts from the creation of the node."""
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
    """The same for the subject of a decision, if that is a node."""
    subject = decision.subject
    if subject.kind != "Node":
        return None
    node = fleet.node(subject.name)
    if node is None or (subject.uid and node.metadata.uid != subject.uid):
        return Reason(NodeGone(node=subject.name))
    return untouchable(node)


def why_opted_out(fleet: Fleet, decision: Decision, now: Instant) -> OptOut | None:
    """The opt-out of the node that is the subject of a decision."""
    node = fleet.node(decision.subject.name) if decision.subject.kind == "Node" else None
    return opt_out(node, now) if node is not None else None


def nobody_elses(key: str, node: Node) -> Preconditions:
    """What a taint of that key presumes, by which one begins to take a node away: that nobody else does, or has it in
    hand, since what was decided before may be written only now."""
    upgrade, annotations = node.metadata.labels.get(names.UPGRADE_STATE, ""), node.metadata.annotations
    in_hand = (
        ("spec.unschedulable", ""),
        (f"metadata.labels[{names.UPGRADE_STATE}]", upgrade),
        (f"metadata.annotations[{names.SCALE_DOWN_DISABLED}]", annotations.scale_down_disabled),
        (f"metadata.annotations[{names.DO_NOT_DISRUPT}]", annotations.do_not_disrupt),
    )
    return Preconditions(fields=in_hand, untainted=tuple(each for each in names.TAKING if each != key))


# --- Which policy removes nodes of which pool.
#
# A NodeProvisioner, suspended or not, is the only one that removes empty nodes of its pool. Where a pool has none, the
# DrainPolicy that names the pool removes them. Nodes that are not ready belong to the DrainPolicy in either case: they
# go after scaleDownUnreadyTime.


def drain_policies(desired: Desired) -> dict[str, Declared[DrainPolicy]]:
    """By pool; suspended policies name no pool."""
    declareds: dict[str, Declared[DrainPolicy]] = {}
    for policy in desired.drains:
        if not policy.spec.suspend:
            for pool in desired.pools:
                if {"*", pool.name} & set(policy.spec.pool_names):
                    declareds.setdefault(pool.name, policy)
    return declareds


def provisioners(inputs: Inputs) -> dict[str, Declared[NodeProvisioner]]:
    """By pool, with the sizes that hold now; suspended ones too."""
    return {each.spec.pool_name: each for each in provisioners_now(inputs)}


# --- Whether a node has settled: one that has just come is not empty yet, its pods are on their way.
#
# Karpenter says of a NodeClaim that it is Initialized once its node is ready and has all that was promised. For as long
# as that takes the node is on its way, though not for longer than Karpenter gives a machine to register: one that hangs
# is a node like any other after that.
#
# A node that is not ready may be back in a moment, as after a restart of its kubelet. After that it has no room for
# pods that wait.

SETTLES_AFTER_MS = 60_000
LONGEST_ARRIVAL_MS = 900_000
READY_AGAIN_WITHIN_MS = 120_000


def settles_at(node: Node, claim: NodeClaim | None, now: Instant) -> Instant | None:
    """When it will have settled, or is to be looked at again; None where it has."""
    if node.taint(names.ARRIVING) is not None:
        return later(now, SETTLES_AFTER_MS)
    written = [node.metadata.creation_timestamp]
    written += [each.last_transition_time for each in node.status.conditions if each.type == "Ready"]
    latest = max(_after(each, SETTLES_AFTER_MS) for each in written)
    if is_initializing(node, claim, now):
        latest = max(latest, _after(node.metadata.creation_timestamp, LONGEST_ARRIVAL_MS))
    return latest if latest > now else None


def is_initializing(node: Node, claim: NodeClaim | None, now: Instant) -> bool:
    """Whether it has come, and can't be used yet."""
    condition = claim.condition("Initialized") if claim is not None else None
    if condition is None or condition.status == "True":
        return False
    return _after(node.metadata.creation_timestamp, LONGEST_ARRIVAL_MS) > now


def may_take_pods(node: Node, now: Instant) -> bool:
    """Whether the node is ready, or has not been unready for long."""
    if node.is_ready:
        return True
    turned = [each.last_transition_time for each in node.status.conditions if each.type == "Ready"]
    turned = turned or [node.metadata.creation_timestamp]
    return max(_after(each, READY_AGAIN_WITHIN_MS) for each in turned) > now


def _after(written: str, wait_ms: int) -> Instant:
    """So long after a time; one that is not told, or that can't be read, was long ago."""
    at = moment(written)
    return Instant(0) if at is None else later(at, wait_ms)
