"""What of ours is on a cluster, and how it comes off, so that the cluster is as one that never had us.

NodePools stay as they are, our labels and budgets in them included, since any edit of them could cost nodes; and so do
Nodes, with what they have from their NodePool: those that come next would have it too. The policies, where they are
custom resources, are whoever's who wrote them.

One action a subject: whoever carries these out looks again and asks again, until there are none. A table, so that what
more is put on a cluster gets its line here.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.cluster.metadata import Metadata
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.action import Action, Annotate, Delete, Hold, Label, Preconditions, Ref, Taint, Ungate
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import CodeFacts, Reason
from reconciler.model.policy.gpu_pool import SmartPods
from reconciler.plan.capacity.identity import request_by_name
from reconciler.plan.guards.frozen import RELEASE
from reconciler.plan.release import reasons

# What must have been read to say that nothing of ours is left.
NEEDED = ("nodes", "pods", "nodepools.karpenter.sh", "nodeclaims.karpenter.sh")

_OWN_NAMESPACES = frozenset({names.OWN_NAMESPACE, SmartPods().namespace})
_FREEZE = ((names.FROZEN_UNTIL, None), (names.FROZEN_REASON, None))


class ReleaseContext(msgspec.Struct, frozen=True, dict=True):
    """What is looked at: all of it, or what belongs to one pool."""

    observed: Observed
    pool: str = ""

    @property
    def nodes(self) -> Iterator[Node]:
        """A node that is leaving takes all of it with it."""
        found = (each for each in self.observed.nodes if not each.metadata.leaving)
        return (each for each in found if not self.pool or each.pool == self.pool)

    def is_of_pool(self, labels: dict[str, str], node: str = "") -> bool:
        return not self.pool or self.pool in {labels.get(names.POOL), self._pool_of_node.get(node)}

    @cached_property
    def _pool_of_node(self) -> dict[str, str]:
        return {each.name: each.pool for each in self.observed.nodes}

    @cached_property
    def templates(self) -> dict[str, Unstructured]:
        return {each.name: each for each in self.observed.node_pools}

    @cached_property
    def own_pods(self) -> frozenset[tuple[str, str]]:
        """Namespace and name of the pods that we made. Labels alone prove nothing in the namespaces of tenants."""
        return frozenset((each.metadata.namespace, each.name) for each in self.observed.pods if _is_own_pod(each))

    def is_own_pod(self, namespace: str, name: str) -> bool:
        return (namespace, name) in self.own_pods

    @cached_property
    def claimed_labels(self) -> dict[str, dict[str, str]]:
        """What Karpenter was to put on each node, by the node's name."""
        return {each.status.node_name: each.metadata.labels for each in self.observed.node_claims}


def release(observed: Observed, pool: str = "") -> tuple[Decision, ...]:
    """What comes off now; what can't stays, as a hold that says why."""
    ground = ReleaseContext(observed, pool)
    found: dict[Ref, Decision] = {}
    for line in RELEASED:
        for decision in line(ground):
            found.setdefault(decision.subject, decision)
    return tuple(found[subject] for subject in sorted(found))


def why_unsure(observed: Observed) -> str:
    """Why something of ours may be there that is not seen; nothing when all could be read."""
    kept = tuple(each.kind for each in observed.unread if each.kind.endswith(f"{names.MANAGED}=true"))
    return observed.why_unread(*NEEDED, *kept)


def _taints(ground: ReleaseContext) -> Iterator[Decision]:
    for node in ground.nodes:
        lasting = _template_taints(ground, node)
        for taint in node.spec.taints:
            if taint.key.startswith(names.OURS) and (taint.key, taint.effect) not in lasting:
                act = Taint(key=taint.key, value=None, effect=taint.effect)
                why = reasons.TaintReleased(object=_node(node), key=taint.key, effect=taint.effect)
                yield _decision(_node(node), act, why, node.pool)


def _labels(ground: ReleaseContext) -> Iterator[Decision]:
    for node in ground.nodes:
        lasting = _template_labels(ground, node)
        ours = sorted(key for key in node.metadata.labels if key.startswith(names.OURS) and key not in lasting)
        if ours:
            act = Label(labels=tuple((key, None) for key in ours))
            why = reasons.LabelsReleased(object=_node(node), keys=tuple(ours))
            yield _decision(_node(node), act, why, node.pool)


