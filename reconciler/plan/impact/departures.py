"""Nodes removed by scaling and drains, as consequences; impact/pricing.py prices them.

A node that is removed in any case keeps that fate whatever else would happen to it. A node that only this plan would
mark keeps its drift fate, if it drifts.

A standstill node (plan/holds/standstill.py) is not removed. In a pool where nothing is carried out, everything is
reported as suppressed: nothing happens in any case, and a node with a taint has no deletion time.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from reconciler.fleet.fleet import Fleet
from reconciler.model import names
from reconciler.model.instant import Instant, later, unix_seconds
from reconciler.model.plan.consequence import Cause, Consequence, Fate, Share, summed
from reconciler.model.plan.decision import Decision, Delete, Hold, Taint
from reconciler.model.plan.evaluation import DrainReport, ScalingReport
from reconciler.model.plan.inputs import Inputs
from reconciler.model.plan.plan import Plan
from reconciler.model.policy.scaling import LEAST_DELAY_MS
from reconciler.plan.draft import Draft
from reconciler.plan.drain import timers
from reconciler.plan.drain.backoff import rests_until
from reconciler.plan.drain.blockers import moves
from reconciler.plan.drain.candidates import EligibilityContext
from reconciler.plan.drain.context import DrainContext, DrainNode
from reconciler.plan.drain.evictions import EMPTY_FOR_MS
from reconciler.plan.drain.graceful_eviction import longest_grace
from reconciler.plan.drain.reasons import PLANNER
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.admission import of_another_cluster
from reconciler.plan.guards.observing import inaction_of
from reconciler.plan.guards.reasons import HeldByGuard
from reconciler.plan.impact.blame import Side
from reconciler.plan.scaling.reasons import PLANNER as SCALING
from reconciler.plan.windows import closed

# --- Nodes that drains empty: those being drained, and candidates after their timers.
#
# Simulates the limits on the number of candidates: nodes that a NodeProvisioner keeps, and clusterMin. If not all may
# be drained, the candidates with the highest savings are. Parallelism and limits of guards only delay candidates, so
# they exclude none.


class Departure(msgspec.Struct, frozen=True, gc=False):
    """One departing node of any planner."""

    pool: str
    fate: Fate
    cause: Cause
    at: Instant | None  # None: not before a guard allows it, a window opens, or a pod has completed
    wave: int = 0  # nodes of its pool at once; 0: unlimited
    seconds: int | None = None  # for one wave, until the nodes are deleted; None: unknown, or windows may close before
    has_begun: bool = False  # the node is being drained


def drains(scene: PlanningResult) -> dict[str, Departure]:
    """By node, sorted by name."""
    if not scene.plan.report(DrainReport).weighed:
        return {}
    return _Forecast(scene).drains()


class _Forecast:
    """State of the limits while candidates are counted against them."""

    def __init__(self, scene: PlanningResult) -> None:
        self._scene = scene
        self._context = DrainContext(scene.inputs, _draft(scene))
        self._eligibility = EligibilityContext(self._context)
        own = (each for each in scene.plan.decisions if each.planner == PLANNER and each.subject.kind == "Node")
        self._decisions = {each.subject.name: each for each in own}
        self._acted_on = frozenset(_acted_on(scene))
        self._taken: Counter[str] = Counter()

    def drains(self) -> dict[str, Departure]:
        by_name = self._context.by_name
        begun = [each for name, each in self._context.draining.items() if not self._is_given_back(name)]
        candidates = [by_name[each.node] for each in self._scene.plan.report(DrainReport).weighed if each.is_candidate]
        nodes = [*begun, *self._within_limits(candidates)]
        return {each.name: self._drain(each) for each in sorted(nodes, key=lambda each: each.name)}

    def _is_given_back(self, node: str) -> bool:
        decision = self._decisions.get(node)
        act = decision.act if decision is not None else None
        return isinstance(act, Taint) and act.key == names.DRAINING and act.value is None

    def _within_limits(self, candidates: list[DrainNode]) -> Iterator[DrainNode]:
        """Nodes that begin in this plan first; then by savings."""
        cluster_min = self._eligibility.cluster_min
        for drain_node in sorted(candidates, key=self._order_key):
            budget = self._eligibility.budgets.get(drain_node.pool)
            if not self._begins_now(drain_node):
                if budget is not None and self._taken[drain_node.pool] >= budget.left(drain_node):
                    continue
                if cluster_min.why_not(drain_node.node):
                    continue
            self._taken[drain_node.pool] += 1
            cluster_min.take(drain_node.node)
            yield drain_node

    def _order_key(self, drain_node: DrainNode) -> tuple[bool, tuple[int, int], str]:
        return not self._begins_now(drain_node), self._eligibility.worth.key(drain_node), drain_node.name

    def _begins_now(self, drain_node: DrainNode) -> bool:
        """Whether this plan drains the node, or would if no guard held it."""
        decision = self._decisions.get(drain_node.name)
        return decision is not None and (_drains(decision) or _is_held_by_guard(decision))

    def _drain(self, drain_node: DrainNode) -> Departure:
        spec = drain_node.policy.spec
        pods = [pod for pod in self._scene.fleet.pods_on(drain_node.name) if moves(pod)]
        most = spec.max_scale_down_parallelism
        grace = longest_grace(drain_node, pods) if pods else 0
        has_begun = drain_node.draining is not None
        is_known = has_begun or drain_node.candidate_since is not None
        return Departure(
            drain_node.pool,
            "drained",
            "standing" if is_known and drain_node.name not in self._acted_on else "change",
            self._begins_at(drain_node),
            min(spec.max_drain_parallelism, most) if pods else most,
            None if spec.windows else grace + EMPTY_FOR_MS // 1_000,
            has_begun=has_begun,
        )

    def _begins_at(self, drain_node: DrainNode) -> Instant | None:
        now = self._context.now
        if drain_node.draining is not None:
            return drain_node.draining.since
        if drain_node.name in self._context.completing:
            return None
        if self._begins_now(drain_node):
            decision = self._decisions[drain_node.name]
            return decision.act.until if isinstance(decision.act, Hold) else now
        vain = self._eligibility.in_vain.get(drain_node.pool)
        if not drain_node.is_ready or self._context.is_empty(drain_node):
            vain = None
        if vain is not None and drain_node.pool in self._eligibility.no_better:
            return None
        rested = rests_until(vain) if vain is not None and drain_node.pool in self._eligibility.resting else now
        begins = Instant(max(now, timers.due_at(self._context, drain_node), rested))
        shut = closed(drain_node.policy.spec.windows, begins)
        return begins if shut is None else shut.until


def _draft(scene: PlanningResult) -> Draft:
    """The draft as the drain planner saw it: with the actions of scaling in this plan."""
    draft = Draft(scene.fleet, scene.inputs.desired)
    for each in scene.plan.decisions:
        if each.planner == SCALING and not isinstance(each.act, Hold):
            draft.claim(each)
    return draft


def _drains(decision: Decision) -> bool:
    act = decision.act
    return isinstance(act, Taint) and act.key == names.DRAINING and act.value is not None


def _is_held_by_guard(decision: Decision) -> bool:
    return isinstance(decision.act, Hold) and isinstance(decision.reason.facts, HeldByGuard)


def _acted_on(scene: PlanningResult) -> Iterator[str]:
    """Names of nodes that this plan marks, deletes, or evicts from."""
    pods = {(each.metadata.namespace, each.name): each.node for each in scene.inputs.observed.pods}
    for each in scene.plan.decisions:
        if each.planner != PLANNER or isinstance(each.act, Hold):
            continue
        if each.subject.kind == "Node":
            yield each.subject.name
        elif each.subject.kind == "Pod":
            yield from (pods.get((ref.namespace, ref.name), "") for ref in each.refs)


def with_departures(own: Side, base: Side | None = None) -> tuple[Side, Side | None]:
    """Both plans, with nodes removed by scaling and drains among their consequences."""
    departures = _departures(own)
    if base is None:
        standing = frozenset(name for name, each in departures.items() if each.cause == "standing")
        return _with(own, departures, standing), None
    before = _departures(base)
    declared = {pool.name for pool in base.scene.inputs.desired.pools}
    # Consequences that the base also has are not caused by the change, whatever this plan does to the node.
    entries = {
        name: _caused(each, standing=_comes_anyway(each, before.get(name), is_seen=each.pool in declared))
        for name, each in departures.items()
    }
    return _with(own, entries, frozenset(before)), _with(base, before, frozenset(before))


def _departures(side: Side) -> dict[str, Departure]:
    scene = side.scene
    by_node = drains(scene)
    for name, each in departing(scene.inputs, scene.plan).items():
        by_node[name] = Departure(each.pool, "scaled", "standing" if each.is_marked else "change", each.at)
    checked = (
        (name, _as_it_stands(scene, name, each)) for name, each in sorted(by_node.items()) if side.does(each.pool)
    )
    return {name: each for name, each in checked if each is not None}


def _as_it_stands(scene: PlanningResult, node: str, departure: Departure) -> Departure | None:
    """The departure as far as it is carried out, or would be."""
    standstill = scene.standstills.get(node)
    if of_another_cluster(scene.inputs, departure.pool):
        return None
    if inaction_of(scene.inputs, scene.fleet, departure.pool) is None:
        return departure if standstill is None else None
    return msgspec.structs.replace(departure, cause="change", at=None if standstill else departure.at)


def _comes_anyway(departure: Departure, before: Departure | None, *, is_seen: bool) -> bool:
    """`is_seen`: the base declares the pool, so its consequences there are known."""
    if before is None:
        return departure.cause == "standing" and not is_seen
    return before.fate == departure.fate and (departure.fate == "drained" or departure.cause == "standing")


def _caused(departure: Departure, *, standing: bool) -> Departure:
    return msgspec.structs.replace(departure, cause="standing" if standing else "change")


def _with(side: Side, departures: Mapping[str, Departure], anyway: frozenset[str]) -> Side:
    if not departures:
        return side
    scene = side.scene
    drifting = {name for each in scene.plan.consequences if each.fate != "undrifted" for name in each.nodes}
    departs = {name: each for name, each in departures.items() if name in anyway or name not in drifting}
    others = [each.only(name for name in each.nodes if name not in departs) for each in scene.plan.consequences]
    consequences = (*_consequences(scene.fleet, departs), *(each for each in others if each is not None))
    return side.with_consequences(consequences)


def _consequences(fleet: Fleet, departs: Mapping[str, Departure]) -> Iterator[Consequence]:
    """One per pool, fate and cause."""
    groups: dict[tuple[Fate, str, Cause], dict[str, Departure]] = {}
    for name, each in departs.items():
        groups.setdefault((each.fate, each.pool, each.cause), {})[name] = each
    # Independent consequences are priced first, and scaling before drains, in planner order.
    order = sorted(groups, key=lambda key: (key[0] != "scaled", key[1], key[2] != "standing"))
    for fate, pool, cause in order:
        nodes = groups[fate, pool, cause]
        wave = min((each.wave for each in nodes.values()), default=0)
        like = Consequence(pool, pool, cause, fate, (), 0, 0, 0, 0, wave=wave, seconds=_seconds(nodes.values(), wave))
        yield summed(like, [(name, _share(fleet, name, each)) for name, each in nodes.items()])


def _seconds(nodes: Iterable[Departure], wave: int) -> int | None:
    seconds = [each.seconds for each in nodes]
    known = [each for each in seconds if each is not None]
    if not wave or len(known) < len(seconds):
        return None
    return -(-len(seconds) // wave) * max(known)


def _share(fleet: Fleet, name: str, departure: Departure) -> Share:
    node = fleet.node(name)
    gpus = node.gpus if node is not None else 0
    moving = [pod for pod in fleet.pods_on(name) if moves(pod)] if departure.fate == "drained" else []
    in_use = min(gpus, sum(map(fleet.gpu_requests.of, moving)))
    return Share(gpus, in_use, len(moving), 0, 0, (), at=departure.at)


# --- Nodes that a plan allows scaling to remove, marked before or by the plan, with their times.
#
# Nodes held by a guard are included: they are removed after approval. Nodes that the plan unmarks are not.


class Departing(msgspec.Struct, frozen=True, gc=False):
    node: str
    pool: str
    at: Instant | None  # None: not before it is marked, which is held
    since: Instant | None = None  # when it was marked, by its delay
    is_marked: bool = False  # before this plan


def departing(inputs: Inputs, plan: Plan) -> dict[str, Departing]:
    """By node."""
    delays = {each.name: each.spec.scale_down_delay.milliseconds for each in inputs.desired.provisioners}
    departing_nodes = {}
    for evaluated in plan.report(ScalingReport).sizes:
        delay_ms = max(LEAST_DELAY_MS, delays.get(evaluated.provisioner, 0))
        for each in evaluated.marked:
            since = later(each.at, -delay_ms) if each.at - delay_ms <= inputs.now else None
            departing_nodes[each.node] = Departing(each.node, evaluated.pool, each.at, since, is_marked=True)
    for decision in plan.decisions:
        if decision.planner == SCALING and decision.subject.kind == "Node":
            _follow(departing_nodes, decision)
    return dict(sorted(departing_nodes.items()))


def _follow(departing_nodes: dict[str, Departing], decision: Decision) -> None:
    name = decision.subject.name
    match decision.act:
        case Taint(key=names.DELETION_TIME, value=None):
            departing_nodes.pop(name, None)
        case Taint(key=names.DELETION_TIME, value=str() as value):
            before = departing_nodes.get(name)
            since = before.since if before else None
            departing_nodes[name] = Departing(
                name, decision.pool, unix_seconds(value), since, is_marked=before is not None
            )
        case Delete():
            departing_nodes.setdefault(name, Departing(name, decision.pool, None))
        case Hold() if isinstance(decision.reason.facts, HeldByGuard):
            departing_nodes.setdefault(name, Departing(name, decision.pool, None))
