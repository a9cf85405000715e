"""Capacity requests that smart pods make to Karpenter, read from the cluster once for one plan."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.node import Node, NodeClaim
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.desired import Desired
from reconciler.model.parsers import json_value
from reconciler.model.plan.capacity import Why
from reconciler.model.policy.gpu import SmartPods
from reconciler.plan.nodes.ownership import untouchable

# --- CapacityRequest: the demand that a smart pod was created for, and the names derived from the request.

COMPONENT = "smart-scheduler"
TAG = f"{names.OURS}for-"

_DIGITS = 12
_LONGEST_MODEL = 63 - len("smart-gpu-scheduler--") - _DIGITS


class CapacityRequest(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Serialized into the annotation gpu.scheduling/original-request."""

    key: str  # identifies the demand, the same for repeated requests
    pool: str
    model: str
    count: int  # GPUs
    why: Why
    instance_type: str
    capacity_type: str = ""  # an empty field was left to Karpenter
    zone: str = ""
    tflops: str = ""  # from GpuClaims that say so
    vram: str = ""  # total memory of the GPUs
    node_selector: dict[str, str] = {}
    node_affinity: Any = None  # as written in the waiting pods
    pods: tuple[str, ...] = ()  # uids of the waiting pods

    @property
    def name(self) -> str:
        """Name of the smart pod. The same request gives the same name, so a second creation finds the first pod."""
        asked = (self.pool, self.key, self.instance_type, self.capacity_type, self.zone)
        digest = sha256(msgspec.json.encode(asked)).hexdigest()[:_DIGITS]
        model = self.model[:_LONGEST_MODEL].rstrip("-.")
        return f"smart-gpu-scheduler-{model}-{digest}"


def tag_of(name: str) -> str:
    """Label that no node has. A smart pod requires nodes without the label, and Karpenter copies the requirement into
    the NodeClaim, so the label shows which machine was bought for which smart pod.
    """
    return TAG + name.rpartition("-")[2]


# --- Identity of smart pods.
#
# Anybody who may create pods in a namespace controls all labels, annotations and names of these pods, so labels alone
# prove nothing. A pod is a smart pod only in the namespace that its GpuPool names for smart pods, where only reconciler
# should have rights to create pods, and only under the name that follows from the request in its annotation. A pod
# elsewhere with the labels of smart pods is an ordinary pod.


class SmartPodIdentity:
    """Recognizes smart pods by the declared pools."""

    def __init__(self, desired: Desired) -> None:
        self._namespace_of = {pool.name: pool.spec.smart_pods.namespace for pool in desired.pools}
        # Smart pods of undeclared pools are in the default namespace of smart pods. An older version created them in
        # the namespace of the controller, where nobody else has rights either.
        self._namespaces = frozenset({SmartPods().namespace, names.OWN_NAMESPACE, *self._namespace_of.values()})

    def is_smart(self, pod: Pod) -> bool:
        """Whether the pod is a smart pod, with a readable request or not. Smart pods are no workload."""
        return is_labelled_as_smart(pod) and pod.metadata.namespace in self._namespaces

    def request_of(self, pod: Pod) -> CapacityRequest | None:
        """Request of the smart pod; None for a pod that is not a verified smart pod of a declared pool."""
        if not self.is_smart(pod):
            return None
        request = request_by_name(pod)
        if request is None or request.pool not in self._namespace_of:
            return None
        return request if pod.metadata.namespace in {self._namespace_of[request.pool], names.OWN_NAMESPACE} else None


def is_labelled_as_smart(pod: Pod) -> bool:
    """Whether the pod has the label of smart pods, whoever wrote the label."""
    return pod.metadata.labels.get(names.COMPONENT) == COMPONENT


def request_by_name(pod: Pod) -> CapacityRequest | None:
    """Request of a pod that has all labels of a smart pod and the name that follows from the request; None for other
    pods. Does not check the namespace.
    """
    labels = pod.metadata.labels
    if not is_labelled_as_smart(pod) or labels.get(names.MANAGED) != "true":
        return None
    request = json_value(pod.metadata.annotations.original_request, CapacityRequest)
    if request is None or request.pool != labels.get(names.POOL) or request.name != pod.name:
        return None
    return request


class Requested(msgspec.Struct, frozen=True, gc=False):
    """A smart pod, and the machine that was bought for the smart pod."""

    pod: Pod
    request: CapacityRequest
    claim: NodeClaim | None = None  # NodeClaim that Karpenter created for the smart pod
    # Node that the smart pod runs on; the node of the NodeClaim before the scheduler has bound the pod.
    node: Node | None = None

    @property
    def name(self) -> str:
        return self.pod.name

    @property
    def is_open(self) -> bool:
        """Whether the request is pending: the smart pod waits for a machine that Karpenter has not bought yet."""
        pod = self.pod
        ended = pod.is_finished or pod.metadata.leaving or pod.metadata.annotations.phase == "Failed"
        return not (ended or pod.node or self.claim)

    @property
    def uses_its_machine(self) -> bool:
        """Whether the smart pod waits for its own machine, or runs there. If the scheduler bound the smart pod to
        another node, the machine is free for other pods.
        """
        if self.claim is None or not self.pod.node:
            return self.claim is not None
        return self.node is not None and self.node.name == self.claim.status.node_name

    @property
    def awaits_machine(self) -> bool:
        """Whether the smart pod's machine has not registered a node yet. A registered machine is handled as a node."""
        return self.is_open or (self.uses_its_machine and self.node is None)


