"""What keeps a pod off a node, or off all of them, by predicate: one class a case, with its facts and a template."""

from typing import Literal

import msgspec

from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.plan.decision import Obstacle


class FleetObstacle(msgspec.Struct, Obstacle, frozen=True, gc=False, tag=True):
    """The base of each."""


class OtherObstacle(FleetObstacle, frozen=True):
    """As an earlier version stored it, which had no more than words."""

    template = "{words}"

    words: str


# The node


class NodeAbsent(FleetObstacle, frozen=True):
    template = "there is no node {node}"

    node: str


class NodeCordoned(FleetObstacle, frozen=True):
    template = "the node is cordoned"


class OtherNodeNamed(FleetObstacle, frozen=True):
    template = "it names the node {node}"

    node: str


class TaintNotTolerated(FleetObstacle, frozen=True):
    template = "it does not tolerate the taint {key}{value}:{effect}"

    key: str
    value: str
    effect: str


class LabelDiffers(FleetObstacle, frozen=True):
    template = "it selects nodes with {key}={value}, and this one has {there} there"

    key: str
    value: str
    there: str


class SelectedLabelAbsent(FleetObstacle, frozen=True):
    template = "it selects nodes with {key}={value}, and this one has no such label"

    key: str
    value: str


class AffinityUnmatched(FleetObstacle, frozen=True):
    template = "no term of its required node affinity matches the node"


class Lack(msgspec.Struct, frozen=True, gc=False):
    """Of one resource, in its unit: thousandths of CPUs, bytes, pieces."""

    resource: str
    asked: int
    free: int
    allocatable: int


class ResourcesLacking(FleetObstacle, frozen=True):
    template = "{lacks}"

    lacks: tuple[Lack, ...]


class HostPortsTaken(FleetObstacle, frozen=True):
    template = "port {ports} of the host taken"

    ports: tuple[str, ...]  # 8080/TCP


# Volumes and devices


class VolumeInUse(FleetObstacle, frozen=True):
    template = "PersistentVolumeClaim {claim} is for one pod alone, and another uses it"

    claim: str


class VolumeLimitReached(FleetObstacle, frozen=True):
    template = "the node bears {limit} volumes of {driver} and has {volumes}"

    limit: int
    driver: str
    volumes: int


class VolumeUnreachable(FleetObstacle, frozen=True):
    template = "the node does not reach its PersistentVolume {volume}"

    volume: str


class VolumeInOtherZone(FleetObstacle, frozen=True):
    template = "its PersistentVolume {volume} is in another zone"

    volume: str


class NoVolumeToChoose(FleetObstacle, frozen=True):
    template = "there is no volume for {claims} that the node reaches, and none can be made there"

    claims: tuple[str, ...]


ClaimState = Literal["not made", "absent", "leaving", "of another pod"]


class VolumeClaimUnusable(FleetObstacle, frozen=True):
    template = "PersistentVolumeClaim {claim} {state}"

    claim: str
    state: ClaimState


class VolumeLost(FleetObstacle, frozen=True):
    template = "PersistentVolumeClaim {claim} has lost its volume {volume}"

    claim: str
    volume: str


class VolumeGone(FleetObstacle, frozen=True):
    template = "PersistentVolumeClaim {claim} is bound to PersistentVolume {volume}, which is gone"

    claim: str
    volume: str


class VolumeNotBound(FleetObstacle, frozen=True):
    template = "PersistentVolumeClaim {claim} is not bound, and its class does not wait for a pod"

    claim: str


class VolumesUnread(FleetObstacle, frozen=True):
    template = "it has volumes, and {unread}"

    unread: str


class InlineDisk(FleetObstacle, frozen=True):
    template = "volume {volume} is a disk that the pod names itself"

    volume: str


class VolumeStoodInFor(FleetObstacle, frozen=True):
    template = "PersistentVolume {volume} is of a kind that a driver stands in for"

    volume: str


class StorageCapacityTracked(FleetObstacle, frozen=True):
    template = "PersistentVolumeClaim {claim} needs room that driver {driver} counts on each node"

    claim: str
    driver: str


class DevicesUnread(FleetObstacle, frozen=True):
    template = "it claims devices, and {unread}"

    unread: str


class OwnDeviceClaimNotMade(FleetObstacle, frozen=True):
    template = "its ResourceClaim {claim} is not made yet"

    claim: str


class DeviceClaimUnusable(FleetObstacle, frozen=True):
    template = "ResourceClaim {claim} {state}"

    claim: str
    state: ClaimState


class DevicesNotAllocated(FleetObstacle, frozen=True):
    template = "ResourceClaim {claim} has no devices yet, and which it would be given is not foretold"

    claim: str


class DevicesNotReady(FleetObstacle, frozen=True):
    template = "ResourceClaim {claim} has devices that are still to be made ready"

    claim: str


class DevicesElsewhere(FleetObstacle, frozen=True):
    template = "ResourceClaim {claim} was met on another node"

    claim: str


class HoldsDevices(FleetObstacle, frozen=True):
    template = "it holds devices by ResourceClaim {claim}"

    claim: str


class NotInPoolOfClaim(FleetObstacle, frozen=True):
    template = "it is of GpuClaim/{claim}, and pool {pool} does not have what that asks for"

    claim: str
    pool: str


