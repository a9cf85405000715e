"""Leaving and arriving nodes: names, causes, and times."""

from collections.abc import Iterator

import msgspec

from reconciler.model import names
from reconciler.model.instant import Instant, clock, format_moment
from reconciler.model.plan.consequence import Consequence, Fate
from reconciler.model.plan.decision import Ref
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.observing import Observation, inaction_of
from reconciler.plan.impact.purchases import bought_when, bought_words
from reconciler.report.decision_text import marked
from reconciler.report.explain.about import by_guard
from reconciler.report.wording import counted

_MOST_NAMED = 3

_BY_FATE: dict[Fate, str] = {
    "scaled": "scaled down",
    "drained": "drained",
    "removed": "drifted and empty, deleted by Karpenter",
    "replaced": "drifted, replaced by Karpenter",
    "blocked": "drifted, cannot be disrupted",
    "deleted": "deleted with the NodePool",
}

_PARTICIPLES = ("scaled down", "drained", "deleted", "bought")


class LeavingNodes(msgspec.Struct, frozen=True):
    """Nodes of a pool that leave or arrive in the same way."""

    pool: str
    how: str
    nodes: tuple[str, ...]  # node names; for machines without nodes, NodeClaim names, if any
    pods: int = 0  # pods that must move
    first_at: Instant | None = None
    last_at: Instant | None = None
    observation: Observation | None = None  # why the change is suppressed
    guard: str = ""  # the guard that holds the change
    has_names: bool = True  # False: not launched yet

    def words(self, now: Instant) -> str:
        """Such as a100: 3 nodes to be scaled down, at 14:52Z (in 30 s): n1, n2, n3."""
        more = len(self.nodes) - _MOST_NAMED
        named = ", ".join(self.nodes[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        pods = f", {counted(self.pods, 'pod')} to move" if self.pods else ""
        when = f"{self._becomes(now)}{self.how}{self._when(now)}"
        text = f"{self.pool}: {counted(len(self.nodes), 'node')} {when}{pods}"
        words = marked(f"{text}: {named}" if self.has_names else text, self.observation)
        return words + (f" (once {self.guard} allows it)" if self.guard else "")

    def _becomes(self, now: Instant) -> str:
        if not self.how.startswith(_PARTICIPLES):
            return ""
        return "being " if self.first_at is not None and self.first_at <= now else "to be "

    def _when(self, now: Instant) -> str:
        if self.first_at is None or self.last_at is None:
            return ""
        if self.first_at <= now:
            return f", since {clock(self.first_at, now)}"
        until = f" to {clock(self.last_at, now)}" if clock(self.first_at, now) != clock(self.last_at, now) else ""
        return f", {format_moment(self.first_at, now)}{until}"


def leaving_of(scene: PlanningResult) -> tuple[LeavingNodes, ...]:
    """`scene` includes the consequences of scaling and drains."""
    leaving_nodes = [*_deleted(scene)]
    # A standstill node is not leaving: its hold describes it.
    counted_names = {name for each in leaving_nodes for name in each.nodes} | scene.standstills.keys()
    for consequence in scene.plan.consequences:
        left = consequence.only(name for name in consequence.nodes if name not in counted_names)
        if left is not None and left.fate in _BY_FATE:
            leaving_nodes += [_of(scene, part, guard) for guard, part in by_guard(scene, left)]
    leaving_nodes += [*_arriving(scene), *_bought(scene)]
    return tuple(sorted(leaving_nodes, key=lambda each: (each.pool, each.first_at or 0, each.how)))


def _of(scene: PlanningResult, consequence: Consequence, guard: Ref | None) -> LeavingNodes:
    times = [each.at for each in consequence.shares if each.at is not None]
    return LeavingNodes(
        consequence.pool or consequence.node_pool,
        _BY_FATE[consequence.fate],
        consequence.nodes,
        consequence.pods,
        min(times, default=None),
        max(times, default=None),
        observation=_why_not_done(scene, consequence),
        guard=guard.title if guard is not None else "",
    )


def _why_not_done(scene: PlanningResult, consequence: Consequence) -> Observation | None:
    """Why a consequence is suppressed. Consequences that do not depend on the plan are never suppressed."""
    return inaction_of(scene.inputs, scene.fleet, consequence.pool) if consequence.cause == "change" else None


def _bought(scene: PlanningResult) -> Iterator[LeavingNodes]:
    """Nodes requested now or later; without nodes that already have a NodeClaim, and without replacements."""
    for each in scene.plan.consequences:
        if each.fate == "bought" and each.order is not None and each.order.stage not in {"machine", "refill"}:
            when = next(bought_when(each, scene.inputs.now))
            words, observation = f"{bought_words(each)}, {when}", _why_not_done(scene, each)
            yield LeavingNodes(each.pool, words, each.nodes, observation=observation, has_names=False)


def _deleted(scene: PlanningResult) -> Iterator[LeavingNodes]:
    """Nodes that are already being deleted, or disrupted by Karpenter."""
    for pool in scene.inputs.desired.pools:
        nodes = scene.fleet.nodes_of(pool.name)
        deleted = [each.name for each in nodes if each.metadata.leaving]
        disrupted = [each.name for each in nodes if not each.metadata.leaving and each.taint(names.DISRUPTED)]
        for how, own in (("being deleted", deleted), ("being disrupted by Karpenter", disrupted)):
            if own:
                yield LeavingNodes(pool.name, how, tuple(sorted(own)))


def _arriving(scene: PlanningResult) -> Iterator[LeavingNodes]:
    for pool in scene.inputs.desired.pools:
        claims = scene.fleet.claims_of(pool.name)
        coming = tuple(sorted(each.name for each in claims if not each.status.node_name and not each.metadata.leaving))
        if coming:
            yield LeavingNodes(pool.name, "are arriving" if len(coming) > 1 else "is arriving", coming)
