"""Obstacles that keep a pod off a node or off all nodes: one class per case, with facts and a message template."""

from typing import Literal

import msgspec

from reconciler.fleet.snapshot.rejections import Rejections
from reconciler.model.plan.decision import Obstacle


class FleetObstacle(msgspec.Struct, Obstacle, frozen=True, gc=False, tag=True):
    """Base class of all obstacles."""


class OtherObstacle(FleetObstacle, frozen=True):
    """An obstacle stored by an earlier version, as plain text."""

    template = "{words}"

    words: str


# Node


class NodeAbsent(FleetObstacle, frozen=True):
    template = "the node {node} does not exist"

    node: str


class NodeCordoned(FleetObstacle, frozen=True):
    template = "the node is cordoned"


class OtherNodeNamed(FleetObstacle, frozen=True):
    template = "the pod names the node {node}"

    node: str


class TaintNotTolerated(FleetObstacle, frozen=True):
    template = "the pod does not tolerate the taint {key}{value}:{effect}"

    key: str
    value: str
    effect: str


class LabelDiffers(FleetObstacle, frozen=True):
    template = "the pod selects nodes with {key}={value}, the node has {there}"

    key: str
    value: str
    there: str


class SelectedLabelAbsent(FleetObstacle, frozen=True):
    template = "the pod selects nodes with {key}={value}, the node has no such label"

    key: str
    value: str


class AffinityUnmatched(FleetObstacle, frozen=True):
    template = "no term of the pod's required node affinity matches the node"


class Lack(msgspec.Struct, frozen=True, gc=False):
    """A missing amount of a resource, in its unit: thousandths of CPUs, bytes, pieces."""

    resource: str
    asked: int
    free: int
    allocatable: int


class ResourcesLacking(FleetObstacle, frozen=True):
    template = "{lacks}"

    lacks: tuple[Lack, ...]


class HostPortsTaken(FleetObstacle, frozen=True):
    template = "host port {ports} is in use"

    ports: tuple[str, ...]  # 8080/TCP


# Volumes and devices


class VolumeInUse(FleetObstacle, frozen=True):
    template = "PersistentVolumeClaim {claim} is ReadWriteOncePod, and another pod uses it"

    claim: str


class VolumeLimitReached(FleetObstacle, frozen=True):
    template = "the node is limited to {limit} volumes of {driver} and has {volumes}"

    limit: int
    driver: str
    volumes: int


class VolumeUnreachable(FleetObstacle, frozen=True):
    template = "the node cannot access PersistentVolume {volume}"

    volume: str


class VolumeInOtherZone(FleetObstacle, frozen=True):
    template = "PersistentVolume {volume} is in another zone"

    volume: str


class NoVolumeToChoose(FleetObstacle, frozen=True):
    template = "there is no accessible volume for {claims}, and none can be provisioned on the node"

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
    template = "PersistentVolumeClaim {claim} is not bound, and its storage class binds immediately"

    claim: str


class VolumesUnread(FleetObstacle, frozen=True):
    template = "the pod has volumes, and {unread}"

    unread: str


class InlineDisk(FleetObstacle, frozen=True):
    template = "volume {volume} is a disk named in the pod"

    volume: str


class VolumeStoodInFor(FleetObstacle, frozen=True):
    template = "PersistentVolume {volume} is of an in-tree type replaced by a CSI driver"

    volume: str


class StorageCapacityTracked(FleetObstacle, frozen=True):
    template = "PersistentVolumeClaim {claim} needs capacity that driver {driver} tracks per node"

    claim: str
    driver: str


class DevicesUnread(FleetObstacle, frozen=True):
    template = "the pod claims devices, and {unread}"

    unread: str


class OwnDeviceClaimNotMade(FleetObstacle, frozen=True):
    template = "the pod's ResourceClaim {claim} does not exist yet"

    claim: str


class DeviceClaimUnusable(FleetObstacle, frozen=True):
    template = "ResourceClaim {claim} {state}"

    claim: str
    state: ClaimState


class DevicesNotAllocated(FleetObstacle, frozen=True):
    template = "ResourceClaim {claim} has no devices yet, and their allocation is not simulated"

    claim: str


class DevicesNotReady(FleetObstacle, frozen=True):
    template = "ResourceClaim {claim} has devices that are not ready yet"

    claim: str


class DevicesElsewhere(FleetObstacle, frozen=True):
    template = "ResourceClaim {claim} is allocated on another node"

    claim: str


class HoldsDevices(FleetObstacle, frozen=True):
    template = "the pod holds devices of ResourceClaim {claim}"

    claim: str


class NotInPoolOfClaim(FleetObstacle, frozen=True):
    template = "pool {pool} does not have the GPUs of the pod's GpuClaim/{claim}"

    claim: str
    pool: str


class GpuClaimUnusable(FleetObstacle, frozen=True):
    template = "GpuClaim/{claim} {state}"

    claim: str
    state: Literal["does not exist", "is suspended", "can't be read"]


class PoolOfNodeObserved(FleetObstacle, frozen=True):
    template = "GpuPool/{pool} is suspended or in mode Observe: its GPUs are not lent"

    pool: str


class GpusOfNodeUnreported(FleetObstacle, frozen=True):
    template = "the agent of the node has not reported its GPUs"


# GPUs of a node for a GpuClaim


class TooFewFreeGpus(FleetObstacle, frozen=True):
    template = (
        "the claim requests {wanted}, and the node has {free} suitable free ({in_use} in use, {unhealthy} unhealthy)"
    )

    wanted: int
    free: int
    in_use: int
    unhealthy: int


