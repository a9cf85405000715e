"""The taint by which Karpenter keeps pods off a node that it takes away."""

from reconciler.model import names
from reconciler.model.plan.action import Ref
from reconciler.protocol.preconditions import Object
from reconciler.simulate.world import World

_TAINT = {"key": names.DISRUPTED, "effect": "NoSchedule"}


def set_disrupted(world: World, node: Object, wanted: bool = True) -> None:
    """Puts it on, or takes it off."""
    taints = (node.get("spec") or {}).get("taints") or []
    others = [each for each in taints if each["key"] != names.DISRUPTED]
    if wanted != (len(others) < len(taints)):
        patch = {"spec": {"taints": [*others, _TAINT] if wanted else others}}
        world.edit(Ref("Node", "", node["metadata"]["name"]), patch, "karpenter")
