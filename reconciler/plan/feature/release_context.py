"""Input for releasing a cluster, and decisions that remove the reconciler's marks and objects."""

from collections.abc import Iterator
from functools import cached_property

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.decision import Action, CodeFacts, Decision, Hold, Reason, Ref
from reconciler.model.policy.gpu import SmartPods
from reconciler.plan.capacity.requests import request_by_name
from reconciler.plan.guards.frozen import RELEASE

_OWN_NAMESPACES = frozenset({names.OWN_NAMESPACE, SmartPods().namespace})


class ReleaseContext(msgspec.Struct, frozen=True, dict=True):
    """Scope of a release: the whole cluster, or one pool."""

    observed: Observed
    pool: str = ""

    @property
    def nodes(self) -> Iterator[Node]:
        """Nodes to clean up; a node that is being deleted needs no cleanup."""
        nodes = (each for each in self.observed.nodes if not each.metadata.leaving)
        return (each for each in nodes if not self.pool or each.pool == self.pool)

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
        """Namespace and name of pods created by reconciler. In namespaces of tenants, labels alone prove nothing."""
        return frozenset((each.metadata.namespace, each.name) for each in self.observed.pods if made_by_us(each))

    @cached_property
    def claimed_labels(self) -> dict[str, dict[str, str]]:
        """Labels that Karpenter should set on each node, by node name."""
        return {each.status.node_name: each.metadata.labels for each in self.observed.node_claims}


def released(subject: Ref, act: Action | Hold, facts: CodeFacts, pool: str) -> Decision:
    return Decision(RELEASE, subject, act, Reason(facts), pool)


def made_by_us(pod: Pod) -> bool:
    """Whether the pod is a smart pod, or has our label in a namespace where only reconciler creates pods."""
    if request_by_name(pod) is not None:
        return True
    return pod.metadata.labels.get(names.MANAGED) == "true" and pod.metadata.namespace in _OWN_NAMESPACES
