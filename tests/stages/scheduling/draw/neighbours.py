"""Wishes about other pods, at random: affinity, anti-affinity and spreading, with all their fields."""

from tests.stages.scheduling.draw.chance import (
    APPS,
    NAMESPACE_LABELS,
    NAMESPACES,
    REVISIONS,
    TEAMS,
    TOPOLOGY_KEYS,
    Chance,
    Manifest,
)

_EXPRESSIONS: tuple[Manifest, ...] = (
    {"key": "app", "operator": "In", "values": ["web", "db"]},
    {"key": "app", "operator": "NotIn", "values": ["web"]},
    {"key": "team", "operator": "Exists"},
    {"key": "team", "operator": "DoesNotExist"},
    {"key": "revision", "operator": "In", "values": ["2"]},
    {"key": "revision", "operator": "NotIn", "values": ["1", "3"]},
)
_LABELS = (("app", APPS), ("revision", REVISIONS), ("team", TEAMS))


def selector(chance: Chance) -> Manifest:
    """Pods by label; sometimes all of them."""
    if chance.percent(8):
        return {}
    found: Manifest = {}
    if chance.percent(75):
        key, values = chance.choice(_LABELS)
        found["matchLabels"] = {key: chance.name(values)}
    if not found or chance.percent(25):
        found["matchExpressions"] = [dict(each) for each in chance.some(_EXPRESSIONS, 1, 2)]
    return found


def term(chance: Chance) -> Manifest:
    """One term of affinity or of anti-affinity."""
    found: Manifest = {"topologyKey": chance.choice(TOPOLOGY_KEYS)}
    if chance.percent(5):
        return found  # without a selector it matches no pod
    found["labelSelector"] = selector(chance)
    if chance.percent(30):
        found["namespaces"] = chance.some(NAMESPACES, 1, 2)
    if chance.percent(35):
        found["namespaceSelector"] = _namespaces(chance)
    told = {*found["labelSelector"].get("matchLabels", {})}
    told |= {each["key"] for each in found["labelSelector"].get("matchExpressions", ())}
    free = [key for key in ("app", "revision", "team", "absent") if key not in told]
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if free and chance.percent(15):
            found[field] = [free.pop(chance.randrange(len(free)))]
    return found


def affinity(chance: Chance) -> list[Manifest]:
    return [term(chance) for _ in range(chance.choice([1, 1, 1, 2]))]


def spread(chance: Chance) -> list[Manifest]:
    """One constraint or two, of different keys."""
    found = {each["topologyKey"]: each for each in (_spread(chance) for _ in range(chance.choice([1, 1, 2])))}
    return list(found.values())


def _spread(chance: Chance) -> Manifest:
    found: Manifest = {
        "maxSkew": chance.choice([1, 1, 1, 2, 3]),
        "topologyKey": chance.choice(TOPOLOGY_KEYS),
        "whenUnsatisfiable": "DoNotSchedule" if chance.percent(90) else "ScheduleAnyway",
    }
    if chance.percent(92):
        found["labelSelector"] = selector(chance)
        told = {*found["labelSelector"].get("matchLabels", {})}
        told |= {each["key"] for each in found["labelSelector"].get("matchExpressions", ())}
        if chance.percent(25) and (free := [key for key in ("app", "revision", "absent") if key not in told]):
            found["matchLabelKeys"] = [chance.choice(free)]
    if found["whenUnsatisfiable"] == "DoNotSchedule" and chance.percent(25):
        found["minDomains"] = chance.randint(1, 5)
    if chance.percent(30):
        found["nodeAffinityPolicy"] = chance.choice(["Honor", "Ignore"])
    if chance.percent(30):
        found["nodeTaintsPolicy"] = chance.choice(["Honor", "Ignore"])
    return found


def _namespaces(chance: Chance) -> Manifest:
    if chance.percent(20):
        return {}
    if chance.percent(15):
        return {"matchLabels": {"kubernetes.io/metadata.name": chance.choice(NAMESPACES)}}
    key, values = chance.choice(sorted(NAMESPACE_LABELS.items()))
    if chance.percent(30):
        return {"matchExpressions": [{"key": key, "operator": chance.choice(["Exists", "DoesNotExist"])}]}
    return {"matchLabels": {key: chance.choice(values)}}
