"""What a decision takes away or disrupts, if it is carried out: a table over verbs, first match wins.

What no line names takes nothing: making things, making room, taking a taint off, edits in place. A planner that is new
needs no line here, unless it has a verb of its own.

A node that goes for good counts as removed where no GPU on it is in use, and by its GPUs in use where some are; one
that is replaced, or only emptied of its pods, by its GPUs in use alone.
"""

from collections.abc import Callable, Iterator

import msgspec

from reconciler.model import names
from reconciler.model.plan.action import Act, Apply, Delete, Evict, Hold, Ref, Taint
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Decision
from reconciler.model.plan.disruption_record import DisruptionRecord
from reconciler.plan.guards.context import GuardContext


class Removal(msgspec.Struct, frozen=True, gc=False):
    """One node, pod or NodePool."""

    mark: DisruptionRecord
    part: str  # how it goes, in words that follow a number
    node: str = ""  # of a pod: where it runs

    @property
    def weighs(self) -> bool:
        """Whether any limit is about it."""
        return self.mark.goes or self.mark.gpus > 0 or self.mark.kind == "NodePool"


class _RemovalRule(msgspec.Struct, frozen=True):
    kind: str
    does: Callable[[Act], bool]
    takes: Callable[[GuardContext, Decision], Iterator[Removal]]


_EDITED: dict[Fate, str] = {
    "removed": "drifted while empty",
    "replaced": "evicted",
    "blocked": "once what holds them up gives way",
    "deleted": "with their NodePool",
}


def taken(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    """All that it takes."""
    act = decision.act
    if isinstance(act, Hold):
        return
    for rule in RULES:
        if rule.kind == decision.subject.kind and rule.does(act):
            yield from rule.takes(stage, decision)
            return


def _node(part: str, *, goes: bool) -> Callable[[GuardContext, Decision], Iterator[Removal]]:
    def takes(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
        node = stage.fleet.node(decision.subject.name)
        if node is not None:
            yield Removal(stage.mark(node, goes=goes), part)

    return takes


def _node_of_claim(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    claim = stage.claim(decision.subject.name)
    node = stage.fleet.node(claim.status.node_name) if claim else None
    if node is not None:
        yield Removal(stage.mark(node, goes=True), "deleted")


def _pods(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    """Its subject, and those that leave with it."""
    for ref in decision.refs:
        yield from _pod(stage, ref, decision.pool)


def _pod(stage: GuardContext, ref: Ref, asked_for: str) -> Iterator[Removal]:
    pod = stage.pod(ref.namespace, ref.name)
    # A smart pod runs nobody's work. In the namespaces of tenants labels prove nothing.
    if pod is None or not pod.node or pod.is_finished or stage.identity.is_smart(pod):
        return
    node = stage.fleet.node(pod.node)
    pool = node.pool if node else asked_for
    gpus = stage.fleet.gpu_requests.of(pod)
    yield Removal(
        DisruptionRecord(stage.now, "Pod", pod.title, pod.metadata.uid, pool=pool, gpus=gpus), "evicted", pod.node
    )


def _edit(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    for each in stage.brought_about(decision.subject.name):
        if each.fate in _EDITED:
            yield from _fate(stage, each)


def _node_pool(stage: GuardContext, decision: Decision) -> Iterator[Removal]:
    subject = decision.subject
    yield Removal(
        DisruptionRecord(stage.now, "NodePool", subject.name, subject.uid, pool=decision.pool or subject.name),
        "deleted",
    )
    yield from _edit(stage, decision)


def _fate(stage: GuardContext, consequence: Consequence) -> Iterator[Removal]:
    pool = consequence.pool or consequence.node_pool
    for name, share in zip(consequence.nodes, consequence.shares, strict=True):
        # One that is held up is not replaced either, when nothing runs on it: budgets may be opened any day.
        goes = consequence.fate in {"removed", "deleted"} or (consequence.fate == "blocked" and not share.pods)
        node, claim = stage.fleet.node(name), stage.claim_of(name)
        uids = (node.metadata.uid if node else "", claim.metadata.uid if claim else "")
        yield Removal(
            DisruptionRecord(stage.now, "Node", name, *uids, pool, goes, share.gpus_in_use), _EDITED[consequence.fate]
        )


def _puts(key: str) -> Callable[[Act], bool]:
    return lambda act: isinstance(act, Taint) and act.key == key and act.value is not None


def _throws_out(act: Act) -> bool:
    return isinstance(act, Taint) and act.value is not None and act.effect == "NoExecute"


def _is(*verbs: type[Act]) -> Callable[[Act], bool]:
    return lambda act: isinstance(act, verbs)


RULES: tuple[_RemovalRule, ...] = (
    _RemovalRule("Node", _is(Delete), _node("deleted", goes=True)),
    _RemovalRule("Node", _puts(names.DELETION_TIME), _node("scaled down", goes=True)),
    _RemovalRule("Node", _puts(names.DRAINING), _node("drained", goes=True)),
    _RemovalRule("Node", _throws_out, _node("thrown out by a taint", goes=False)),
    _RemovalRule("NodeClaim", _is(Delete), _node_of_claim),
    _RemovalRule("Pod", _is(Delete, Evict), _pods),
    _RemovalRule("NodePool", _is(Apply), _edit),
    _RemovalRule("NodePool", _is(Delete), _node_pool),
)
