"""Random small clusters where pods ask about other pods, as plain manifests."""

from typing import Any

from hypothesis import strategies as some

from reconciler.model import names
from tests.unit.fleet.topology.stage import Json, node_of, pod_of

NAMESPACES: dict[str, Json] = {"default": {}, "other": {"team": "x"}, "third": {"team": "y"}}
KEYS = ("zone", "rack", "host")

LABELS: tuple[Json, ...] = (
    {"app": "web"},
    {"app": "web", "v": "1"},
    {"app": "web", "v": "2"},
    {"app": "db"},
    {"v": "1"},
    {},
)
BY_NAMESPACE: tuple[Json | None, ...] = (
    None,
    {},
    {"matchLabels": {"team": "x"}},
    {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["x"]}]},
)

labels = some.sampled_from(LABELS)
tolerations = some.sampled_from(
    [{"key": "gpu", "operator": "Exists"}, {"key": names.DRAINING, "operator": "Exists"}, {"operator": "Exists"}]
)


@some.composite
def expressions(draw: some.DrawFn) -> Json:
    key = draw(some.sampled_from(["app", "v"]))
    operator = draw(some.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]))
    if operator in {"Exists", "DoesNotExist"}:
        return {"key": key, "operator": operator}
    values = draw(some.lists(some.sampled_from(["web", "db", "1", "2"]), min_size=1, max_size=2, unique=True))
    return {"key": key, "operator": operator, "values": values}


@some.composite
def selectors(draw: some.DrawFn) -> Json | None:
    kind = draw(some.integers(0, 9))
    if kind < 6:
        return {"matchLabels": {"app": "web"}} if kind else None
    return {
        "matchLabels": draw(labels),
        "matchExpressions": draw(some.lists(expressions(), max_size=1)),
    }


@some.composite
def terms(draw: some.DrawFn) -> Json:
    found: Json = {"topologyKey": draw(some.sampled_from(KEYS)), "labelSelector": draw(selectors())}
    if draw(some.booleans()):
        found["namespaces"] = draw(some.lists(some.sampled_from(sorted(NAMESPACES)), max_size=2, unique=True))
        found["namespaceSelector"] = draw(some.sampled_from(BY_NAMESPACE))
    for field in ("matchLabelKeys", "mismatchLabelKeys"):
        if draw(some.integers(0, 4)) == 0:
            found[field] = [draw(some.sampled_from(["app", "v"]))]
    return found


@some.composite
def rules(draw: some.DrawFn, key: str) -> Json:
    optional: Json = {
        "minDomains": draw(some.sampled_from([None, 1, 2, 3])),
        "nodeAffinityPolicy": draw(some.sampled_from(["Honor", "Ignore"])),
        "nodeTaintsPolicy": draw(some.sampled_from(["Honor", "Ignore"])),
        "matchLabelKeys": draw(some.sampled_from([[], [], ["v"]])),
    }
    found = {each: value for each, value in optional.items() if value is not None and draw(some.booleans())}
    when = "ScheduleAnyway" if draw(some.integers(0, 5)) == 0 else "DoNotSchedule"
    skew = draw(some.integers(1, 2))
    return {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when, "labelSelector": draw(selectors()), **found}


@some.composite
def pods(draw: some.DrawFn, name: str, on: str = "") -> Json:
    """A pod that asks for something more often than not."""
    keys = draw(some.lists(some.sampled_from(KEYS), max_size=2, unique=True)) if draw(some.booleans()) else []
    spec: Json = {}
    if draw(some.integers(0, 3)) == 0:
        spec["nodeSelector"] = {"zone": draw(some.sampled_from("ab"))}
    if draw(some.booleans()):
        spec["tolerations"] = [draw(tolerations)]
    case: Json = {
        "at": on,
        "namespace": draw(some.sampled_from(["default", "default", "other"])),
        "labels": draw(labels),
        "near": draw(some.lists(terms(), max_size=2)) if draw(some.integers(0, 2)) == 0 else [],
        "apart": draw(some.lists(terms(), max_size=2)) if draw(some.booleans()) else [],
        "spread": [draw(rules(key)) for key in keys],
        "spec": spec,
        "leaving": bool(on) and draw(some.integers(0, 4)) == 0,
    }
    return pod_of(case, name)


@some.composite
def askers(draw: some.DrawFn, name: str) -> Json:
    """A pod with simple terms about what the fleet has most of, so that its answers show what is booked."""
    web = {"labelSelector": {"matchLabels": {"app": "web"}}}
    key = some.sampled_from(KEYS)
    case: Json = {
        "labels": {"app": draw(some.sampled_from(["web", "db"]))},
        "near": [{"topologyKey": draw(key), **web}] if draw(some.booleans()) else [],
        "apart": [{"topologyKey": draw(key), **web}] if draw(some.booleans()) else [],
        "spread": [
            {
                "maxSkew": draw(some.integers(1, 2)),
                "topologyKey": draw(key),
                "nodeTaintsPolicy": draw(some.sampled_from(["Ignore", "Honor"])),
                **web,
            }
        ],
        "spec": {"tolerations": [draw(tolerations)]} if draw(some.booleans()) else {},
    }
    return pod_of(case, name)


@some.composite
def nodes(draw: some.DrawFn, name: str) -> Json:
    found: Any = draw(
        some.fixed_dictionaries(
            {}, optional={"zone": some.sampled_from(["a", "b", ""]), "rack": some.sampled_from("12")}
        )
    )
    tainted = draw(some.integers(0, 3)) == 0
    effect = draw(some.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"]))
    return node_of(name, found, {"taints": [{"key": "gpu", "effect": effect}]} if tainted else {})


@some.composite
def worlds(draw: some.DrawFn) -> Json:
    names = [f"n{number}" for number in range(draw(some.integers(1, 5)))]
    namespaces = [{"metadata": {"name": name, "labels": found}} for name, found in NAMESPACES.items()]
    there = [draw(pods(f"p{number}", draw(some.sampled_from(names)))) for number in range(draw(some.integers(0, 6)))]
    return {"nodes": [draw(nodes(name)) for name in names], "pods": there, "namespaces": namespaces}
