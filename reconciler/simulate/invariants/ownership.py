"""Ownership: reconciler leaves alone what others are changing, what is frozen, and pools in Observe mode."""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.desired import Desired
from reconciler.model.instant import Instant, moment
from reconciler.plan.nodes.ownership import opt_out
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import (
    OBSERVED_WITHIN_MS,
    InvariantContext,
    checks,
    goes,
    is_ours,
    marks,
    removal_taints,
    removed_by_us,
)
from reconciler.simulate.objects import (
    Key,
    ObjectWrite,
    annotations_of,
    declared_pool_of,
    is_leaving,
    labels_of,
    node_of,
    taints_of,
)

_UPGRADE_IS_OVER = frozenset({"", "upgrade-done"})


@checks("nodes that another component is removing are not touched", "Node")
def others_nodes(written: ObjectWrite, _: InvariantContext) -> Iterator[str]:
    if (node := removed_by_us(written)) is not None and (why := whose(node)):
        yield f"Node/{written.key[2]} is changed although {why}"


def whose(node: Object) -> str:
    """Why another component is removing the node; empty if none is."""
    upgrade = labels_of(node).get(names.UPGRADE_STATE, "")
    if is_leaving(node):
        return "it is being deleted already"
    if any(each["key"] == names.DISRUPTED for each in taints_of(node)):
        return "Karpenter is disrupting it"
    if upgrade not in _UPGRADE_IS_OVER:
        return f"its driver is being upgraded ({upgrade})"
    return "it was cordoned by another component" if (node.get("spec") or {}).get("unschedulable") else ""


@checks("reconciler neither taints nor deletes nodes that opt out of removal", "Node")
def opted_out_nodes(written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
    """The API server compares the annotations with those of the plan, so no change is missed."""
    node = removed_by_us(written)
    if node is not None and (found := opt_out(msgspec.convert(node, Node), context.now())) is not None:
        yield f"Node/{written.key[2]} is removed although it has {found.key}: {found.value}"


@checks("no node has the taints of two planners", "Node")
def one_owner(written: ObjectWrite, _: InvariantContext) -> Iterator[str]:
    if marks(written) and len(taints := removal_taints(written.after)) > 1:
        yield f"Node/{written.key[2]} has {' and '.join(sorted(taints))}"


class FreezeInvariant:
    """A freeze applies as soon as it can be observed."""

    rule = "frozen objects are not changed"
    kinds = ("Namespace", "Node", "NodePool", "Pod")

    def __init__(self) -> None:
        self._since: dict[Key, Instant] = {}  # frozen objects, and the time of the freeze

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if written.key[0] != "Pod":  # Pods are never frozen themselves
            self._note(written, context)
        if not self._since or not is_ours(written):
            return
        kind, _, name = written.key
        is_release = kind == "Node" and written.before is not None and not (marks(written) or goes(written))
        if is_release or kind == "Namespace":
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

    def _over(self, written: ObjectWrite, context: InvariantContext) -> Iterator[Key]:
        """All objects whose freeze applies to the object."""
        node = node_of(written.before or written.after) if written.key[0] == "Pod" else written.key[2]
        observed = context.where.nodes.get(node)
        yield ("Namespace", "", context.world.own_namespace)
        yield ("NodePool", "", written.key[2] if written.key[0] == "NodePool" else observed.pool if observed else "")
        yield ("Node", "", node)

    def _holds(self, key: Key, context: InvariantContext) -> bool:
        """An unreadable freeze holds forever."""
        found = context.world.at(key)
        if found is None or not context.lasts_since(self._since.get(key)):
            return False
        until = moment(_freeze(found))
        return until is None or until > context.now()


def _freeze(body: Object | None) -> str:
    return annotations_of(body).get(names.FROZEN_UNTIL, "")


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
            return labels_of(body).get(names.POOL) or written.key[2]
        node = context.where.nodes.get(node_of(body))
        return declared_pool_of(body) or (node.pool if node else "")

    def _in_force(self, context: InvariantContext) -> list[Desired]:
        """The current policies, and previous ones as long as a plan may still use them."""
        now, desired = context.now(), context.desired()
        before = [each for each in self._wishes if each[0] is not desired and now - each[1] < OBSERVED_WITHIN_MS]
        self._wishes = [*before, (desired, now)]
        return [each for each, _ in self._wishes]
