"""Who may act on a node: none whose removal, or whose rest, is someone else's affair.

The rules are looked at in order, and the first that applies is the reason told.

A node that opts out of removal is a case of its own: no planner marks, drains or deletes it, and taints of ours that it
bears come off. Labels and everything else that keeps the node go on.
"""

from collections.abc import Callable

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant
from reconciler.model.planned.action import Presumes
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.reason import Reason
from reconciler.plan.eviction import FOREVER, stays_until_of
from reconciler.plan.reasons import Because

NODE_GONE = Because("NodeGone", "{node} is not among the nodes any more.")
NODE_LEAVING = Because("NodeLeaving", "{node} is being deleted already.")
DISRUPTED = Because("DisruptedByKarpenter", "Karpenter is disrupting {node}: what happens to it next is its affair.")
DRIVER_UPGRADE = Because(
    "DriverUpgrade", "the GPU driver of {node} is being upgraded ({upgrade}): it is left alone until that is done."
)
CORDONED = Because(
    "CordonedByOthers", "{node} was cordoned by someone else: it is left alone until that is undone.", by_person=True
)
OPTED_OUT = Because("NodeOptedOut", "{node} carries {annotation}: it is neither drained nor deleted.", by_person=True)

REASONS = (NODE_GONE, NODE_LEAVING, DISRUPTED, DRIVER_UPGRADE, CORDONED, OPTED_OUT)


class _Rule(msgspec.Struct, frozen=True):
    because: Because
    applies: Callable[[Node], bool]


RULES = (
    _Rule(NODE_LEAVING, lambda node: node.metadata.leaving),
    _Rule(DISRUPTED, lambda node: node.taint(names.DISRUPTED) is not None),
    _Rule(DRIVER_UPGRADE, lambda node: bool(node.driver_upgrade)),
    # Our own drain cordons by a taint of its own, never by this field.
    _Rule(CORDONED, lambda node: node.spec.unschedulable),
)


def untouchable(node: Node) -> Reason | None:
    """Why nobody here may act on the node; nothing when one may."""
    for rule in RULES:
        if rule.applies(node):
            if rule.because is DRIVER_UPGRADE:
                return rule.because.reason(node=node.name, upgrade=node.driver_upgrade)
            return rule.because.reason(node=node.name)
    return None


class OptOut(msgspec.Struct, frozen=True, gc=False):
    """An annotation by which a node opts out of removal."""

    node: str
    annotation: str  # key and value
    until: Instant | None = None  # None: for as long as the node carries the annotation

    @property
    def reason(self) -> Reason:
        return OPTED_OUT.reason(node=self.node, annotation=self.annotation)


def opt_out(node: Node, now: Instant) -> OptOut | None:
    """The annotation that keeps the node from removal now: Cluster Autoscaler's, else Karpenter's, whose value may be a
    duration that counts from the creation of the node."""
    annotations = node.metadata.annotations
    if annotations.scale_down_disabled == "true":
        return OptOut(node.name, f"{names.SCALE_DOWN_DISABLED}: true")
    if not annotations.do_not_disrupt:
        return None
    until = stays_until_of(annotations.do_not_disrupt, node.metadata.creation_timestamp)
    if until <= now:
        return None
    annotation = f"{names.DO_NOT_DISRUPT}: {annotations.do_not_disrupt}"
    return OptOut(node.name, annotation, None if until == FOREVER else until)


def why_untouchable(fleet: Fleet, decision: Decision) -> Reason | None:
    """The same for the subject of a decision, if that is a node."""
    subject = decision.subject
    if subject.kind != "Node":
        return None
    node = fleet.node(subject.name)
    if node is None or (subject.uid and node.metadata.uid != subject.uid):
        return NODE_GONE.reason(node=subject.name)
    return untouchable(node)


def why_opted_out(fleet: Fleet, decision: Decision, now: Instant) -> OptOut | None:
    """The opt-out of the node that is the subject of a decision."""
    node = fleet.node(decision.subject.name) if decision.subject.kind == "Node" else None
    return opt_out(node, now) if node is not None else None


def nobody_elses(key: str, node: Node) -> Presumes:
    """What a taint of that key presumes, by which one begins to take a node away: that nobody else does, or has it in
    hand, since what was decided before may be written only now."""
    upgrade, annotations = node.metadata.labels.get(names.UPGRADE_STATE, ""), node.metadata.annotations
    in_hand = (
        ("spec.unschedulable", ""),
        (f"metadata.labels[{names.UPGRADE_STATE}]", upgrade),
        (f"metadata.annotations[{names.SCALE_DOWN_DISABLED}]", annotations.scale_down_disabled),
        (f"metadata.annotations[{names.DO_NOT_DISRUPT}]", annotations.do_not_disrupt),
    )
    return Presumes(fields=in_hand, untainted=tuple(each for each in names.TAKING if each != key))
