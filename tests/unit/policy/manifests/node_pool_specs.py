"""NodePool specs as an API server may hold them: any that Karpenter's schema allows, and what people really write."""

from typing import Any

from hypothesis import strategies as some
from hypothesis.strategies import DrawFn, SearchStrategy

from reconciler.policy.manifests.kubernetes_schema import filled
from reconciler.sources.input_file import karpenter_schema

Plain = dict[str, Any]
Path = tuple[str, ...]

GPU_TYPES = ("p4d.24xlarge", "p4de.24xlarge", "p5.48xlarge", "g5.xlarge", "x9.huge")
# Labels and texts, some of which a GpuPool can't say, or which a template or a reader of YAML could take for more.
KEYS = ("team", "example.com/zone", "true", "12", "gpu.scheduling/note", "gpu.scheduling/gpu-type", "a" * 70)
TEXTS = ("", "research", "no", "1e3", "0123", "{{ pool.name }}", "{% raw %}", "{#", "a: b # c\n- d", "é🎉", '"\\', "…")
_ZONE, _TYPE, _CAPACITY = (
    "topology.kubernetes.io/zone",
    "node.kubernetes.io/instance-type",
    "karpenter.sh/capacity-type",
)
_LENGTHS = ("0s", "30s", "90m", "1h30m", "720h", "8760h0m0s", "200000h", "012m")

_labels = some.dictionaries(some.sampled_from(KEYS), some.sampled_from(("", "a", "B.c", "no", "1")), max_size=4)
_values = {
    _TYPE: some.lists(some.sampled_from(GPU_TYPES), min_size=1, max_size=4),
    _CAPACITY: some.lists(some.sampled_from(("spot", "on-demand", "reserved")), min_size=1, max_size=3),
    _ZONE: some.lists(some.sampled_from(("eu-1a", "eu-1b", "no", "a b")), min_size=1, max_size=120),
}


@some.composite
def _requirements(draw: DrawFn) -> Plain:
    key = draw(some.sampled_from((_TYPE, _TYPE, _CAPACITY, _CAPACITY, _ZONE, "cpu")))
    operator = draw(some.sampled_from(("In", "In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")))
    found: Plain = {"key": key, "operator": operator}
    if operator in {"In", "NotIn"}:
        found["values"] = draw(_values.get(key, some.just(["1"])))
    elif operator not in {"Exists", "DoesNotExist"}:
        found["values"] = [str(draw(some.integers(0, 9)))]
    elif draw(some.booleans()):
        found["values"] = []
    if draw(some.integers(0, 5)) == 0:
        found["minValues"] = 1
    return found


@some.composite
def _budgets(draw: DrawFn) -> Plain:
    found: Plain = {"nodes": draw(some.sampled_from(("0", "10%", "5", "010", "100%")))}
    if draw(some.booleans()):
        reasons = some.sampled_from(("Empty", "Drifted", "Underutilized"))
        found["reasons"] = draw(some.lists(reasons, unique=True, max_size=3))
    if draw(some.integers(0, 3)) == 0:
        found |= {"schedule": draw(some.sampled_from(("@daily", "0 9 * * 1-5"))), "duration": "8h0m0s"}
    return found


# What the schema alone would hardly ever make such that two fields belong together; by where it stands.
_WRITTEN: dict[Path, SearchStrategy[Any]] = {
    ("template", "metadata", "labels"): _labels,
    ("template", "metadata", "annotations"): some.dictionaries(
        some.sampled_from((*KEYS, "Any Key")), some.sampled_from(TEXTS)
    ),
    ("template", "spec", "requirements"): some.lists(_requirements(), max_size=5),
    ("template", "spec", "nodeClassRef"): some.sampled_from(
        (
            {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "gpu"},
            {"group": "g", "kind": "K", "name": "n"},
        )
    ),
    ("template", "spec", "expireAfter"): some.sampled_from(("Never", *_LENGTHS)),
    ("template", "spec", "terminationGracePeriod"): some.sampled_from(_LENGTHS),
    ("disruption", "consolidateAfter"): some.sampled_from(("Never", "Never", *_LENGTHS)),
    ("disruption", "budgets"): some.lists(_budgets(), max_size=4)
    | some.just([{"nodes": "0", "reasons": ["Empty", "Underutilized"]}, {"nodes": "10%", "reasons": ["Drifted"]}]),
    ("limits",): some.dictionaries(
        some.sampled_from(("nodes", "cpu", "memory", "nvidia.com/gpu", "odd_name", "gpus")),
        some.sampled_from((8, "8", "1000m", "1e3", "-1", "5n", "1024Gi", "1.5Ti")),
    ),
}


@some.composite
def live_specs(draw: DrawFn) -> Plain:
    """A spec that the schema allows, defaults filled in."""
    schema = karpenter_schema()
    assert schema
    spec = schema["properties"]["spec"]
    drawn = draw(_allowed(spec, ()))
    # A NodePool of a fixed size has no weight, and no limits but that of nodes.
    if draw(some.integers(0, 5)):
        drawn.pop("replicas", None)
    else:
        drawn.pop("weight", None)
        drawn["limits"] = {"nodes": "8"}
    made: Plain = filled(spec, drawn)
    return made


def _allowed(schema: Any, path: Path) -> SearchStrategy[Any]:
    if path in _WRITTEN:
        return _WRITTEN[path]
    if "enum" in schema:
        return some.sampled_from(schema["enum"])
    match schema.get("type"):
        case "object" if "properties" in schema:
            required = set(schema.get("required", ()))
            parts = {name: _allowed(part, (*path, name)) for name, part in schema["properties"].items()}
            return some.fixed_dictionaries(
                {name: part for name, part in parts.items() if name in required},
                optional={name: part for name, part in parts.items() if name not in required},
            )
        case "array":
            return some.lists(_allowed(schema["items"], (*path, "[]")), max_size=3)
        case "integer":
            return some.integers(schema.get("minimum", 0), schema.get("maximum", 1_000))
        case "string" if schema.get("format") == "date-time":
            return some.just("2026-11-02T08:00:00Z")
        case "string" if "pattern" in schema:
            return some.from_regex(schema["pattern"], fullmatch=True, alphabet=some.characters(codec="ascii")).filter(
                lambda text: len(text) <= 80
            )
    raise TypeError(f"nothing is known of {path}: {schema}")
