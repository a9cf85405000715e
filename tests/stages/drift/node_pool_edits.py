"""Edits of NodePools at random: every field that drifts something, and those that drift nothing."""

import copy
import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.lab.api import Manifest
from tests.lab.capacity import CPU_ONLY, G5, G6, ZONES

OTHER_CLASS = "other"
TIER, GENERATION, NOWHERE = "lab/tier", "lab/generation", "lab/nowhere"
TIERS, GENERATIONS = ("gold", "silver"), ("4", "5", "6")
TYPES = (G5, G6, CPU_ONLY)
CAPACITY_TYPES = ("on-demand", "spot")

_ZONE = "topology.kubernetes.io/zone"
_TYPE = "node.kubernetes.io/instance-type"
_CAPACITY_TYPE = "karpenter.sh/capacity-type"
_TAINTS: Sequence[Mapping[str, str]] = (
    {"key": "lab/a", "effect": "NoSchedule"},
    {"key": "lab/a", "value": "x", "effect": "NoSchedule"},
    {"key": "lab/b", "effect": "PreferNoSchedule"},
)
_IN_OTHER_WORDS = {"24h": "1440m", "1440m": "86400s", "86400s": "24h", "720h": "30h690h", "30h690h": "720h"}

Edit = Callable[[Manifest, random.Random], None]


def edited(spec: Manifest, first: Manifest, chance: random.Random) -> tuple[tuple[str, ...], Manifest]:
    """What was done to the spec, and what came of it. Often it goes back first, or all claims would soon be drifted."""
    after = copy.deepcopy(spec)
    done = []
    if chance.random() < 0.15:
        return ("back to the first",), copy.deepcopy(first)
    if chance.random() < 0.4:
        done.append("back to the first but for requirements")
        required = after["template"]["spec"]["requirements"]
        after["template"] = copy.deepcopy(first["template"])
        after["template"]["spec"]["requirements"] = required
    # Many are of requirements alone: only they drift some claims and not others.
    of = sorted(_REQUIREMENT_EDITS if chance.random() < 0.3 else EDITS)
    for name in chance.sample(of, chance.choice([1, 1, 1, 2, 3])):
        EDITS[name](after, chance)
        done.append(name)
    return tuple(done), after


def _set(holder: Manifest, key: str, value: Any) -> None:
    """None takes it away."""
    if value is None:
        holder.pop(key, None)
    else:
        holder[key] = value


def _template(key: str, *values: Any) -> Edit:
    """One of these values, in the spec of the template."""
    return lambda spec, chance: _set(spec["template"]["spec"], key, chance.choice(values))


def _metadata(key: str, *values: Any) -> Edit:
    return lambda spec, chance: _set(spec["template"].setdefault("metadata", {}), key, chance.choice(values))


def _spec(key: str, *values: Any) -> Edit:
    return lambda spec, chance: _set(spec, key, chance.choice(values))


def _taints(key: str) -> Edit:
    def edit(spec: Manifest, chance: random.Random) -> None:
        some = [dict(each) for each in chance.sample(_TAINTS, chance.randint(0, 2))]
        _set(spec["template"]["spec"], key, chance.choice([some, some, None]))

    return edit


def _class(spec: Manifest, chance: random.Random) -> None:
    reference = spec["template"]["spec"]["nodeClassRef"]
    reference["name"] = OTHER_CLASS if reference["name"] != OTHER_CLASS else "lab"


def _require(key: str, values: Sequence[str], *operators: str) -> Edit:
    """Requires something else of a label, in place of what was required of it."""

    def edit(spec: Manifest, chance: random.Random) -> None:
        template = spec["template"]["spec"]
        kept = [each for each in template["requirements"] if each["key"] != key]
        made = [_requirement(key, values, chance.choice(operators), chance) for _ in range(chance.choice([1, 1, 2]))]
        template["requirements"] = kept + [each for each in made if each]

    return edit


def _requirement(key: str, values: Sequence[str], operator: str, chance: random.Random) -> Manifest | None:
    match operator:
        case "none":
            return None
        case "Exists" | "DoesNotExist":
            return {"key": key, "operator": operator}
        case "In" | "NotIn":
            some = chance.sample(values, chance.randint(1, len(values) if operator == "In" else 1))
            least = {"minValues": 1} if operator == "In" and chance.random() < 0.2 else {}
            return {"key": key, "operator": operator, "values": some, **least}
    return {"key": key, "operator": operator, "values": [chance.choice(values)]}


def _shuffle(spec: Manifest, chance: random.Random) -> None:
    template = spec["template"]["spec"]
    for key in ("taints", "startupTaints", "requirements"):
        chance.shuffle(template.get(key, []))
    for requirement in template["requirements"]:
        chance.shuffle(requirement.get("values", []))


def _reword(spec: Manifest, _: random.Random) -> None:
    """Durations of the same length in other words."""
    template = spec["template"]["spec"]
    for key in ("expireAfter", "terminationGracePeriod"):
        if key in template:
            template[key] = _IN_OTHER_WORDS.get(template[key], template[key])


# Karpenter must only mark: no budget here ever lets it replace a node.
_BUDGETS = ([{"nodes": "0"}], [{"nodes": "0"}, {"nodes": "10%", "reasons": ["Drifted"]}])

_REQUIREMENT_EDITS: dict[str, Edit] = {
    "zones": _require(_ZONE, ZONES, "In", "In", "NotIn"),
    "instance types": _require(_TYPE, [each.name for each in TYPES], "In", "In", "NotIn", "Exists"),
    "capacity types": _require(_CAPACITY_TYPE, CAPACITY_TYPES, "In", "NotIn", "Exists"),
    "tier": _require(TIER, TIERS, "In", "NotIn", "Exists", "DoesNotExist", "none"),
    "generation": _require(GENERATION, GENERATIONS, "Gt", "Gte", "Lt", "Lte", "NotIn"),
    "a label that no claim has": _require(NOWHERE, ["x", "y"], "In", "NotIn", "DoesNotExist", "none"),
}
EDITS: dict[str, Edit] = {
    **_REQUIREMENT_EDITS,
    "labels": _metadata(
        "labels", {"team": "research"}, {"team": "serving"}, {"team": "research", "more": ""}, {}, None
    ),
    "annotations": _metadata("annotations", {"lab/note": "a"}, {"lab/note": "b, 研究"}, {}, None),
    "taints": _taints("taints"),
    "startupTaints": _taints("startupTaints"),
    "expireAfter": _template("expireAfter", "Never", "720h", "24h", "1440m", None),
    "terminationGracePeriod": _template("terminationGracePeriod", "24h", "1440m", "1h", "0s", None),
    "nodeClassRef": _class,
    "limits": _spec("limits", {"cpu": "1000"}, {"nodes": "50"}, None),
    "disruption": _spec(
        "disruption",
        *({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "Never", "budgets": each} for each in _BUDGETS),
    ),
    "order": _shuffle,
    "words": _reword,
}
