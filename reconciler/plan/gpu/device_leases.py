"""Leases of GPUs, with the node, the GPU and the pod that each Lease names, and what becomes of each Lease: a table,
first match wins.

A Lease lives as long as its pod runs on its node. The API server deletes the Leases of a deleted Node; a Lease of a
node that is not ready is released after a while, because nothing starts there anyway.

A Lease whose pod is alive and not bound belongs to a binder, which may have died or may only be slow. Such a Lease is
released in two plans: the first annotates the pod with the versions of its Leases, so that no Binding that was prepared
before takes effect; the second deletes the Leases of these versions. A binder that is alive adopts a Lease by a write,
and the adopted Lease has a later version (kube/apply/device_leases.py).
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec

from reconciler.fleet.devices.device_lease import UNKNOWN, DeviceLease, read_allocation, read_device_lease
from reconciler.model import names
from reconciler.model.cluster.metadata import Lease
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod, unready_since
from reconciler.model.instant import Instant, later, moment
from reconciler.model.parsers import natural
from reconciler.model.plan.decision import CodeFacts, Decision, Delete, Hold, Preconditions, Reason, Ref
from reconciler.plan.gpu.reasons import (
    PLANNER,
    BindingAwaited,
    LeaseNotUsed,
    LeaseOfEndedPod,
    LeaseOfGoneNode,
    LeaseOfGonePod,
    LeaseOfOtherNode,
    LeaseOfSilentNode,
    LeaseUnused,
)

# A binder writes Leases and the Binding within seconds; the scheduler asks again within a minute.
BINDING_MS = 60_000
# How long a node must be unready before its Leases are released.
SILENT_MS = 300_000


class HeldLease(msgspec.Struct, frozen=True, gc=False):
    """A Lease that reconciler wrote, and the GPU that the Lease lends."""

    lease: Lease
    device: DeviceLease

    @property
    def ref(self) -> Ref:
        metadata = self.lease.metadata
        return Ref("Lease", metadata.namespace, metadata.name, metadata.uid)

    @property
    def pod(self) -> Ref:
        namespace, _, name = self.device.pod.partition("/")
        return Ref("Pod", namespace, name, self.device.holder)

    @property
    def made(self) -> Instant:
        return moment(self.lease.metadata.creation_timestamp) or Instant(0)


def held_leases(leases: Iterable[Lease]) -> Iterator[HeldLease]:
    """Device Leases that reconciler wrote, by name. A Lease of others lends its GPU too, and is left alone."""
    for lease in sorted(leases, key=lambda each: each.metadata.name):
        device = read_device_lease(lease)
        is_ours = lease.metadata.labels.get(names.MANAGED) == "true" and not lease.metadata.leaving
        if device is not None and is_ours and "/" in device.pod:
            yield HeldLease(lease, device)


# --- Releasing: the annotation of a pod that was not bound.


class Releasing(msgspec.Struct, frozen=True, gc=False):
    """The node whose Leases are released, and their latest version."""

    node: str
    version: int

    def __str__(self) -> str:
        return f"{self.node}@{self.version}"

    def includes(self, view: HeldLease) -> bool:
        version = natural(view.lease.metadata.resource_version)
        return view.device.node == self.node and version is not None and version <= self.version


def releasing_of(pod: Pod) -> Releasing | None:
    """What the annotation of a pod says; None without a readable annotation."""
    node, _, version = pod.metadata.annotations.releasing.rpartition("@")
    number = natural(version)
    return Releasing(node, number) if node and number is not None else None


# --- What becomes of each Lease.


class LeaseCase(msgspec.Struct, frozen=True, gc=False):
    """A Lease, and what is observed of its node and its pod."""

    view: HeldLease
    node: Node | None
    pod: Pod | None  # None: no pod with the uid of the holder
    now: Instant

    @property
    def is_young(self) -> bool:
        return self.now < self.view.made + BINDING_MS

    @property
    def facts(self) -> tuple[str, str, int]:
        device = self.view.device
        return device.pod, device.node, device.id

    def release(self, facts: CodeFacts, gone: Ref | None = None) -> Decision:
        """Delete the Lease in the version that was observed."""
        presumes = Preconditions(resource_version=self.view.lease.metadata.resource_version, gone=gone)
        pool = self.node.pool if self.node is not None else ""
        return Decision(PLANNER, self.view.ref, Delete(presumes=presumes), Reason(facts), pool)


def _gone_node(case: LeaseCase) -> Decision | None:
    """The Lease may have been observed before a new node."""
    return case.release(LeaseOfGoneNode(*case.facts)) if case.node is None and not case.is_young else None


def _ended(case: LeaseCase) -> Decision | None:
    is_ended = case.pod is not None and case.pod.is_finished
    return case.release(LeaseOfEndedPod(*case.facts)) if is_ended else None


def _gone_pod(case: LeaseCase) -> Decision | None:
    """The Lease may have been observed before its pod, so that a fresh read must not find the pod."""
    return case.release(LeaseOfGonePod(*case.facts), case.view.pod) if case.pod is None else None


def _other_node(case: LeaseCase) -> Decision | None:
    node = case.pod.node if case.pod is not None else ""
    return case.release(LeaseOfOtherNode(*case.facts, node)) if node not in {"", case.view.device.node} else None


def _not_used(case: LeaseCase) -> Decision | None:
    """A binder died after it had acquired Leases, and the next one chose other GPUs. The annotation is written in the
    request that binds the pod, so it is final.
    """
    device, pod = case.view.device, case.pod
    if pod is None or pod.node != device.node or device.id == UNKNOWN:
        return None
    allocated = read_allocation(pod.metadata.annotations.allocated, pod.node)
    return case.release(LeaseNotUsed(*case.facts)) if allocated and device.id not in allocated else None


def _silent_node(case: LeaseCase) -> Decision | None:
    since = unready_since(case.node) if case.node is not None else None
    is_silent = since is not None and case.now >= since + SILENT_MS
    return case.release(LeaseOfSilentNode(*case.facts, since)) if since is not None and is_silent else None


def _unused(case: LeaseCase) -> Decision | None:
    if case.pod is None or case.pod.node:
        return None
    releasing = releasing_of(case.pod)
    is_released = releasing is not None and releasing.includes(case.view)
    return case.release(LeaseUnused(*case.facts)) if is_released else None


def _awaited(case: LeaseCase) -> Decision | None:
    if case.pod is None or case.pod.node or not case.is_young:
        return None
    until = later(case.view.made, BINDING_MS)
    why = Reason(BindingAwaited(*case.facts, until))
    return Decision(PLANNER, case.view.ref, Hold(until), why, case.node.pool if case.node is not None else "")


# A Lease of a bound pod on its node matches no rule, nor does a Lease whose binder is given up in this plan.
RULES: tuple[Callable[[LeaseCase], Decision | None], ...] = (
    _gone_node,
    _ended,
    _gone_pod,
    _other_node,
    _not_used,
    _silent_node,
    _unused,
    _awaited,
)


def decide_lease(case: LeaseCase) -> Decision | None:
    """What becomes of one Lease."""
    return next((found for rule in RULES if (found := rule(case)) is not None), None)
