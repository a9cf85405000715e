"""Guards hold: what we take away, counted again from what was really written.

Counted is less than a guard counts: only what we began ourselves, and only what had been so for a minute, since a plan
may not have seen what changed after that. A node that was marked first counts from then on, as it does for a guard. So
whatever is found here is one too many for any guard.
"""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant
from reconciler.model.policy.change_guard import Ceiling
from reconciler.plan.karpenter.template_hash import template_hash
from reconciler.simulate.invariants.invariant import InvariantContext, goes, is_marked, is_ours, taints_of
from reconciler.simulate.invariants.ownership import OBSERVED_WITHIN_MS
from reconciler.simulate.objects import ObjectWrite

_HOUR_MS = 3_600_000


class _Gone(msgspec.Struct, frozen=True, gc=False):
    """A node that we made go, or drift."""

    at: Instant
    node: str
    pool: str
    gpus: int  # in use; none: it was empty


class Ceilings:
    """No guard lets more through than it allows, in a plan or in an hour."""

    rule = "no guard's ceiling is passed"
    kinds = ("Node", "NodePool")

    def __init__(self) -> None:
        self._gone: dict[str, _Gone] = {}  # of the last hour, by node, the oldest first
        self._marked: dict[str, Instant] = {}  # by node, as long as it is there
        self._emptied: dict[str, Instant] = {}  # nodes that began to be drained, and when: each counts once an hour
        self._told: set[tuple[str, str, Instant]] = set()

    def wrote(self, written: ObjectWrite, context: InvariantContext) -> Iterator[str]:
        if not is_ours(written):
            return
        if written.key[0] == "Node" and is_marked(written):
            self._marked = {name: at for name, at in self._marked.items() if name in context.where.nodes}
            self._marked.setdefault(written.key[2], context.now())
        if written.key[0] == "Node" and names.DRAINING in taints_of(written.after) - taints_of(written.before):
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
        # What was drained counts as it was when that began, by which it is empty when it goes.
        is_drained = names.DRAINING in taints_of(written.before)
        if kind == "Node" and (is_marked(written) or (goes(written) and not is_drained)):
            yield from self._node(name, context)
        elif kind == "NodePool" and _drifts(written):
            for each, node in context.where.nodes.items():
                if node.pool == name and not node.is_leaving:
                    yield from self._node(each, context)

    def _node(self, name: str, context: InvariantContext) -> Iterator[_Gone]:
        where, now = context.where, context.now()
        node = where.nodes.get(name)
        if node is None or now - where.flipped.get(name, now) < OBSERVED_WITHIN_MS:
            return
        pods = [key for key in where.pods_on(name) if now - where.placed.get(key, now) >= OBSERVED_WITHIN_MS]
        gpus = min(node.gpus, sum(where.pods[key].gpus for key in pods))
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
    """Whether every node of the NodePool is to be replaced because of this write."""
    if written.before is None or written.after is None:
        return written.before is not None and goes(written)
    before, after = (each["spec"].get("template") or {} for each in (written.before, written.after))
    return template_hash(before) != template_hash(after)
