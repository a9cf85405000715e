"""How many nodes of a NodePool Karpenter may disrupt at once, by the budgets in its spec."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.model.instant import Instant
from reconciler.plan.karpenter.budget_window import UnreadableWindow, is_open

# What the API server fills in where the field is left out; an empty list is something else: no budget at all.
_DEFAULT_NODES = "10%"
_DEFAULT: tuple[Mapping[str, Any], ...] = ({"nodes": _DEFAULT_NODES},)

_NUMBER = re.compile(r"([0-9]{1,18})(%?)", re.ASCII)
_LONGEST = 20


def allowed_at_once(node_pool_spec: Mapping[str, Any], nodes: int, reason: str, now: Instant) -> int | None:
    """The least that a budget in force allows for a reason (Drifted, Empty, Underutilized); None: nothing limits it.

    Nodes that are not ready or already on their way out count against it while they last; that is not subtracted here.
    """
    least: int | None = None
    for budget in _budgets(node_pool_spec):
        try:
            allowed = _allowed(budget, nodes, now)
        except UnreadableWindow:
            # Whichever reason that budget is for: Karpenter then disrupts nothing of this NodePool.
            return 0
        if allowed is not None and _is_for(budget, reason):
            least = allowed if least is None else min(least, allowed)
    return least


def _budgets(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    disruption = spec.get("disruption") or {}
    found = disruption.get("budgets")
    return _DEFAULT if found is None else found


def _is_for(budget: Mapping[str, Any], reason: str) -> bool:
    reasons = budget.get("reasons")
    return reasons is None or reason in reasons


def _allowed(budget: Mapping[str, Any], nodes: int, now: Instant) -> int | None:
    if not is_open(budget.get("schedule"), budget.get("duration"), now):
        return None
    written = _NUMBER.fullmatch(str(budget.get("nodes", _DEFAULT_NODES))[:_LONGEST])
    if written is None:
        return 0
    number = int(written[1])
    # Rounded up: 5 % of 10 nodes is one node, not none.
    return -(-number * nodes // 100) if written[2] else number
