"""Guard limits: recounts from the actual writes what reconciler removes.

The count is a lower bound of a guard's count: only disruptions started by reconciler, and only state that was
unchanged for a minute, since a plan may not have seen later changes. As in a guard, a tainted node counts from its
taint. So whatever exceeds a limit here exceeds it for any guard.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.cluster.node import Node
from reconciler.model.instant import Instant, moment
from reconciler.model.policy.guards import Ceiling
from reconciler.model.policy.scaling import NodeProvisioner
from reconciler.model.quantity import Quantity
from reconciler.plan.karpenter.template_hash import template_hash
from reconciler.protocol.preconditions import Object
from reconciler.simulate.invariants.invariant import (
    OBSERVED_WITHIN_MS,
    OUR_TAINTS,
    InvariantContext,
    begins,
    goes,
    is_ours,
    marks,
    min_size_at,
    removal_taints,
    spare_at,
)
from reconciler.simulate.objects import ObjectWrite, declared_pool_of, is_leaving, taints_of

_HOUR_MS = 3_600_000


class _Gone(msgspec.Struct, frozen=True, gc=False):
    """A node that reconciler removed or made drift."""

    at: Instant
    node: str
    pool: str
    gpus: int  # in use; none: the node was empty


class Ceilings:
    """No guard lets more pass than its limits, per plan or per hour."""

    rule = "no guard's ceiling is passed"
    kinds = ("Node", "NodePool")

    def __init__(self) -> None:
        self._gone: dict[str, _Gone] = {}  # of the last hour, by node, oldest first
        self._marked: dict[str, Instant] = {}  # existing nodes, by name
        self._emptied: dict[str, Instant] = {}  # nodes whose drain began, and when: each counts once per hour
        self._told: set[tuple[str, str, Instant]] = set()

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not is_ours(written):
            return
        if written.key[0] == "Node" and marks(written):
            self._marked = {name: at for name, at in self._marked.items() if name in context.where.nodes}
            self._marked.setdefault(written.key[2], context.now())
        if written.key[0] == "Node" and begins(written):
            self._emptied[written.key[2]] = context.now()
        taken = tuple(self._taken(written, context))
        if not taken or next(iter(context.world.of("ChangeApproval")), None) is not None:
            return
        now = context.now()
        self._gone = {name: each for name, each in self._gone.items() if now - each.at < _HOUR_MS}
        for each in taken:
            began = self._marked.get(each.node, now)
            if now - began < _HOUR_MS:
                self._gone.setdefault(each.node, msgspec.structs.replace(each, at=began))
        yield from self._passed(context, now)

    def _taken(self, written: ObjectWrite, context: InvariantContext) -> Iterator[_Gone]:
        kind, _, name = written.key
        # A drained node counts with its state at the start of the drain; it is empty at its removal.
        is_drained = names.DRAINING in removal_taints(written.before)
        if kind == "Node" and (marks(written) or (goes(written) and not is_drained)):
            yield from self._node(name, context)
        elif kind == "NodePool" and _drifts(written):
            for each, node in context.where.nodes.items():
                if node.pool == name and not node.is_leaving:
                    yield from self._node(each, context)

    def _node(self, name: str, context: InvariantContext) -> Iterator[_Gone]:
        where, now = context.where, context.now()
        node = where.nodes.get(name)
        if node is None or not context.lasts_since(where.flipped.get(name)):
            return
        gpus = context.gpus_known(name)
        was_drained = now - self._emptied.get(name, Instant(-_HOUR_MS)) < _HOUR_MS
        if gpus or not (where.counting_on(name) or was_drained):
            yield _Gone(now, name, node.pool, gpus)

    def _passed(self, context: InvariantContext, now: Instant) -> Iterator[str]:
        desired = context.desired()
        for guard in desired.guards:
            spec = guard.spec
            if spec.suspend:
                continue
            covered = [each for each in self._gone.values() if "*" in spec.pool_names or each.pool in spec.pool_names]
            at_once = [each for each in covered if each.at == now]
            for ceiling, period, gone in ((spec.per_plan, "plan", at_once), (spec.per_hour, "hour", covered)):
                for text in _above(ceiling, gone):
                    if (guard.name, period, now) not in self._told:
                        self._told = {(guard.name, period, now)}
                        yield f"guard {guard.name}, in one {period}: {text}"


def _above(ceiling: Ceiling, gone: list[_Gone]) -> Iterator[str]:
    empty, gpus = sum(not each.gpus for each in gone), sum(each.gpus for each in gone)
    if ceiling.max_removed_nodes is not None and empty > ceiling.max_removed_nodes:
        yield f"{empty} empty nodes removed, {ceiling.max_removed_nodes} allowed"
    if ceiling.max_disrupted_gpus is not None and gpus > ceiling.max_disrupted_gpus:
        yield f"{gpus} GPUs in use disrupted, {ceiling.max_disrupted_gpus} allowed"


def _drifts(written: ObjectWrite) -> bool:
    """Whether this write makes every node of the NodePool drift."""
    if written.before is None or written.after is None:
        return written.before is not None and goes(written)
    before, after = (each["spec"].get("template") or {} for each in (written.before, written.after))
    return template_hash(before) != template_hash(after)


# --- Lower bounds: drains respect the nodes that pools must keep, and all removals respect the cluster minimum.
#
# A scaled pool must keep as many nodes as scaling would keep after tight packing (design: who removes a node); the
# formula is repeated here. Removals and bindings by others in the last minute may not have been observed, so they are
# not held against reconciler.


class _Lost(msgspec.Struct, frozen=True, gc=False):
    """A node that was removed, or is being removed."""

    at: Instant
    node: Object
    is_ours: bool


class LeastKept:
    """Checked at the start of each drain; the cluster minimum also when scaling taints a node."""

    rule = "drains keep the minimum of a pool, and all removals keep the minimum of the cluster"
    kinds = ("Node",)

    def __init__(self) -> None:
        self._lately: list[_Lost] = []

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        now = context.now()
        self._lately = [each for each in self._lately if now - each.at < OBSERVED_WITHIN_MS]
        if written.before is not None and _is_lost(written):
            self._lately.append(_Lost(now, written.before, is_ours(written)))
        if begins(written):
            yield from self._pool(written.key[2], context)
        if is_ours(written) and marks(written):
            yield from self._cluster(written.key[2], context)

    def _pool(self, name: str, context: InvariantContext) -> Iterator[str]:
        pool = context.where.nodes[name].pool
        wish = context.provisioner(pool)
        if wish is None:
            return
        there = [each for each, node in context.where.nodes.items() if node.pool == pool and not node.is_leaving]
        leaving = sum(_is_going(context.node(each)) for each in there)
        unknown = sum(declared_pool_of(each.node) == pool for each in self._lately)
        serves = _may_serve(context.node(name) or {}, context)
        kept, floor = len(there) - leaving + unknown, self._floor(wish, there, context) if serves else wish.min_size
        if kept < floor:
            yield f"Node/{name} begins to be drained: {kept} nodes of {pool} stay, the minimum is {floor}"

    def _floor(self, wish: NodeProvisioner, there: list[str], context: InvariantContext) -> int:
        where, percent = context.where, wish.min_gpu_utilization_percent
        used = sum(map(context.gpus_known, there))
        total = sum(where.nodes[each].gpus for each in there)
        each_has = min((where.nodes[each].gpus for each in there if where.nodes[each].gpus), default=0)
        if not each_has or (100 * used >= percent * total and not self._lately):
            return len(there)
        now = context.now()
        # A schedule that begins now may not be observed yet.
        lately = Instant(now - OBSERVED_WITHIN_MS)
        spare, least = (min(of(wish, at) for at in (now, lately)) for of in (spare_at, min_size_at))
        closely = -(-used // each_has) + spare
        return min(max(100 * used // (percent * each_has), closely, least), wish.max_size)

    def _cluster(self, name: str, context: InvariantContext) -> Iterator[str]:
        """The largest clusterMin of all policies. Removals by others in the last minute may not have been observed."""
        policies = [each.spec for each in context.desired().drains if not each.spec.suspend]
        for resource in sorted({resource for each in policies for resource in each.cluster_min}):
            least = max(each.cluster_min[resource].milli for each in policies if resource in each.cluster_min)
            there = [each for each in context.world.of("Node") if not _is_going(each)]
            there += [each.node for each in self._lately if not each.is_ours]
            left = sum(_has(each, resource) for each in there)
            if left < least and _has(context.node(name) or {}, resource):
                yield f"Node/{name} is being removed: {left} m of {resource} stay, clusterMin is {least} m"


def _may_serve(node: Object, context: InvariantContext) -> bool:
    """Whether the node has been ready long enough to be observed; other nodes count only for minSize."""
    found: Node = msgspec.convert(node, Node)
    turned = (moment(each.last_transition_time) for each in found.status.conditions if each.type == "Ready")
    return found.is_ready and all(context.lasts_since(at or Instant(0)) for at in turned)


def _is_lost(written: ObjectWrite) -> bool:
    """Whether this write removes the node, except by starting a drain."""
    if begins(written):
        return False
    return goes(written) or bool(marks(written)) or (_is_going(written.after) and not _is_going(written.before))


def _is_going(node: Object | None) -> bool:
    """Whether the node is being removed."""
    if node is None or is_leaving(node):
        return True
    return any(each["key"] in {*OUR_TAINTS, names.DISRUPTED} for each in taints_of(node))


def _has(node: Object, resource: str) -> int:
    amount = ((node.get("status") or {}).get("allocatable") or {}).get(resource)
    return Quantity.parse(str(amount)).milli if amount is not None else 0
