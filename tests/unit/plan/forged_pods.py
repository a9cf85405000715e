"""Pods of a tenant that bear whatever marks of ours the tenant can write, drawn by a seed, and the same pods without.

A tenant writes everything but the status of a pod, in namespaces of its own: name, labels, annotations, owner
references, and the node where the pod names one itself.
"""

from random import Random
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Annotations, Condition, Metadata, OwnerReference
from reconciler.model.cluster.node import Node, NodeStatus
from reconciler.model.cluster.pod import (
    Container,
    LocalObjectReference,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    Toleration,
)
from reconciler.model.instant import timestamp
from reconciler.model.plan.decision import Apply
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.plan.capacity.requests import CapacityRequest
from tests.unit.plan.scaling.stage import MACHINE, after

NAMESPACE = "tenant"
# No other pod fits there: which of two nodes that are as full is filled first depends on what their pods are like.
ELSEWHERE = Node(
    Metadata("cpu-1", uid="uid-cpu-1", creation_timestamp=timestamp(after(-9_000))),
    status=NodeStatus(allocatable={"cpu": "64", "pods": "0"}, conditions=(Condition("Ready", "True"),)),
)
_OF_NOBODY = tuple(f"{letter}.example/" for letter in "abcdefghijklmnopqrstuvwxyz")
_EVERYTHING = (Toleration(operator="Exists"),)
_TINY = (Container("c", ResourceRequirements({"cpu": "1m"})),)


