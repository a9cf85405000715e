"""Who may act on a node: none whose removal, or whose rest, is someone else's affair.

The rules are looked at in order, and the first that applies is the reason told.
"""

from collections.abc import Callable

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.planned.action import Presumes
from reconciler.model.planned.decision import Decision
from reconciler.model.planned.reason import Reason
from reconciler.plan.reasons import Because

NODE_GONE = Because("NodeGone", "{node} is not among the nodes any more.")
NODE_LEAVING = Because("NodeLeaving", "{node} is being deleted already.")
DISRUPTED = Because("DisruptedByKarpenter", "Karpenter is disrupting {node}: what happens to it next is its affair.")
DRIVER_UPGRADE = Because(
    "DriverUpgrade", "the GPU driver of {node} is being upgraded ({upgrade}): it is left alone until that is done."
)
CORDONED = Because("CordonedByOthers", "{node} was cordoned by someone else: it is left alone until that is undone.")

REASONS = (NODE_GONE, NODE_LEAVING, DISRUPTED, DRIVER_UPGRADE, CORDONED)


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


def why_untouchable(fleet: Fleet, decision: Decision) -> Reason | None:
    """The same for the subject of a decision, if that is a node."""
    subject = decision.subject
    if subject.kind != "Node":
        return None
    node = fleet.node(subject.name)
    if node is None or (subject.uid and node.metadata.uid != subject.uid):
        return NODE_GONE.reason(node=subject.name)
    return untouchable(node)


def nobody_elses(key: str, node: Node) -> Presumes:
    """What a taint of that key presumes, by which one begins to take a node away: that nobody else does, or has it in
    hand, since what was decided before may be written only now."""
    upgrade = node.metadata.labels.get(names.UPGRADE_STATE, "")
    in_hand = (("spec.unschedulable", ""), (f"metadata.labels[{names.UPGRADE_STATE}]", upgrade))
    return Presumes(fields=in_hand, untainted=tuple(each for each in names.TAKING if each != key))