def _freezes(ground: ReleaseContext) -> Iterator[Decision]:
    frozen: list[tuple[Ref, Metadata, str]] = [(_node(each), each.metadata, each.pool) for each in ground.nodes]
    if not ground.pool:
        own = (each for each in ground.observed.namespaces if not each.metadata.leaving)
        frozen += [(Ref("Namespace", "", each.name, each.metadata.uid), each.metadata, "") for each in own]
    for subject, metadata, pool in frozen:
        if metadata.annotations.frozen_until or metadata.annotations.frozen_reason:
            act = Annotate(annotations=_FREEZE)
            yield _decision(subject, act, reasons.FreezeReleased(object=subject), pool)


def _gates(ground: ReleaseContext) -> Iterator[Decision]:
    for pod in ground.observed.pods:
        metadata = pod.metadata
        if metadata.leaving or not ground.is_of_pool(metadata.labels, pod.node) or _is_own_pod(pod):
            continue
        for gate in pod.spec.scheduling_gates:
            if gate.name.startswith(names.OURS):
                subject = Ref("Pod", metadata.namespace, metadata.name, metadata.uid)
                why = reasons.GateReleased(object=subject, gate=gate.name)
                act = Ungate(gate=gate.name)
                yield _decision(subject, act, why, metadata.labels.get(names.POOL, ""))


def _evictions(ground: ReleaseContext) -> Iterator[Decision]:
    """Pods that were told to save their work, and are not evicted by us."""
    for pod in ground.observed.pods:
        metadata = pod.metadata
        if metadata.annotations.evict_at and not metadata.leaving and ground.is_of_pool(metadata.labels, pod.node):
            subject = Ref("Pod", metadata.namespace, metadata.name, metadata.uid)
            act = Annotate(annotations=((names.EVICT_AT, None),))
            why = reasons.EvictionReleased(object=subject, key=names.EVICT_AT)
            yield _decision(subject, act, why, metadata.labels.get(names.POOL, ""))


def _objects(ground: ReleaseContext) -> Iterator[Decision]:
    """What templates yielded beside NodePools: our own pods, their budgets and priorities."""
    users = Counter(each.spec.priority_class_name for each in ground.observed.pods if not _is_own_pod(each))
    for each in ground.observed.kept:
        metadata = each.metadata
        if metadata.deletion_timestamp or not ground.is_of_pool(metadata.labels):
            continue
        if each.kind == "Pod" and not ground.is_own_pod(metadata.namespace, each.name):
            continue
        subject = Ref(each.kind, metadata.namespace, each.name, metadata.uid)
        pool = metadata.labels.get(names.POOL, "")
        if each.kind == "PriorityClass" and (pods := users[each.name]):
            yield _decision(subject, Hold(), reasons.ReleasedWhenUnused(object=subject, pods=pods), pool)
            continue
        delete = Delete(
            presumes=Preconditions(resource_version="" if each.kind == "Pod" else metadata.resource_version)
        )
        yield _decision(subject, delete, reasons.ObjectReleased(object=subject), pool)


# In this order where several are for one subject: what keeps pods away goes first.
RELEASED: tuple[Callable[[ReleaseContext], Iterable[Decision]], ...] = (
    _taints,
    _labels,
    _freezes,
    _gates,
    _evictions,
    _objects,
)


def _decision(subject: Ref, act: Action | Hold, facts: CodeFacts, pool: str) -> Decision:
    return Decision(RELEASE, subject, act, Reason(facts), pool)


def _node(node: Node) -> Ref:
    return Ref("Node", "", node.name, node.metadata.uid)


def _is_own_pod(pod: Pod) -> bool:
    """A smart pod, wherever it is, or what bears our label where nobody else makes pods."""
    if request_by_name(pod) is not None:
        return True
    return pod.metadata.labels.get(names.MANAGED) == "true" and pod.metadata.namespace in _OWN_NAMESPACES


def _template_taints(ground: ReleaseContext, node: Node) -> set[tuple[str, str]]:
    """Those that the NodePool gives to each node for good; a startup taint is for whoever declared it to take off."""
    node_pool = ground.templates.get(node.metadata.labels.get(names.KARPENTER_POOL, ""))
    template = (node_pool.spec.get("template") or {}).get("spec") or {} if node_pool else {}
    return {(str(each.get("key")), str(each.get("effect"))) for each in template.get("taints") or ()}


def _template_labels(ground: ReleaseContext, node: Node) -> set[str]:
    """Those that it has from its NodePool; without Karpenter, people say by a label which pool it is of."""
    node_pool = ground.templates.get(node.metadata.labels.get(names.KARPENTER_POOL, ""))
    template = (node_pool.spec.get("template") or {}).get("metadata") or {} if node_pool else {}
    by_people = set() if names.KARPENTER_POOL in node.metadata.labels else {names.POOL}
    return {*(template.get("labels") or {}), *ground.claimed_labels.get(node.name, {}), *by_people}
