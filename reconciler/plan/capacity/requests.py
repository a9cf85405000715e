"""Owner of what is asked of Karpenter by smart pods, as it stands, looked up once for one plan."""

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

# --- A Request: what a smart pod was made for, as it is written on it; and the names that follow from that.

COMPONENT = "smart-scheduler"
TAG = f"{names.OURS}for-"

_DIGITS = 12
_LONGEST_MODEL = 63 - len("smart-gpu-scheduler--") - _DIGITS


class CapacityRequest(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Serialized into the annotation gpu.scheduling/original-request."""

    key: str  # the same for the same demand, however often it is asked for
    pool: str
    model: str
    count: int  # GPUs
    why: Why
    instance_type: str
    capacity_type: str = ""  # what is empty was left open
    zone: str = ""
    tflops: str = ""  # of claims, which say it
    vram: str = ""  # memory of these GPUs together
    node_selector: dict[str, str] = {}
    node_affinity: Any = None  # as the pods that wait have it
    pods: tuple[str, ...] = ()  # uids of those that wait

    @property
    def name(self) -> str:
        """Of the smart pod: made twice, it is the same pod."""
        asked = (self.pool, self.key, self.instance_type, self.capacity_type, self.zone)
        digest = sha256(msgspec.json.encode(asked)).hexdigest()[:_DIGITS]
        model = self.model[:_LONGEST_MODEL].rstrip("-.")
        return f"smart-gpu-scheduler-{model}-{digest}"


def tag_of(name: str) -> str:
    """A label that no node has. A smart pod asks for nodes without it, and Karpenter repeats that in the NodeClaim:
    so it can be told which machine was bought for which smart pod."""
    return TAG + name.rpartition("-")[2]


# --- Which pods are our own smart pods, and which only look like them.
#
# Anybody who may create pods in a namespace writes all labels and annotations of these pods, and chooses their names.
# So labels alone prove nothing: a smart pod counts only in the namespace that its GpuPool names for smart pods, where
# nobody but us is to have rights to create pods; and only under the name that follows from the request in its
# annotation, since that is the name under which we would have made it. A pod elsewhere that bears our labels is a pod
# like any other.


class SmartPodIdentity:
    """By the pools as they are declared."""

    def __init__(self, desired: Desired) -> None:
        self._namespace_of = {pool.name: pool.spec.smart_pods.namespace for pool in desired.pools}
        # Smart pods of undeclared pools are where pools have theirs unless they say otherwise. An older version
        # had them in the namespace of the controller, where nobody else has rights either.
        self._namespaces = frozenset({SmartPods().namespace, names.OWN_NAMESPACE, *self._namespace_of.values()})

    def is_smart(self, pod: Pod) -> bool:
        """Whether the pod was made as a smart pod, readable or not: no workload of anybody."""
        return is_labelled_as_smart(pod) and pod.metadata.namespace in self._namespaces

    def request_of(self, pod: Pod) -> CapacityRequest | None:
        """What the smart pod asks for; None for a pod that does not prove to be a smart pod of a declared pool."""
        if not self.is_smart(pod):
            return None
        request = request_by_name(pod)
        if request is None or request.pool not in self._namespace_of:
            return None
        return request if pod.metadata.namespace in {self._namespace_of[request.pool], names.OWN_NAMESPACE} else None


def is_labelled_as_smart(pod: Pod) -> bool:
    """Whether the pod bears the label of smart pods, whoever wrote the label."""
    return pod.metadata.labels.get(names.COMPONENT) == COMPONENT


def request_by_name(pod: Pod) -> CapacityRequest | None:
    """The request on a pod that bears all labels of a smart pod and the name that follows from the request; None for
    other pods. Of the namespace nothing is said."""
    labels = pod.metadata.labels
    if not is_labelled_as_smart(pod) or labels.get(names.MANAGED) != "true":
        return None
    request = json_value(pod.metadata.annotations.original_request, CapacityRequest)
    if request is None or request.pool != labels.get(names.POOL) or request.name != pod.name:
        return None
    return request


class Requested(msgspec.Struct, frozen=True, gc=False):
    """One smart pod, and the machine that was bought for it."""

    pod: Pod
    request: CapacityRequest
    claim: NodeClaim | None = None  # that Karpenter bought for it
    node: Node | None = None  # of that claim, whether the scheduler has bound it there or not yet; or that it runs on

    @property
    def name(self) -> str:
        return self.pod.name

    @property
    def is_open(self) -> bool:
        """Whether it asks still, and nothing was bought for it: Karpenter is to be taken at its word that it will."""
        pod = self.pod
        ended = pod.is_finished or pod.metadata.leaving or pod.metadata.annotations.phase == "Failed"
        return not (ended or pod.node or self.claim)

    @property
    def uses_its_machine(self) -> bool:
        """Whether it waits for the machine that was bought for it, or runs there. Where the scheduler has bound it to
        another node, that machine comes for whoever needs it."""
        if self.claim is None or not self.pod.node:
            return self.claim is not None
        return self.node is not None and self.node.name == self.claim.status.node_name

    @property
    def awaits_machine(self) -> bool:
        """Whether a machine is still to come for it; one whose node is there is looked at as that node."""
        return self.is_open or (self.uses_its_machine and self.node is None)


class Requests:
    """Of all pools."""

    def __init__(self, fleet: Fleet, identity: SmartPodIdentity) -> None:
        self._fleet, self._identity = fleet, identity

    @cached_property
    def smart_pods(self) -> Sequence[Pod]:
        """By namespace and name; those that can't be read among them."""
        return [each for each in self._fleet.occupancy.smart if self._identity.is_smart(each)]

    @cached_property
    def by_pool(self) -> Mapping[str, tuple[Requested, ...]]:
        """Those that prove to be ours, by name."""
        found: dict[str, list[tuple[Pod, CapacityRequest]]] = {}
        for pod in self.smart_pods:
            request = self._identity.request_of(pod)
            if request is not None:
                found.setdefault(request.pool, []).append((pod, request))
        return {pool: tuple(self._requested(pool, there)) for pool, there in found.items()}

    def of(self, pool: str) -> tuple[Requested, ...]:
        return self.by_pool.get(pool, ())

    def open_in(self, pool: str) -> int:
        """Machines that are asked for in a pool, and that nobody has bought."""
        return sum(each.is_open for each in self.of(pool))

    def used_claims_of(self, pool: str) -> frozenset[str]:
        """The names of NodeClaims that were bought for a smart pod which waits for them or runs there."""
        return frozenset(each.claim.name for each in self.of(pool) if each.claim is not None and each.uses_its_machine)

    def _requested(self, pool: str, there: Iterable[tuple[Pod, CapacityRequest]]) -> Iterable[Requested]:
        tagged = self._tagged(pool)
        for pod, request in there:
            # A smart pod of the same name may have been there before: its machine is another's by now.
            made = pod.metadata.creation_timestamp
            claims = (each for each in tagged.get(tag_of(pod.name), ()) if each.metadata.creation_timestamp >= made)
            claim = max(claims, key=_progress, default=None)
            name = pod.node or (claim.status.node_name if claim is not None else "")
            yield Requested(pod, request, claim, self._fleet.node(name) if name else None)

    def _tagged(self, pool: str) -> dict[str, list[NodeClaim]]:
        """Claims by each label that they are to be without. One that is going is as good as gone: Karpenter buys
        another for as long as the smart pod waits."""
        node_claims: dict[str, list[NodeClaim]] = {}
        for claim in self._fleet.claims_of(pool):
            for each in () if claim.metadata.leaving else claim.spec.requirements:
                if each.key.startswith(TAG):
                    node_claims.setdefault(each.key, []).append(claim)
        return node_claims


def _progress(claim: NodeClaim) -> tuple[bool, bool, str]:
    """Of several the one that is furthest counts."""
    return bool(claim.status.node_name), claim.says("Initialized"), claim.name


# --- How far the machine has come that Karpenter buys for a request, by the conditions of its NodeClaim.
#
# A NodeClaim never says that it failed: a launch without stock deletes it, and so does a machine that does not register
# in time. That it is gone, or going, before its node was ready is the failure.

MachinePhase = Literal["Created", "Launching", "Registering", "Ready", "Failed"]


class _PhaseRule(msgspec.Struct, frozen=True):
    phase: MachinePhase
    text: str
    applies: Callable[[NodeClaim], bool]


# First match wins; the last one always applies.
RULES = (
    _PhaseRule("Failed", "is gone, or is being deleted", lambda claim: claim.metadata.leaving),
    _PhaseRule("Ready", "is Initialized: its node can be used", lambda claim: claim.says("Initialized")),
    _PhaseRule("Registering", "is Launched: its machine boots", lambda claim: claim.says("Launched")),
    _PhaseRule(
        "Launching",
        "says of Launched that it is not, or not yet known",
        lambda claim: claim.condition("Launched") is not None,
    ),
    _PhaseRule("Created", "says nothing yet", lambda _: True),
)


def machine_phase(claim: NodeClaim | None) -> MachinePhase:
    """Of a claim that was there; one that is gone has failed."""
    return next(rule.phase for rule in RULES if rule.applies(claim)) if claim is not None else "Failed"


# --- Whether a node that has come can be used: it is ready, has its GPUs, and nobody keeps its pods away for the start.


def startup_taints(observed: Observed, pool: str) -> frozenset[tuple[str, str]]:
    """Those with which others keep pods away from new nodes of a pool, by key and effect: they take them off."""
    node_pool = next((each for each in observed.node_pools if each.name == pool), None)
    template = (node_pool.spec.get("template") or {}).get("spec") or {} if node_pool else {}
    found = frozenset((str(each.get("key")), str(each.get("effect"))) for each in template.get("startupTaints") or ())
    return frozenset(each for each in found if each[0] != names.ARRIVING)


def is_usable(node: Node, passing: AbstractSet[tuple[str, str]]) -> bool:
    """`passing`: the startup taints of others."""
    if not node.is_ready or not node.gpus or node.metadata.leaving:
        return False
    return all(each.key != names.UNREGISTERED and (each.key, each.effect) not in passing for each in node.spec.taints)


def is_opening(node: Node, passing: AbstractSet[tuple[str, str]]) -> bool:
    """Whether our own startup taint is all that keeps it closed, and may come off. By what is seen of the node alone:
    its NodeClaim is watched apart, and may be told of earlier or later."""
    return node.taint(names.ARRIVING) is not None and untouchable(node) is None and is_usable(node, passing)