class NoIslandOfFreeGpus(FleetObstacle, frozen=True):
    template = (
        "the claim requires {wanted} of one island, and the node has {free} suitable free, at most {largest} in one "
        "island"
    )

    wanted: int
    largest: int
    free: int


class GpuModelDiffers(FleetObstacle, frozen=True):
    template = "the claim requests GPUs of model {model}, and the node has {there}"

    model: str
    there: tuple[str, ...]


class GpuMemoryTooSmall(FleetObstacle, frozen=True):
    template = "the claim requests GPUs with {wanted} of memory, and the GPUs of the node have {most}"

    wanted: str
    most: str  # empty if unknown


class NewGpuAllocationsSuspended(FleetObstacle, frozen=True):
    template = "the GpuNodeStatus of the node suspends new allocations"


# Other pods


class SpreadLabelAbsent(FleetObstacle, frozen=True):
    template = "the pod must be spread over {key}, and the node has no such label"

    key: str


class SpreadUneven(FleetObstacle, frozen=True):
    template = "{key}={value} has {pods} of {selector}, the domain with the fewest has {fewest}, maxSkew is {max_skew}"

    key: str
    value: str
    pods: int
    selector: str
    fewest: int
    max_skew: int


class SpreadDomainsTooFew(FleetObstacle, frozen=True):
    template = (
        "{key}={value} has {pods} of {selector}, there are {domains} of at least {min_domains} domains, maxSkew is "
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
    template = "{key}={value} would have {pods} of all pods, maxSkew is {max_skew}"

    key: str
    value: str
    pods: int
    max_skew: int


class TermsBeyondBound(FleetObstacle, frozen=True):
    template = (
        "the inter-pod terms of the namespace exceed the limit of {pairs} comparisons, and the terms of this pod "
        "are not evaluated"
    )

    pairs: int


class NamespacesUnread(FleetObstacle, frozen=True):
    template = "the pod's terms select namespaces by label, which cannot be read: {unread}"

    unread: str


class AffinityLabelAbsent(FleetObstacle, frozen=True):
    template = "the pod's affinity needs a node with the label {key}"

    key: str


class AffinityUnmet(FleetObstacle, frozen=True):
    template = "{domain} has no pod that matches the pod's affinity: {selector}"

    domain: str  # key=value
    selector: str


class AntiAffinity(FleetObstacle, frozen=True):
    template = "the pod's anti-affinity forbids {domain}: {pods} {selector} there"

    domain: str
    pods: int
    selector: str


class RepelledByOthers(FleetObstacle, frozen=True):
    template = "{domain} has {pods} whose anti-affinity forbids {selector}"

    domain: str
    pods: int
    selector: str


class WithNominated(FleetObstacle, frozen=True):
    template = "with {pods} nominated for the node: {obstacle}"

    pods: tuple[str, ...]
    obstacle: Obstacle


# Not simulated


class OwnUsersOnHostNetwork(FleetObstacle, frozen=True):
    template = "the pod has hostUsers: false with hostNetwork, whose node support is not checked"


class RestartsAllContainers(FleetObstacle, frozen=True):
    template = "the pod may restart all its containers, whose node support is not checked"


class DeviceClassAsResource(FleetObstacle, frozen=True):
    template = "the pod requests a device class as a resource, whose node support is not checked"


# New nodes


class NothingOffered(FleetObstacle, frozen=True):
    template = "there are no offers"


class NotToBuy(FleetObstacle, frozen=True):
    template = "no node of the shape may be launched"


class NowhereToBeHad(FleetObstacle, frozen=True):
    template = "the shape is not available anywhere"


class NodesExhausted(FleetObstacle, frozen=True):
    template = "no more nodes may be launched"


class ShapesExhausted(FleetObstacle, frozen=True):
    template = "no more nodes of the suitable shapes may be launched"


class CompanionsUnplaced(FleetObstacle, frozen=True):
    template = "pods needed for its spread or affinity have no node"


class ShapesTooSmall(FleetObstacle, frozen=True):
    template = "requests {asked} {resource}, and the maximum is {most}"

    asked: int
    resource: str
    most: int


class TermLabelAbsent(FleetObstacle, frozen=True):
    template = "the pod needs a node with the label {key}"

    key: str


class TermNamespacesUnread(FleetObstacle, frozen=True):
    template = "the pod's terms select namespaces by label: {unread}"

    unread: str


class ApartFromRunning(FleetObstacle, frozen=True):
    template = "anti-affinity with pods that run there: {selector}"

    selector: str


class AffinityNowhereMet(FleetObstacle, frozen=True):
    template = "the pod's affinity needs {selectors}, and none are on suitable nodes"

    selectors: tuple[str, ...]


class NoPlaceByTerms(FleetObstacle, frozen=True):
    template = "the pod's inter-pod terms exclude all nodes"


class SpreadUnevenAnywhere(FleetObstacle, frozen=True):
    template = "the pod must be spread over {key} with maxSkew {max_skew}, and of {selector} {domains}"

    key: str
    max_skew: int
    selector: str
    domains: tuple[tuple[str, int], ...]  # label values with pod counts
    min_domains: int


class CompanionsAtOdds(FleetObstacle, frozen=True):
    template = "the pod's affinity and anti-affinity select pods on the same host"


class CompanionsTooLarge(FleetObstacle, frozen=True):
    template = "no node has room for the pod together with the pods of its host affinity"


class NoNodePoolLeft(FleetObstacle, frozen=True):
    template = "no NodePool and no remaining node fits ({rejections})"

    rejections: Rejections


OBSTACLES = {each.__name__: each for each in FleetObstacle.__subclasses__()}