class Forgery:
    """Owner of the chance by which pods are drawn. `made` is the plan that comes of the inputs without them."""

    def __init__(self, seed: int, inputs: Inputs, made: Plan) -> None:
        self._chance, self._inputs = Random(seed), inputs
        written = [each.act.manifest for each in made.decisions if isinstance(each.act, Apply)]
        bodies = [msgspec.json.decode(each) for each in written]
        # Just what we would make, under the very name: whoever sees one smart pod can write the next.
        self._requests = [_request(each) for each in bodies if each["kind"] == "Pod"]
        pods = inputs.observed.pods
        self._requests += [each.metadata.annotations.original_request for each in pods if _is_labelled(each)]

    def without_node(self, at: int) -> tuple[Pod, Pod]:
        """With all marks and with none: it runs where no pool is, or waits for a gate of others."""
        gates, node = ((), ELSEWHERE.name) if self._is(60) else ((LocalObjectReference("example.com/never"),), "")
        status = PodStatus("Running" if node else "Pending", conditions=(Condition("Ready", "True"),) if node else ())
        plain = Pod(_plain(at), PodSpec(node, scheduling_gates=gates, containers=_TINY), status)
        metadata = msgspec.structs.replace(self._forged(at), owner_references=self._owners())
        return msgspec.structs.replace(plain, metadata=metadata), _as_much_a_daemon(plain, metadata)

    def on_a_node(self, at: int, node: Node) -> tuple[Pod, ...]:
        """On a node of a pool: with the marks of smart pods, and often with labels that are nobody's. Who made it and
        how it wants to be disrupted is its owner's to say, and the same for all; so is its name, since the first of
        several pods is named. Any label decides which of two nodes that are alike is taken first."""
        spec = PodSpec(node.name, containers=_TINY, tolerations=_EVERYTHING)
        metadata = self._forged(at, only_smart=True)
        forged = Pod(metadata, spec, PodStatus("Running", conditions=(Condition("Ready", "True"),)))
        return forged, *(_as_of_nobody(forged, prefix) for prefix in _OF_NOBODY)

    def _forged(self, at: int, only_smart: bool = False) -> Metadata:
        request = self._of((*self._requests, "{}", "", "[")) if self._is(80) else self._drawn_request()
        name = (
            _name_of(request) if self._is(80) else self._of(("", *(each.name for each in self._inputs.observed.pods)))
        )
        pool = _pool_of(request) or self._of(("a", "b", "old", ""))
        labels = {
            names.COMPONENT: self._often(names.SMART_SCHEDULER, "x"),
            names.MANAGED: self._often("true", ""),
            names.POOL: self._often(pool, "a"),
            names.PROVISIONER: self._of(("a", "b")),
            names.TRIGGER_TYPE: names.GPU_SCALING,
            names.ARRIVED: "true",
        }
        kept = {key: value for key, value in labels.items() if self._is(85)}
        plain = _plain(at)
        annotations = self._annotations(request, only_smart)
        return msgspec.structs.replace(plain, name=name or plain.name, labels=kept, annotations=annotations)

    def _annotations(self, request: str, only_smart: bool) -> Annotations:
        claims = [each.name for each in self._inputs.observed.node_claims]
        found: dict[str, Any] = {
            "original_request": request,
            "phase": self._of(("", "Pending", "Scheduled", "Failed", "x")),
            "since": self._of(("", "x", str(after(-40) // 1000), "²")),
            "node_claim": self._of(("", *claims)),
            "retries": self._of(("", "9")),
            "waits_for": self._of(("", "a", "a.none-to-be-had")),
            "frozen_until": self._of(("", timestamp(after(600)))),
            "adopted": self._of(("", "true")),
            "seen_at": self._of(("", timestamp(after(0)))),
        }
        if not only_smart:
            found |= {
                "evict_at": self._of(("", timestamp(after(-60)), timestamp(after(600)), "soon")),
                "checkpoint": self._of(("", "120s", "x")),
                "checkpointed_at": self._of(("", timestamp(after(-1)))),
                "claim": self._of(("", "lost")),
                "daemonset_pod": self._of(("", "true")),
                "mirror_pod": self._of(("", "x")),
                "do_not_disrupt": self._of(("", "true")),
                "safe_to_evict": self._of(("", "true", "false", "on-completion")),
            }
        return Annotations(**found)

    def _owners(self) -> tuple[OwnerReference, ...]:
        """What is true of pods of others, and what is true of nobody."""
        others = [each.metadata.controller for each in self._inputs.observed.pods]
        nodes = [OwnerReference("Node", each.name, each.metadata.uid) for each in self._inputs.observed.nodes]
        found = self._of((*filter(None, others), *nodes, OwnerReference("DaemonSet", "ds", "uid-ds"), None))
        return () if found is None else (msgspec.structs.replace(found, controller=True),)

    def _drawn_request(self) -> str:
        pool, uids = self._of(("a", "b", "old")), [each.metadata.uid for each in self._inputs.observed.pods]
        key = self._of((*uids, "minSize/0", "warmNodes/0"))
        request = CapacityRequest(
            key, pool, "a100", 8, "demand", MACHINE, self._of(("", "on-demand", "spot")), pods=(key,)
        )
        return msgspec.json.encode(request).decode()

    def _is(self, percent: int) -> bool:
        return self._chance.randrange(100) < percent

    def _of(self, choices: Any) -> Any:
        return self._chance.choice(choices)

    def _often(self, usual: str, other: str) -> str:
        return usual if self._is(90) else other


def _as_of_nobody(forged: Pod, prefix: str) -> Pod:
    labels = {key.replace(names.OURS, prefix): value for key, value in forged.metadata.labels.items()}
    metadata = msgspec.structs.replace(forged.metadata, labels=labels, annotations=Annotations())
    return msgspec.structs.replace(forged, metadata=metadata)


def _as_much_a_daemon(pod: Pod, metadata: Metadata) -> Pod:
    """How full its node is taken to be, and so who goes there next, depends on whether it stays with the node, which is
    its owner's to say."""
    said = metadata.annotations
    annotations = Annotations(
        daemonset_pod=said.daemonset_pod, mirror_pod=said.mirror_pod, safe_to_evict=said.safe_to_evict
    )
    owners = tuple(each for each in metadata.owner_references if each.kind in {"DaemonSet", "Node"})
    plain = msgspec.structs.replace(pod.metadata, annotations=annotations, owner_references=owners)
    return msgspec.structs.replace(pod, metadata=plain)


def _plain(at: int) -> Metadata:
    return Metadata(f"plain-{at}", NAMESPACE, f"uid-tenant-{at}", "5", creation_timestamp=timestamp(after(-300)))


def _request(body: dict[str, Any]) -> str:
    return str(body["metadata"]["annotations"][names.ORIGINAL_REQUEST])


def _read(request: str) -> CapacityRequest | None:
    try:
        return msgspec.json.decode(request, type=CapacityRequest)
    except msgspec.DecodeError:
        return None


def _name_of(request: str) -> str:
    found = _read(request)
    return found.name if found is not None else ""


def _pool_of(request: str) -> str:
    found = _read(request)
    return found.pool if found is not None else ""


def _is_labelled(pod: Pod) -> bool:
    return names.COMPONENT in pod.metadata.labels
