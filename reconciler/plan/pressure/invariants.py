"""Invariants of evictions because of pressure."""

from collections.abc import Iterator

from reconciler.fleet.pressure.ledger_values import node_ledger
from reconciler.model.plan.decision import Evict
from reconciler.plan.feature.invariant import Invariant, InvariantInput
from reconciler.plan.pressure.ledgers import pressure_policies
from reconciler.plan.pressure.memory import MigrationMemory
from reconciler.plan.pressure.reasons import PLANNER


def _without_pressure(case: InvariantInput) -> Iterator[str]:
    """Evictions from nodes that are not under pressure at all. A repeated eviction is allowed."""
    evicted = [each for each in case.acted if each.decision.planner == PLANNER and isinstance(each.act, Evict)]
    if not evicted:
        return
    state, policies = case.inputs.pressure, pressure_policies(case.inputs.desired)
    pods = {each.metadata.uid: each for each in case.inputs.observed.pods}
    begun = {each.uid for each in case.inputs.memory.section(PLANNER, MigrationMemory).migrations}
    entries = {each.node: each for each in state.nodes} if state is not None else {}
    for each in evicted:
        uid = each.decision.subject.uid
        pod = pods.get(uid)
        node = case.fleet.node(pod.node) if pod is not None else None
        policy = policies.get(node.pool) if node is not None else None
        if pod is None or node is None or policy is None or policy.spec.migration == "None":
            yield f"{each.title}, which does not exist, or no PressurePolicy moves"
            continue
        ledger = node_ledger(entries[node.name]) if node.name in entries else None
        figures = [ledger.pressure(name) for name in ledger.bounds] if ledger is not None else []
        if uid not in begun and not any(one.logical or one.capacity for one in figures):
            yield f"{each.title}, on Node/{node.name}"


def _unremembered(case: InvariantInput) -> Iterator[str]:
    known = {each.uid for each in case.plan.memory.section(PLANNER, MigrationMemory).migrations}
    for each in case.acted:
        is_own = each.decision.planner == PLANNER and isinstance(each.act, Evict) and not each.decision.would
        if is_own and each.decision.subject.uid not in known:
            yield each.title


INVARIANTS = (
    Invariant("pods are evicted because of pressure only from nodes under pressure", _without_pressure),
    Invariant("each migration is remembered before its pod is evicted", _unremembered),
)