class Requests:
    """Verified requests of all pools."""

    def __init__(self, fleet: Fleet, identity: SmartPodIdentity) -> None:
        self._fleet, self._identity = fleet, identity

    @cached_property
    def smart_pods(self) -> Sequence[Pod]:
        """All smart pods by namespace and name, unreadable ones included."""
        return [each for each in self._fleet.occupancy.smart if self._identity.is_smart(each)]

    @cached_property
    def by_pool(self) -> Mapping[str, tuple[Requested, ...]]:
        """Verified requests of each pool, by name."""
        found: dict[str, list[tuple[Pod, CapacityRequest]]] = {}
        for pod in self.smart_pods:
            request = self._identity.request_of(pod)
            if request is not None:
                found.setdefault(request.pool, []).append((pod, request))
        return {pool: tuple(self._requested(pool, there)) for pool, there in found.items()}

    def of(self, pool: str) -> tuple[Requested, ...]:
        return self.by_pool.get(pool, ())

    def open_in(self, pool: str) -> int:
        """Number of pending requests in a pool: machines that are requested and not bought."""
        return sum(each.is_open for each in self.of(pool))

    def used_claims_of(self, pool: str) -> frozenset[str]:
        """Names of NodeClaims whose smart pod waits for them or runs there."""
        return frozenset(each.claim.name for each in self.of(pool) if each.claim is not None and each.uses_its_machine)

    def _requested(self, pool: str, there: Iterable[tuple[Pod, CapacityRequest]]) -> Iterable[Requested]:
        tagged = self._tagged(pool)
        for pod, request in there:
            # A NodeClaim older than the smart pod was bought for an earlier smart pod of the same name.
            made = pod.metadata.creation_timestamp
            claims = (each for each in tagged.get(tag_of(pod.name), ()) if each.metadata.creation_timestamp >= made)
            claim = max(claims, key=_progress, default=None)
            name = pod.node or (claim.status.node_name if claim is not None else "")
            yield Requested(pod, request, claim, self._fleet.node(name) if name else None)

    def _tagged(self, pool: str) -> dict[str, list[NodeClaim]]:
        """NodeClaims by the smart-pod tag in their requirements. Terminating NodeClaims do not count: Karpenter buys
        another machine as long as the smart pod waits.
        """
        node_claims: dict[str, list[NodeClaim]] = {}
        for claim in self._fleet.claims_of(pool):
            for each in () if claim.metadata.leaving else claim.spec.requirements:
                if each.key.startswith(TAG):
                    node_claims.setdefault(each.key, []).append(claim)
        return node_claims


def _progress(claim: NodeClaim) -> tuple[bool, bool, str]:
    """Sort key: of several NodeClaims the one that has progressed furthest counts."""
    return bool(claim.status.node_name), claim.says("Initialized"), claim.name


# --- Phase of the machine that Karpenter buys for a request, from the conditions of its NodeClaim.
#
# A NodeClaim never reports a failure: Karpenter deletes the NodeClaim if the launch has no capacity, or if the machine
# does not register in time. So a NodeClaim that is deleted before its node was ready counts as failed.

MachinePhase = Literal["Created", "Launching", "Registering", "Ready", "Failed"]


class _PhaseRule(msgspec.Struct, frozen=True):
    phase: MachinePhase
    text: str
    applies: Callable[[NodeClaim], bool]


# First match wins; the last one always applies.
RULES = (
    _PhaseRule("Failed", "the NodeClaim is deleted, or is being deleted", lambda claim: claim.metadata.leaving),
    _PhaseRule("Ready", "the NodeClaim is Initialized: its node is usable", lambda claim: claim.says("Initialized")),
    _PhaseRule("Registering", "the NodeClaim is Launched: its machine boots", lambda claim: claim.says("Launched")),
    _PhaseRule(
        "Launching",
        "the condition Launched is not true, or unknown",
        lambda claim: claim.condition("Launched") is not None,
    ),
    _PhaseRule("Created", "the NodeClaim has no conditions yet", lambda _: True),
)


def machine_phase(claim: NodeClaim | None) -> MachinePhase:
    """Phase of a machine; None (the NodeClaim is gone) means Failed."""
    return next(rule.phase for rule in RULES if rule.applies(claim)) if claim is not None else "Failed"


# --- Usability of a new node: the node is ready, has GPUs, and has no startup taint.


def startup_taints(observed: Observed, pool: str) -> frozenset[tuple[str, str]]:
    """Startup taints of other controllers in a pool, by key and effect. Their owners remove them."""
    node_pool = next((each for each in observed.node_pools if each.name == pool), None)
    template = (node_pool.spec.get("template") or {}).get("spec") or {} if node_pool else {}
    found = frozenset((str(each.get("key")), str(each.get("effect"))) for each in template.get("startupTaints") or ())
    return frozenset(each for each in found if each[0] != names.ARRIVING)


def is_usable(node: Node, passing: AbstractSet[tuple[str, str]]) -> bool:
    """Whether pods can run on the node. `passing`: startup taints of other controllers."""
    if not node.is_ready or not node.gpus or node.metadata.leaving:
        return False
    return all(each.key != names.UNREGISTERED and (each.key, each.effect) not in passing for each in node.spec.taints)


def is_opening(node: Node, passing: AbstractSet[tuple[str, str]]) -> bool:
    """Whether only reconciler's startup taint keeps pods away from the node, so that the taint may be removed. Decide
    from the node alone: the NodeClaim is watched separately and may be observed earlier or later than the node.
    """
    return node.taint(names.ARRIVING) is not None and untouchable(node) is None and is_usable(node, passing)
