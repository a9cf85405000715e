"""The objects that an action on a node concerns beside the node: its NodeClaim, its NodePool, and its GpuPool where
policies are custom resources. A person who describes one of them sees what was done to the node."""

from functools import cached_property

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.plan.action import Ref
from reconciler.model.plan.decision import Decision


class RelatedObjects:
    """Owner of what was looked up for one plan."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def of(self, decision: Decision) -> tuple[Ref, ...]:
        """Only objects with a uid: an Event without one is found by nobody who describes the object."""
        node = self._fleet.node(decision.subject.name) if decision.subject.kind == "Node" else None
        if node is None:
            return ()
        claim = self._fleet.claims_on(node.pool).get(node.name)
        node_pool = self._node_pools.get(node.metadata.labels.get(names.KARPENTER_POOL, ""))
        refs = [Ref("NodeClaim", "", claim.name, claim.metadata.uid)] if claim is not None else []
        refs += [_ref(each) for each in (node_pool, self._gpu_pools.get(decision.pool)) if each is not None]
        return tuple(each for each in refs if each.uid)

    @cached_property
    def _node_pools(self) -> dict[str, Unstructured]:
        return {each.name: each for each in self._fleet.observed.node_pools}

    @cached_property
    def _gpu_pools(self) -> dict[str, Unstructured]:
        return {each.name: each for each in self._fleet.observed.policies if each.kind == "GpuPool"}


def _ref(whole: Unstructured) -> Ref:
    return Ref(whole.kind, "", whole.name, whole.metadata.uid)
