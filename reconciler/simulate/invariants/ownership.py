"""Ownership: reconciler leaves alone what others are changing, what is frozen, and pools in Observe mode."""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, instant
from reconciler.model.plan.decision import Ref
from reconciler.plan.nodes.ownership import opt_out
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import InvariantContext, goes, is_marked, is_ours, pool_of, taints_of
from reconciler.simulate.objects import ObjectWrite

_UPGRADE_IS_OVER = frozenset({"", "upgrade-done"})
OBSERVED_WITHIN_MS = 60_000  # later writes may not be observed by the writer yet


class OthersNodes:
    """A node that another component is removing is neither tainted nor deleted."""

    rule = "nodes that another component is removing are not touched"
    kinds = ("Node",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not is_ours(written) or not (is_marked(written) or goes(written)):
            return
        if written.before is not None and (why := whose(written.before)):
            yield f"Node/{written.key[2]} is changed although {why}"


def whose(node: Object) -> str:
    metadata, spec = node["metadata"], node.get("spec") or {}
    upgrade = (metadata.get("labels") or {}).get(names.UPGRADE_STATE, "")
    if metadata.get("deletionTimestamp"):
        return "it is being deleted already"
    if any(each["key"] == names.DISRUPTED for each in spec.get("taints") or ()):
        return "Karpenter is disrupting it"
    if upgrade not in _UPGRADE_IS_OVER:
        return f"its driver is being upgraded ({upgrade})"
    return "it was cordoned by another component" if spec.get("unschedulable") else ""


class OptedOutNodes:
    """Nodes that opt out of removal stay.

    The API server compares the annotations with those of the plan, so no change is missed.
    """

    rule = "reconciler neither taints nor deletes nodes that opt out of removal"
    kinds = ("Node",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not is_ours(written) or not (is_marked(written) or goes(written)) or written.before is None:
            return
        node: Node = msgspec.convert(written.before, Node)
        if (found := opt_out(node, context.now())) is not None:
            yield f"Node/{node.name} is removed although it has {found.key}: {found.value}"


class OneOwner:
    """Only one planner removes a node."""

    rule = "no node has the taints of two planners"
    kinds = ("Node",)

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if is_marked(written) and len(taints := taints_of(written.after)) > 1:
            yield f"Node/{written.key[2]} has {' and '.join(sorted(taints))}"


class FreezeInvariant:
    """A freeze applies as soon as it can be observed."""

    rule = "frozen objects are not changed"
    kinds = ("Namespace", "Node", "NodePool", "Pod")

    def __init__(self) -> None:
        self._since: dict[tuple[str, str, str], Instant] = {}  # frozen objects, and the time of the freeze

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if written.key[0] != "Pod":  # Pods are never frozen themselves
            self._note(written, context)
        if not self._since or not is_ours(written):
            return
        kind, _, name = written.key
        if kind == "Node" and written.before is not None and not (is_marked(written) or goes(written)):
            return
        if kind == "Namespace":
            return
        for key in self._over(written, context):
            if self._holds(key, context):
                yield f"{kind}/{name} is written although {key[0]}/{key[2]} is frozen"

    def _note(self, written: ObjectWrite, context: InvariantContext) -> None:
        was, is_now = _freeze(written.before), _freeze(written.after)
        if is_now and is_now != was:
            self._since[written.key] = context.now()
        elif not is_now:
            self._since.pop(written.key, None)

    def _over(self, written: ObjectWrite, context: InvariantContext) -> Iterator[tuple[str, str, str]]:
        """All objects whose freeze applies to the object."""
        body = written.before or written.after or {"metadata": {}}
        node = (body.get("spec") or {}).get("nodeName", "") if written.key[0] == "Pod" else written.key[2]
        observed = context.where.nodes.get(node)
        yield ("Namespace", "", context.world.own_namespace)
        yield ("NodePool", "", written.key[2] if written.key[0] == "NodePool" else observed.pool if observed else "")
        yield ("Node", "", node)

    def _holds(self, key: tuple[str, str, str], context: InvariantContext) -> bool:
        since, found = self._since.get(key), context.world.get(Ref(*key))
        if since is None or context.now() - since < OBSERVED_WITHIN_MS or found is None:
            return False
        try:
            return instant(_freeze(found)) > context.now()
        except ValueError:
            return True


def _freeze(body: Object | None) -> str:
    found = ((body or {}).get("metadata") or {}).get("annotations") or {}
    return str(found.get(names.FROZEN_UNTIL, ""))


class Observing:
    """Pools in Observe mode are never written."""

    rule = "pools in Observe mode are not written"
    kinds = ("Node", "NodePool", "NodeClaim", "Pod", "PodDisruptionBudget")

    def __init__(self) -> None:
        self._wishes: list[tuple[Desired, Instant]] = []  # and until when a plan may still use each

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        kind, _, name = written.key
        if not is_ours(written):
            return
        pool = self._pool(written, context)
        modes = {declared.spec.mode for wish in self._in_force(context) if (declared := wish.pool(pool))}
        if modes == {"Observe"}:
            yield f"{kind}/{name} of pool {pool} is written"

    def _pool(self, written: ObjectWrite, context: InvariantContext) -> str:
        body = written.before or written.after
        if body is None:
            return ""
        if written.key[0] == "NodePool":
            return (body["metadata"].get("labels") or {}).get(names.POOL) or written.key[2]
        node = context.where.nodes.get((body.get("spec") or {}).get("nodeName", ""))
        return pool_of(body) or (node.pool if node else "")

    def _in_force(self, context: InvariantContext) -> list[Desired]:
        """The current policies, and previous ones as long as a plan may still use them."""
        now, desired = context.now(), context.desired()
        if not self._wishes or self._wishes[-1][0] is not desired:
            self._wishes.append((desired, now))
        current = self._wishes.pop()[0]
        self._wishes = [each for each in self._wishes if now - each[1] < OBSERVED_WITHIN_MS]
        self._wishes.append((current, now))
        return [each for each, _ in self._wishes]
