"""Objects that are set aside because they can't be decoded: no action on them, and dependent decisions wait.

Each such object is reported by a hold of its own. A decision is held if

- its subject or its pool is set aside;
- it removes a node that such an object belongs to or is about;
- it evicts a pod from such a node, from a namespace whose PodDisruptionBudget, GpuClaim or Namespace is set aside,
  or a pod that belongs to or uses such an object;
- it removes the gate of a pod for such a node, or of a pod whose gang may have a member that is set aside;
- it buys a machine while a smart pod of the same namespace is set aside, which may already request the machine;
- it removes or taints any node while a Lease on GPUs of an unknown node is set aside.

All other decisions go on.
"""

from collections.abc import Collection, Iterator
from functools import cached_property

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.refusal import ANY_POOL, DecodeRefusal, SetAside
from reconciler.model.plan.decision import Apply, Decision, Evict, Hold, Reason, Ref, Taint, Ungate
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.reasons import OfObject

PLANNER = "set_aside"


class ObjectSetAside(OfObject, frozen=True):
    template = "{object} can't be decoded ({refusal}): the object is set aside, and no action on it is carried out."
    by_person = True

    refusal: DecodeRefusal


class BehindSetAside(OfObject, frozen=True):
    template = (
        "{other}, which {object} depends on, can't be decoded ({refusal}): {object} is not changed until {other} is "
        "corrected."
    )
    by_person = True

    other: Ref
    refusal: DecodeRefusal


REASONS = (ObjectSetAside, BehindSetAside)

MOST_LISTED = 100  # objects that a plan reports one by one; a metric counts all

Key = tuple[str, str, str]  # kind, namespace, name
# Kinds that affect all pods of their namespace, because it is unknown which pods or gangs they are about.
_GUARDS_OF_NAMESPACES = frozenset({"PodDisruptionBudget", "Namespace", "GpuClaim"})


def reason_of(aside: SetAside) -> Reason:
    """Reason for a hold on the object."""
    return Reason(ObjectSetAside(object=_ref(aside), refusal=aside.refusal))


class SetAsides:
    """Lookups of objects that are set aside, for one plan."""

    def __init__(self, inputs: Inputs, fleet: Fleet) -> None:
        self._fleet = fleet
        self._all = inputs.observed.set_aside
        self._objects = {(each.kind, each.namespace, each.name): each for each in self._all}
        self._nodes = {each.node: each for each in self._all if each.node}
        self._pools = {each.pool: each for each in self._all if each.pool}
        guards = (each for each in self._all if each.kind in _GUARDS_OF_NAMESPACES)
        self._namespaces = {each.namespace or each.name: each for each in guards}
        waiting = (each for each in self._all if each.kind == "Pod" and not each.node)
        self._waiting = {each.namespace: each for each in waiting}
        self._pods_of = {each.namespace: each for each in self._all if each.kind == "Pod"}
        lent = (each for each in self._all if each.kind == "Lease" and each.namespace == names.LEASES_NAMESPACE)
        self._lent_somewhere = next((each for each in lent if not each.node), None)

    def holds(self) -> Iterator[Decision]:
        """A hold for each object."""
        for each in self._all[:MOST_LISTED]:
            subject = _ref(each)
            node = self._fleet.node(each.node) if each.node else None
            pool = each.pool.strip(ANY_POOL) or (node.pool if node is not None else "")
            yield Decision(PLANNER, subject, Hold(), reason_of(each), pool)

    def why_not(self, decision: Decision, taken: Collection[str]) -> Reason | None:
        """Why a decision waits. `taken`: names of the nodes that the decision removes."""
        if not self._all:
            return None
        own = next((self._objects[key] for each in decision.refs if (key := _key(each)) in self._objects), None)
        if own is not None:
            return reason_of(own)
        other = next((each for each in self._others(decision, taken) if each is not None), None)
        if other is None:
            return None
        return Reason(BehindSetAside(object=decision.subject, other=_ref(other), refusal=other.refusal))

    def _others(self, decision: Decision, taken: Collection[str]) -> Iterator[SetAside | None]:
        """Objects other than its own that the decision waits for."""
        act, namespace = decision.act, decision.subject.namespace
        yield self._pools.get(decision.pool)
        yield self._pools.get(ANY_POOL)
        yield from (self._nodes.get(each) for each in sorted(taken))
        if taken or (isinstance(act, Taint) and act.value is not None):
            yield self._lent_somewhere
        if isinstance(act, Evict):
            yield from map(self._behind, decision.refs)
        if isinstance(act, Ungate):
            yield from (self._namespaces.get(namespace), self._waiting.get(namespace), self._nodes.get(act.node))
        if isinstance(act, Apply) and decision.subject.kind == "Pod":
            yield self._pods_of.get(namespace)

    def is_set_aside(self, subject: Ref) -> bool:
        return _key(subject) in self._objects

    def _behind(self, pod: Ref) -> SetAside | None:
        """The object that keeps a pod from being evicted."""
        if pod.namespace in self._namespaces:
            return self._namespaces[pod.namespace]
        found = self._pods.get((pod.namespace, pod.name))
        if found is None:
            return None
        if found.node in self._nodes:
            return self._nodes[found.node]
        return next((self._objects[key] for key in _uses(found) if key in self._objects), None)

    @cached_property
    def _pods(self) -> dict[tuple[str, str], Pod]:
        pods = self._fleet.observed.pods
        return {(each.metadata.namespace, each.name): each for each in pods}


def _ref(aside: SetAside) -> Ref:
    return Ref(aside.kind, aside.namespace, aside.name, aside.uid)


def _key(ref: Ref) -> Key:
    return ref.kind, ref.namespace, ref.name


def _uses(pod: Pod) -> Iterator[Key]:
    """Objects that a pod belongs to or uses: its owners, volumes and claims."""
    namespace = pod.metadata.namespace
    for owner in pod.metadata.owner_references:
        yield owner.kind, namespace, owner.name
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield "PersistentVolumeClaim", namespace, volume.persistent_volume_claim.claim_name
        if volume.ephemeral is not None:
            yield "PersistentVolumeClaim", namespace, f"{pod.name}-{volume.name}"
    for claim in pod.spec.resource_claims:
        yield "ResourceClaim", namespace, claim.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        yield "ResourceClaim", namespace, status.resource_claim_name
    yield "GpuClaim", namespace, pod.metadata.annotations.claim
