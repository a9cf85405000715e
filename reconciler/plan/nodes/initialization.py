"""Whether a node has settled: one that has just come is not empty yet, its pods are on their way.

Karpenter says of a NodeClaim that it is Initialized once its node is ready and has all that was promised. For as long
as that takes the node is on its way, though not for longer than Karpenter gives a machine to register: one that hangs
is a node like any other after that.

A node that is not ready may be back in a moment, as after a restart of its kubelet. After that it has no room for
pods that wait.
"""

from reconciler.model import names
from reconciler.model.cluster.karpenter import NodeClaim
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, later, moment

SETTLES_AFTER_MS = 60_000
LONGEST_ARRIVAL_MS = 900_000
READY_AGAIN_WITHIN_MS = 120_000


def settles_at(node: Node, claim: NodeClaim | None, now: Instant) -> Instant | None:
    """When it will have settled, or is to be looked at again; None where it has."""
    if node.taint(names.ARRIVING) is not None:
        return later(now, SETTLES_AFTER_MS)
    written = [node.metadata.creation_timestamp]
    written += [each.last_transition_time for each in node.status.conditions if each.type == "Ready"]
    latest = max(_after(each, SETTLES_AFTER_MS) for each in written)
    if is_initializing(node, claim, now):
        latest = max(latest, _after(node.metadata.creation_timestamp, LONGEST_ARRIVAL_MS))
    return latest if latest > now else None


def is_initializing(node: Node, claim: NodeClaim | None, now: Instant) -> bool:
    """Whether it has come, and can't be used yet."""
    condition = claim.condition("Initialized") if claim is not None else None
    if condition is None or condition.status == "True":
        return False
    return _after(node.metadata.creation_timestamp, LONGEST_ARRIVAL_MS) > now


def may_take_pods(node: Node, now: Instant) -> bool:
    """Whether the node is ready, or has not been unready for long."""
    if node.is_ready:
        return True
    turned = [each.last_transition_time for each in node.status.conditions if each.type == "Ready"]
    turned = turned or [node.metadata.creation_timestamp]
    return max(_after(each, READY_AGAIN_WITHIN_MS) for each in turned) > now


def _after(written: str, wait_ms: int) -> Instant:
    """So long after a time; one that is not told, or that can't be read, was long ago."""
    at = moment(written)
    return Instant(0) if at is None else later(at, wait_ms)
