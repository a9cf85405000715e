"""Builds the report of a plan: decisions as texts, and each pool with its cost."""

from collections.abc import Iterable

import msgspec

from reconciler.model.bundle import PolicyChange
from reconciler.model.cluster.node import Node
from reconciler.model.plan.consequence import LEAVES, Consequence
from reconciler.model.plan.decision import Decision, Hold
from reconciler.model.plan.inputs import Inputs
from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.guards.admission import guard_cluster_messages
from reconciler.plan.guards.approvals import approval_notes
from reconciler.plan.guards.frozen import Freezes
from reconciler.plan.holds.classes import ChangeScope, blocked_holds, hold_class, supposed_by
from reconciler.plan.impact.departures import Departing, departing
from reconciler.plan.impact.impact import with_expected, with_impact
from reconciler.plan.impact.pricing import Priced
from reconciler.plan.planner import unread_of_use
from reconciler.report.decision_text import DecisionText, edited
from reconciler.report.document import SectionContainment
from reconciler.report.header import ReportHeader, set_aside_notices
from reconciler.report.plans.plan_shape import Amount
from reconciler.report.plans.planned import Planned
from reconciler.report.plans.pool_section import pool_lines
from reconciler.report.sentences import sentence


class Compared(msgspec.Struct, frozen=True):
    """The plan of the base revision on the same cluster, and the policy changes between the two."""

    scene: PlanningResult
    changes: tuple[PolicyChange, ...]

    @property
    def scope(self) -> ChangeScope:
        """Scope by which holds count for this change."""
        return ChangeScope(frozenset((each.kind, each.name) for each in self.changes), self.scene.plan)


def planned_of(
    setting: ReportHeader, scene: PlanningResult, compared: Compared | None, notices: tuple[str, ...] = ()
) -> Planned:
    before, contained, planned = compared.scene if compared else None, SectionContainment(), scene
    departs = contained.several("the departing nodes", lambda: _departing(planned, before))
    unpriced = Priced(planned, before, {})
    priced = contained.part("departing nodes, new nodes and cost", lambda: with_impact(planned, before), unpriced)
    base = priced.base
    scene = contained.part("the expected counts of guards", lambda: with_expected(priced.scene), priced.scene)
    nodes, gpus = contained.part("the remaining fleet", lambda: _fleet_left(scene, base), (_NONE, _NONE))
    pools = contained.several("the pools", lambda: pool_lines(scene, base, priced.bills))
    guards, aside = guard_cluster_messages(scene.inputs), set_aside_notices(scene.inputs.observed)
    freezes = Freezes(scene.inputs, scene.fleet).all()
    return Planned(
        setting=setting,
        plan=scene.plan,
        decision_texts=describe_decisions(scene.inputs, scene.plan.decisions, compared.scope if compared else None),
        base=base.plan if base else None,
        changes=compared.changes if compared else (),
        pools=pools,
        nodes=nodes,
        gpus=gpus,
        unread=unread_of_use(scene.inputs.observed),
        notices=(*notices, *aside, *guards.notices, *approval_notes(scene.inputs)),
        warnings=(
            *contained.notes,
            *guards.warnings,
            *(f"{each.scope_text} is frozen {each.until_text}" for each in freezes),
        ),
        freezes=freezes,
        departing=departs,
    )


_NONE = Amount(0, 0, 0)


def _departing(scene: PlanningResult, base: PlanningResult | None) -> tuple[Departing, ...]:
    """Departing nodes. A node that departs without the change too has that time, even if a guard holds the change."""
    departing_nodes = _departures(scene)
    for name, each in (_departures(base) if base else {}).items():
        if name not in departing_nodes or departing_nodes[name].at is None:
            departing_nodes[name] = each
    return tuple(departing_nodes.values())


def _departures(scene: PlanningResult) -> dict[str, Departing]:
    """Departing nodes of a plan. A standstill node has no departure, whatever its taint."""
    by_node = departing(scene.inputs, scene.plan)
    return {name: each for name, each in by_node.items() if name not in scene.standstills}


def describe_decisions(
    inputs: Inputs, decisions: Iterable[Decision], scope: ChangeScope | None = None
) -> tuple[DecisionText, ...]:
    """Texts of the decisions, with their edits of existing objects and the class of each hold."""
    decisions = tuple(decisions)
    blocking = frozenset(blocked_holds(inputs, decisions, scope))
    return tuple(
        DecisionText(
            decision,
            sentence(decision.reason),
            edited=edited(decision, inputs),
            hold=hold_class(inputs, decision),
            blocks=isinstance(decision.act, Hold) and decision in blocking,
            observation=supposed_by(inputs, decision),
        )
        for decision in decisions
    )


def _fleet_left(scene: PlanningResult, base: PlanningResult | None) -> tuple[Amount, Amount]:
    """Nodes and their GPUs. Each node counts once by name, since two plans may have two fates for it."""
    touched = {each.node_pool for one in (scene, base) if one for each in one.plan.consequences}
    pools = sorted({pool.name for pool in scene.inputs.desired.pools} | touched)
    there = [node for pool in pools for node in scene.fleet.nodes_of(pool) if not node.metadata.leaving]
    own = scene.plan.consequences
    without = base.plan.consequences if base else tuple(each for each in own if each.cause == "standing")
    left = [_gpus_left(there, consequences) for consequences in ((), without, own)]
    return Amount(*map(len, left)), Amount(*(sum(each.values()) for each in left))


def _gpus_left(nodes: Iterable[Node], consequences: Iterable[Consequence]) -> dict[str, int]:
    """GPUs by node, after the consequences; new nodes have placeholder names."""
    consequences = tuple(consequences)
    gone = {name for each in consequences if each.fate in LEAVES for name in each.nodes}
    bought = {
        name: share.gpus
        for each in consequences
        if each.fate == "bought"
        for name, share in zip(each.nodes, each.shares, strict=True)
    }
    return {node.name: node.gpus for node in nodes if node.name not in gone} | bought
