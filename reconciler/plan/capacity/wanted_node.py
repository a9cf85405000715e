"""A node that is wanted and that nobody has bought: in which way it is to be had, and whom it is for."""

import msgspec

from reconciler.model.cluster.pod import Pod
from reconciler.model.plan.capacity_limit import CapacityLimit
from reconciler.plan.capacity.offerings import LaunchOption, LaunchOptions
from reconciler.plan.capacity.wait_times import PodWait


class WantedNode(msgspec.Struct, frozen=True):
    """One node."""

    choice: LaunchOption
    labels: dict[str, str]  # that it will have
    memory: str  # that pods may ask for there, as Kubernetes writes it
    pods: tuple[Pod, ...] = ()  # none where it is for minSize or warmNodes
    is_visible: bool = False  # Karpenter sees one of these pods, and buys of its own accord


class Unmet(msgspec.Struct, frozen=True):
    """Pods of one pool for which nothing is asked for now, because what was asked for did not come."""

    pool: str
    outlook: LaunchOptions
    pods: tuple[Pod, ...] = ()
    wanted: tuple[WantedNode, ...] = ()  # nodes for some of these pods: for the others it is not known which they need
    min_size: int = 0  # nodes that minSize lacks
    warm: int = 0  # nodes that warmNodes lacks


class Limited(msgspec.Struct, frozen=True):
    """Nodes of one pool that are wanted, and that are not asked for since a limit allows no more."""

    pool: str
    limit: CapacityLimit
    pods: tuple[Pod, ...] = ()
    warm: int = 0  # nodes that warmNodes lacks


class NodeWithRoom(msgspec.Struct, frozen=True, gc=False):
    """A node that stays, can be used, and has room for a pod."""

    node: str
    pool: str = ""  # by whose mode the pod is let go; nothing: of no pool


class CapacityAnswer(msgspec.Struct, frozen=True):
    """What there is for those who wait."""

    places: dict[str, NodeWithRoom] = {}  # of pods behind our gate, by uid
    schedulable: frozenset[str] = frozenset()  # uids of pods without a gate that find a place on nodes as they are
    unfit: frozenset[str] = frozenset()  # smart pods whose node has come, and takes none of those it was for
    used: frozenset[str] = frozenset()  # smart pods without a node yet that somebody waits for
    unmet: tuple[Unmet, ...] = ()
    limited: tuple[Limited, ...] = ()
    asked: dict[str, str] = {}  # uid of a pod -> the pool in which a machine is on its way for it by a smart pod
    waits: tuple[PodWait, ...] = ()  # what each pod without a place waits for
