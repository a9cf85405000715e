"""The objects that the first policies yield, as the controller would have made them before the story begins."""

from collections.abc import Iterator

from reconciler.model.cluster.karpenter import NodeClass
from reconciler.model.cluster.kinds import RESOURCE_KINDS
from reconciler.model.desired import Desired
from reconciler.model.plan.action import Apply, Preconditions, Ref
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.reason import Reason
from reconciler.plan.manifests.reasons import Missing
from reconciler.plan.manifests.wanted_manifest import ref_of, wish_of
from reconciler.protocol.preconditions import Object
from reconciler.simulate.world import World

_CLASSES = {each.kind: each for each in RESOURCE_KINDS if each.type is NodeClass}
_VERSIONS = {"EC2NodeClass": "v1", "KWOKNodeClass": "v1alpha1"}


def put_pools(world: World, desired: Desired) -> None:
    """Node classes, NodePools, and whatever else the templates yield; all ours but the classes."""
    for body in node_classes(desired):
        world.put(body)
    decisions = [
        Decision(
            "manifests",
            ref_of(each, None),
            Apply(manifest=wish_of(each, None, desired.environment).text, presumes=Preconditions(absent=True)),
            Reason(Missing(object=ref_of(each, None)), each.origin),
            each.pool,
        )
        for each in desired.manifests
    ]
    for outcome in world.apply(decisions, _Always()):
        if outcome.result != "done":
            raise AssertionError(f"{outcome.subject.title} can't be made in an empty cluster: {outcome.detail}")


def node_classes(desired: Desired) -> Iterator[Object]:
    """Those that pools refer to, and that Karpenter knows."""
    for pool in desired.pools:
        ref = pool.spec.node_class_ref
        resource_kind = _CLASSES.get(ref.kind)
        if resource_kind is not None and resource_kind.group == ref.group:
            version = f"{ref.group}/{_VERSIONS[ref.kind]}"
            yield {"apiVersion": version, "kind": ref.kind, "metadata": {"name": ref.name}, "spec": {}}


def node_pool(world: World, name: str) -> Object | None:
    """As it stands."""
    return world.get(Ref("NodePool", "", name))


class _Always:
    """A Fence."""

    def holds(self) -> bool:
        return True
