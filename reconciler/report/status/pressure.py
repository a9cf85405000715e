"""Nodes under pressure of the overview."""

from typing import Any

import msgspec

from reconciler.plan.files.dump import PlanningResult
from reconciler.plan.pressure.report import PressedNode, pressed_nodes
from reconciler.plan.pressure.words import amount_words
from reconciler.report.sentences import fact_words
from reconciler.report.wording import counted


def pressed_of(scene: PlanningResult) -> tuple[PressedNode, ...]:
    """Nodes under pressure after the plan."""
    return pressed_nodes(scene.inputs, scene.fleet, scene.plan.memory)


def pressed_node_words(node: PressedNode) -> str:
    """Such as n1 of l4: cpu: 1 above its watermark; 1 pod leaving, cpu 500m not accounted for."""
    text = f"{node.node} of {node.pool}: {fact_words(node.pressed)}"
    left = [f"{each.resource} {amount_words(each.resource, each.left)}" for each in node.pressed if each.left]
    leaving = f"{counted(node.migrating, 'pod')} leaving" if node.migrating else "no pod is leaving"
    rest = f", {' and '.join(left)} not accounted for" if left else ""
    return f"{text}; {leaving}{rest}"


def pressed_node_json(node: PressedNode) -> dict[str, Any]:
    return {
        "node": node.node,
        "pool": node.pool,
        "pressed": [msgspec.to_builtins(each) for each in node.pressed],
        "migrating": node.migrating,
    }
