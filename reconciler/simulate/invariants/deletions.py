"""Nothing that runs is taken away: the rules about deletions and evictions."""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.cluster.pod import Pod
from reconciler.model.cluster.stuck_pods import LONGEST_GRACE_SECONDS, is_stuck
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import InvariantContext, goes, is_ours, policy_of
from reconciler.simulate.objects import Key, ObjectWrite


class BusyNodes:
    """A node is deleted only when nothing that counts is on it, but pods that nobody will end."""

    rule = "no node with a pod that counts is deleted by us"
    kinds = ("Node",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if is_ours(written) and goes(written):
            name, found = written.key[2], waited_for(written.before or {}, context)
            if found:
                more = f" and {len(found) - 1} more" if len(found) > 1 else ""
                yield f"Node/{name} is deleted with {'/'.join(found[0])}{more} on it"


def waited_for(node: Object, context: InvariantContext) -> list[Key]:
    """Pods on a node that count, without those that nobody will end."""
    counting = [each for each in context.where.pods_on(node["metadata"]["name"]) if context.where.pods[each].counts]
    if not counting:
        return []
    seen, now = msgspec.convert(node, Node), context.now()
    policy = policy_of(seen.pool, context)
    longest = policy.spec.max_graceful_termination_seconds if policy is not None else LONGEST_GRACE_SECONDS
    pods = ((key, context.world.at(key)) for key in counting)
    return [key for key, body in pods if body is None or not is_stuck(msgspec.convert(body, Pod), seen, now, longest)]


class NodeClaimOwnership:
    """NodeClaims are Karpenter's."""

    rule = "no NodeClaim is made or deleted by us"
    kinds = ("NodeClaim",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if is_ours(written) and (written.before is None or goes(written)):
            yield f"NodeClaim/{written.key[2]} is {'made' if written.before is None else 'deleted'}"


class ProtectedPods:
    """Whoever says that a pod must not be disrupted is heard."""

    rule = "no pod that says so is disrupted by us"
    kinds = ("Pod",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not is_ours(written) or not goes(written) or written.before is None:
            return
        title = "/".join(part for part in written.key if part)
        if why := _why_protected(written.before):
            yield f"{title} is made to go although {why}"


def _why_protected(pod: Object) -> str:
    metadata, phase = pod["metadata"], (pod.get("status") or {}).get("phase")
    if phase in {"Succeeded", "Failed"} or not (pod.get("spec") or {}).get("nodeName"):
        return ""
    if names.COMPONENT in (metadata.get("labels") or {}):  # what we made ourselves is nobody's work
        return ""
    annotations = metadata.get("annotations") or {}
    if annotations.get(names.DO_NOT_DISRUPT) == "true":
        return f"it carries {names.DO_NOT_DISRUPT}"
    if (said := annotations.get(names.SAFE_TO_EVICT)) in {"false", "on-completion"}:
        return f"it carries {names.SAFE_TO_EVICT}={said}"
    return ""
