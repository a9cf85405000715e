"""Wishes about nodes, at random: selectors, required affinity with all operators, tolerations."""

from collections.abc import Sequence

from tests.stages.scheduling.draw.chance import (
    GENERATION,
    GENERATIONS,
    RACK,
    RACKS,
    TIER,
    TIERS,
    ZONE,
    ZONES,
    Chance,
    Manifest,
)
from tests.stages.scheduling.draw.nodes import TAINTS, UNSCHEDULABLE

_LABELS = ((ZONE, ZONES), (RACK, RACKS), (TIER, TIERS), (GENERATION, GENERATIONS))


def node_selector(chance: Chance) -> dict[str, str]:
    return {key: chance.choice(values) for key, values in chance.some(_LABELS, 1, 2)}


def node_affinity(chance: Chance, nodes: Sequence[str]) -> Manifest:
    terms = [_term(chance, nodes) for _ in range(chance.choice([1, 1, 2]))]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def tolerations(chance: Chance) -> list[Manifest]:
    """Of all taints, of some, or of something near them."""
    if chance.percent(15):
        return [{"operator": "Exists"}]
    if chance.percent(10):
        return [{"operator": "Exists", "effect": chance.choice(["NoSchedule", "NoExecute"])}]
    return [_toleration(chance) for _ in range(chance.randint(1, 3))]


def _term(chance: Chance, nodes: Sequence[str]) -> Manifest:
    found: Manifest = {}
    if chance.percent(85):
        found["matchExpressions"] = [_expression(chance) for _ in range(chance.choice([1, 1, 2]))]
    if chance.percent(20):
        # One value, by the rules of the field.
        operator = chance.choice(["In", "NotIn"])
        found["matchFields"] = [{"key": "metadata.name", "operator": operator, "values": [chance.choice(nodes)]}]
    return found


def _expression(chance: Chance) -> Manifest:
    if chance.percent(30):
        bound = chance.choice(["0", "3", "4", "5", "9", "x"])
        return {"key": GENERATION, "operator": chance.choice(["Gt", "Lt"]), "values": [bound]}
    key, values = chance.choice(_LABELS)
    operator = chance.choice(["In", "In", "NotIn", "Exists", "DoesNotExist"])
    told = {} if operator in {"Exists", "DoesNotExist"} else {"values": chance.some(values, 1, 2)}
    return {"key": key, "operator": operator, **told}


def _toleration(chance: Chance) -> Manifest:
    if chance.percent(35):
        value = chance.choice(["drained", "drained", ""])
        return {"key": UNSCHEDULABLE, "operator": "Equal", "value": value, "effect": "NoSchedule"}
    taint = chance.choice(TAINTS)
    found: Manifest = {"key": taint["key"]}
    if chance.percent(40):
        found["operator"] = "Exists"
    else:
        found |= {"operator": "Equal", "value": chance.choice(["research", "serving", "x", ""])}
    if chance.percent(60):
        found["effect"] = chance.choice([taint["effect"], "NoSchedule"])
    return found
