"""Codes of the pressure planner."""

import msgspec

from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.cluster.observed import Quiet, Unread
from reconciler.model.instant import Instant
from reconciler.model.plan.decision import CodeFacts, Facts, Reason, Ref

PLANNER = "pressure"


class PressedResource(msgspec.Struct, frozen=True, gc=False):
    """The pressure on one resource of a node, in the units of kube-scheduler."""

    resource: str
    logical: int  # reserved above the watermark, without the buffer
    capacity: int  # requested by agents, and not there
    left: int  # not accounted for by pods that are leaving


class PlacesRuledOut(msgspec.Struct, frozen=True, gc=False):
    """Why no other node takes a pod that should move."""

    ruled_out: Rejections = Rejections()  # by the predicates of the scheduler
    above: int = 0  # nodes that would be above their watermark with the pod, or are under pressure themselves
    without: int = 0  # nodes that no PressurePolicy in force names


class OfPressedNode(CodeFacts, frozen=True):
    """Base of the codes about a node under pressure. Without a template, the class is no code."""

    node: str


class PodMigrated(OfPressedNode, frozen=True):
    template = (
        "Node/{node} is under pressure ({pressed:|relieved by now}): {pod} is evicted, and Node/{home} has room for "
        "the pod below its watermark."
    )

    pod: Ref
    home: str
    pressed: tuple[PressedResource, ...]


class PodStaysUnderPressure(OfPressedNode, frozen=True):
    template = "Node/{node} is under pressure, and {why}."

    pod: Ref
    why: Reason  # as for drains


class PodFitsNowhereElse(OfPressedNode, frozen=True):
    template = (
        "Node/{node} is under pressure, and no other node takes {pod} below its watermark ({places}): the pod stays."
    )

    pod: Ref
    places: PlacesRuledOut


class GangNotMigrated(OfPressedNode, frozen=True):
    template = (
        "Node/{node} is under pressure, and {pod} is in gang {gang}: pods of gangs are not moved because of pressure."
    )

    pod: Ref
    gang: str


class PodOfNodeStays(OfPressedNode, frozen=True):
    template = "Node/{node} is under pressure, and {pod} belongs to the node (DaemonSet or static pod): the pod stays."

    pod: Ref


class MigrationUnderWay(OfPressedNode, frozen=True):
    template = "{pod} has been leaving Node/{node} because of pressure since {since:time}."

    pod: Ref
    since: Instant


class MigrationGivenUp(OfPressedNode, frozen=True):
    template = (
        "{pod} did not leave Node/{node} within {seconds:minutes} minutes, although the node is under pressure: other "
        "pods are chosen, and this pod again from {until:time} on."
    )

    pod: Ref
    seconds: int
    until: Instant


class PressureNotRelieved(OfPressedNode, frozen=True):
    template = "Node/{node} is under pressure ({pressed}), and {policy} has migration: None: no pod is moved."
    by_person = True

    policy: Ref
    pressed: tuple[PressedResource, ...]


class PressureRemains(OfPressedNode, frozen=True):
    template = "Node/{node} stays under pressure ({pressed}): no further pod can be moved now."

    pressed: tuple[PressedResource, ...]


class PressedNodeLeaves(OfPressedNode, frozen=True):
    template = "Node/{node} is under pressure and is being removed: its pods leave anyway."


class PressedNodeOfOthers(OfPressedNode, frozen=True):
    template = "Node/{node} is under pressure ({pressed}), and no pod is moved: {why}."
    by_person = True

    pressed: tuple[PressedResource, ...]
    why: Reason


class PressureUnread(CodeFacts, frozen=True):
    template = "{policy} moves no pods now, because {unread} could not be read."

    policy: Ref
    unread: Unread


class PressureOutdated(CodeFacts, frozen=True):
    template = "{policy} moves no pods now, because {old}."

    policy: Ref
    old: Quiet


# Holds that only report that pods are on their way.
RESTING: frozenset[type[Facts]] = frozenset({MigrationUnderWay, PressedNodeLeaves})
