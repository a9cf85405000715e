"""Pressure of a node, computed from the objects of the world, independently of the ledgers and of the planner.

The world knows what pods request, and not what agents asked for: a node counts as under pressure only if more is
requested than its watermark allows. Pods that are being deleted do not count, except for the evicted one: so an
eviction that the pressure does not need is told.
"""

from fractions import Fraction

from reconciler.model import names
from reconciler.model.policy.scaling import Pressure, PressurePolicy
from reconciler.model.quantity import amount_offered, requested_amount
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import InvariantContext
from reconciler.simulate.objects import annotations_of, is_finished, is_leaving, node_of

_BILLIONTHS_A_MILLI = 10**6


def leaves_because_of_pressure(pod: Object, context: InvariantContext) -> bool:
    """Whether a PressurePolicy lets this pod leave its node. `pod`: as before its eviction."""
    policy = _policy_on(node_of(pod), context)
    if policy is None or not annotations_of(pod).get(names.ELASTIC) or not _is_counted(pod):
        return False
    return any(_is_above(pod, name, bounds, context) for name, bounds in policy.resources.items())


def _policy_on(node: str, context: InvariantContext) -> PressurePolicy | None:
    """The policy in force that moves pods off the node."""
    observed = context.where.nodes.get(node)
    pool = observed.pool if observed is not None else ""
    specs = [each.spec for each in context.desired().pressures if not each.spec.suspend]
    own = [each for each in specs if pool in each.pool_names] or [each for each in specs if "*" in each.pool_names]
    return own[0] if pool and own and own[0].migration != "None" else None


def _is_above(pod: Object, name: str, bounds: Pressure, context: InvariantContext) -> bool:
    node = context.node(node_of(pod)) or {}
    total = amount_offered((node.get("status", {}).get("allocatable") or {}).get(name, "0"))
    there = [pod, *(body for body in _others(pod, context) if not is_leaving(body))]
    reserved = sum(_requests(each, name) for each in there if _is_counted(each))
    reservable = max(0, total - bounds.system.milli * _BILLIONTHS_A_MILLI)
    return reserved > Fraction(bounds.watermark.basis_points, 10_000) * reservable


def _others(pod: Object, context: InvariantContext) -> list[Object]:
    uid = pod["metadata"]["uid"]
    bodies = (context.world.at(key) for key in context.where.pods_on(node_of(pod)))
    return [each for each in bodies if each is not None and each["metadata"]["uid"] != uid]


def _is_counted(pod: Object) -> bool:
    """Whether our scheduler placed the pod; all other pods belong to the system."""
    return (pod.get("spec") or {}).get("schedulerName") == names.GPU_SCHEDULER and not is_finished(pod)


def _requests(pod: Object, name: str) -> int:
    """In billionths."""
    amounts = (each.get("resources") or {} for each in pod["spec"].get("containers", ()))
    texts = ((each.get("requests") or {}).get(name) or (each.get("limits") or {}).get(name, "0") for each in amounts)
    return sum(map(requested_amount, texts))