class GpusOfNodeLent(FleetObstacle, frozen=True):
    template = "it is of GpuClaim/{claim}, and GPUs of the node are lent"

    claim: str


# Other pods


class SpreadLabelAbsent(FleetObstacle, frozen=True):
    template = "it must be spread over {key}, and the node has no such label"

    key: str


class SpreadUneven(FleetObstacle, frozen=True):
    template = (
        "{key}={value} has {pods} of {selector}, the domain with the fewest has {fewest}, and maxSkew is {max_skew}"
    )

    key: str
    value: str
    pods: int
    selector: str
    fewest: int
    max_skew: int


class SpreadDomainsTooFew(FleetObstacle, frozen=True):
    template = (
        "{key}={value} has {pods} of {selector}, there are {domains} of at least {min_domains} domains, and maxSkew is "
        "{max_skew}"
    )

    key: str
    value: str
    pods: int
    selector: str
    domains: int
    min_domains: int
    max_skew: int


class SpreadUnevenBeside(FleetObstacle, frozen=True):
    template = "{key}={value} would have {pods} of all pods, and maxSkew is {max_skew}"

    key: str
    value: str
    pods: int
    max_skew: int


class TermsBeyondBound(FleetObstacle, frozen=True):
    template = (
        "the terms about other pods in its namespace make more than {pairs} pairs to compare, and those of this pod "
        "are beyond that"
    )

    pairs: int


class NamespacesUnread(FleetObstacle, frozen=True):
    template = "its terms ask for labels of namespaces, and those could not be read: {unread}"

    unread: str


class AffinityLabelAbsent(FleetObstacle, frozen=True):
    template = "its affinity asks for a node with the label {key}"

    key: str


class AffinityUnmet(FleetObstacle, frozen=True):
    template = "{domain} has no pod that its affinity asks for: {selector}"

    domain: str  # key=value
    selector: str


class AntiAffinity(FleetObstacle, frozen=True):
    template = "its anti-affinity forbids {domain}: {pods} {selector} there"

    domain: str
    pods: int
    selector: str


class RepelledByOthers(FleetObstacle, frozen=True):
    template = "{domain} has {pods} whose anti-affinity forbids {selector}"

    domain: str
    pods: int
    selector: str


class WithNominated(FleetObstacle, frozen=True):
    template = "with {pods} there, nominated for it: {obstacle}"

    pods: tuple[str, ...]
    obstacle: Obstacle


# What is not modelled


class OwnUsersOnHostNetwork(FleetObstacle, frozen=True):
    template = "it wants users of its own on the host's network, and which nodes can do that is not looked at"


class RestartsAllContainers(FleetObstacle, frozen=True):
    template = "it may restart all its containers, and which nodes can do that is not looked at"


class DeviceClassAsResource(FleetObstacle, frozen=True):
    template = "it asks for a class of devices as for a resource, and which nodes have such is not looked at"


# New nodes


class NothingOffered(FleetObstacle, frozen=True):
    template = "nothing is on offer"


class NotToBuy(FleetObstacle, frozen=True):
    template = "no node of it may be bought"


class NowhereToBeHad(FleetObstacle, frozen=True):
    template = "it is not to be had anywhere"


class NodesExhausted(FleetObstacle, frozen=True):
    template = "no more nodes may be bought"


class ShapesExhausted(FleetObstacle, frozen=True):
    template = "no more nodes may be bought of the shapes that would do"


class CompanionsUnplaced(FleetObstacle, frozen=True):
    template = "pods that it must be spread with, or near to, found no node"


class ShapesTooSmall(FleetObstacle, frozen=True):
    template = "asks for {asked} {resource}, and {most} is the most there is"

    asked: int
    resource: str
    most: int


class TermLabelAbsent(FleetObstacle, frozen=True):
    template = "it asks for a node with the label {key}"

    key: str


class TermNamespacesUnread(FleetObstacle, frozen=True):
    template = "its terms ask for labels of namespaces: {unread}"

    unread: str


class ApartFromRunning(FleetObstacle, frozen=True):
    template = "it must be kept apart from pods that run there: {selector}"

    selector: str


class AffinityNowhereMet(FleetObstacle, frozen=True):
    template = "its affinity asks for {selectors}, and none are where it could be"

    selectors: tuple[str, ...]


class NoPlaceByTerms(FleetObstacle, frozen=True):
    template = "its terms about other pods leave it no place"


class SpreadUnevenAnywhere(FleetObstacle, frozen=True):
    template = "it must be spread over {key} with maxSkew {max_skew}, and of {selector} {domains}"

    key: str
    max_skew: int
    selector: str
    domains: tuple[tuple[str, int], ...]  # values, and how many pods each has
    min_domains: int


class CompanionsAtOdds(FleetObstacle, frozen=True):
    template = "it must share a host with pods that it must be kept apart from"


class CompanionsTooLarge(FleetObstacle, frozen=True):
    template = "no node has room for it beside the pods that it must share a host with"


class NoNodePoolLeft(FleetObstacle, frozen=True):
    template = "no NodePool is left for it, nor is there room on a node that stays ({rejections})"

    rejections: Rejections


OBSTACLES = {each.__name__: each for each in FleetObstacle.__subclasses__()}
