"""The definition of each resource of a node: what may be reserved, and from where on pods are to move away."""

from reconciler.fleet.amounts import CPU, MEMORY, counted
from reconciler.model.cluster.node import Node
from reconciler.model.plan.pressure import Bounds, NodeBounds
from reconciler.model.policy.scaling import PressurePolicy
from reconciler.model.quantity import Quantity


def node_bounds(node: Node, policy: PressurePolicy) -> NodeBounds:
    """The definitions of a node. A resource that the node does not offer has nothing to reserve."""
    offered = counted(node.status.allocatable)
    return {
        name: Bounds(
            offered.get(name, 0),
            _rounded_up(name, pressure.system),
            pressure.watermark.basis_points,
            _slot(name, policy),
            max(1, amount_in_units(name, policy.compute_unit[name])) if name in policy.compute_unit else 1,
        )
        for name, pressure in sorted(policy.resources.items())
    }


def amount_in_units(name: str, quantity: Quantity) -> int:
    """A quantity of a policy in the units of the resource, rounded down."""
    return quantity.milli if name == CPU else quantity.milli // 1_000


def _rounded_up(name: str, quantity: Quantity) -> int:
    return quantity.milli if name == CPU else -(-quantity.milli // 1_000)


def _slot(name: str, policy: PressurePolicy) -> int:
    if name == CPU:
        return 1_000
    return max(1, amount_in_units(name, policy.mem_slot_size)) if name == MEMORY else 1
