"""Flags of a Cluster Autoscaler, from its Deployment, and the DrainPolicy that corresponds to them."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from functools import partial
from typing import Any

import msgspec
import yaml

from reconciler.importer.text import ImportNote, entry
from reconciler.model import names
from reconciler.model.bundle import Text
from reconciler.model.quantity import Duration

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

PROGRAM = "cluster-autoscaler"


# Boolean flags about scale-down.
_SWITCHES = frozenset(
    {
        "cordon-node-before-terminating",
        "daemonset-eviction-for-empty-nodes",
        "daemonset-eviction-for-occupied-nodes",
        "force-delete-failed-nodes",
        "force-delete-unregistered-nodes",
        "ignore-daemonsets-utilization",
        "ignore-mirror-pods-utilization",
        "scale-down-delay-type-local",
        "scale-down-enabled",
        "scale-down-unready-enabled",
        "skip-nodes-with-custom-controller-pods",
        "skip-nodes-with-local-storage",
        "skip-nodes-with-system-pods",
    }
)


class NoFlags(ValueError):
    """No flags were found; the message says why."""


class Flags(msgspec.Struct, frozen=True):
    """Flags by name without dashes; a repeated flag has several values."""

    of: Mapping[str, tuple[str, ...]]

    def value(self, name: str) -> str | None:
        """The last value, which is effective."""
        names = self.of.get(name)
        return names[-1] if names else None

    def is_false(self, name: str) -> bool:
        """Parsed like in Go; False for a flag that is not given."""
        return self.value(name) in {"false", "f", "F", "0", "FALSE", "False"}

    def is_true(self, name: str) -> bool:
        """Parsed like in Go; False for a flag that is not given."""
        return self.value(name) in {"true", "t", "T", "1", "TRUE", "True"}


def documents(content: bytes) -> list[Any]:
    """Documents of JSON or YAML content. Raises NoFlags."""
    try:
        if content.lstrip()[:1] in {b"{", b"["}:
            return [msgspec.json.decode(content)]
        return list(yaml.load_all(content, Loader=_LOADER))
    except (msgspec.MsgspecError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as fault:
        raise NoFlags(f"the file is neither JSON nor YAML: {' '.join(str(fault).split())}") from None


def flags_in(documents: list[Any], only: str = "") -> Flags:
    """`documents` are manifests, or lists of them; `only` is the namespace/name to select. Raises NoFlags."""
    found = [each for document in documents for each in _running(document) if only in {"", _title(each[0])}]
    if not found:
        where = f"Deployment {only}" if only else "container"
        raise NoFlags(f"no {where} runs {PROGRAM}")
    if len(found) > 1:
        text = ", ".join(sorted(_title(body) for body, _ in found))
        raise NoFlags(f"several run {PROGRAM} ({text}): name one as NAMESPACE/NAME, or give a file with only one")
    return Flags(_read(found[0][1]))


def _running(document: Any) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """Workloads that run the program, with their command lines."""
    if not isinstance(document, dict):
        return
    for item in document.get("items") or ():
        yield from _running(item)
    for container in _containers(document):
        command, args = (_words(container.get(key)) for key in ("command", "args"))
        words = [*command, *args]
        named = [str(container.get("image", "")), *words[:1]]
        if any(PROGRAM in each.rpartition("/")[2] for each in named):
            yield document, words


def _containers(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    found: Any = document
    for key in ("spec", "template", "spec", "containers"):
        found = found.get(key) if isinstance(found, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def _words(value: Any) -> list[str]:
    return [str(each) for each in value] if isinstance(value, list) else []


def _title(document: Mapping[str, Any]) -> str:
    metadata = document.get("metadata")
    about = metadata if isinstance(metadata, dict) else {}
    return f"{about.get('namespace') or 'default'}/{about.get('name', '')}"


def _read(words: list[str]) -> dict[str, tuple[str, ...]]:
    """Parses --name=value, --name value, and --name, which means true; one dash works as well. As in Go, the word after
    a boolean flag is not its value."""
    result: dict[str, tuple[str, ...]] = {}
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        if not word.startswith("-") or word in {"-", "--"}:
            continue
        name, has_value, value = word.lstrip("-").partition("=")
        takes_next = at < len(words) and not words[at].startswith("-") and name not in _SWITCHES
        if not has_value and takes_next:
            value, at = words[at], at + 1
        elif not has_value:
            value = "true"
        result[name] = (*result.get(name, ()), value.strip("'\""))
    return result


# --- Flags of Cluster Autoscaler about scale-down without a corresponding field, and the behavior of reconciler
# instead.

_BY_ANNOTATION = (
    'such pods block the drain of their node, unless they have cluster-autoscaler.kubernetes.io/safe-to-evict: "true"'
)
_DAEMONS = "pods of DaemonSets and static pods are ignored"
_ALL_NODES = "all nodes are evaluated, within simulationTimeBound"
_BRAKE = "a pool with more than 3 unready nodes and more than 45 % unready nodes is not drained"
_TAINTS = "up to 200 candidates are tainted in one plan"
_EVICTED_LAST = "DaemonSet pods are evicted last, after all other pods, and from empty nodes too"
_DELETED = "a node is deleted after it was empty for a minute; delay-deletion annotations are ignored"
INSTEAD = {
    "cordon-node-before-terminating": "a drained node has the NoSchedule taint gpu.scheduling/draining",
    "daemonset-eviction-for-empty-nodes": _EVICTED_LAST,
    "daemonset-eviction-for-occupied-nodes": _EVICTED_LAST,
    "drain-priority-config": "each pod has its own grace period, up to maxGracefulTerminationSeconds: set this to the "
    "longest one",
    "expendable-pods-priority-cutoff": "pods of every priority are evicted only if they fit elsewhere",
    "force-delete-failed-nodes": "Karpenter terminates machines that never become nodes",
    "force-delete-unregistered-nodes": "Karpenter terminates machines that never become nodes",
    "ignore-daemonsets-utilization": _DAEMONS,
    "ignore-mirror-pods-utilization": _DAEMONS,
    "max-bulk-soft-taint-count": _TAINTS,
    "max-bulk-soft-taint-time": _TAINTS,
    "max-nodes-total": "set limits in the GpuPools, and maxSize in their NodeProvisioners",
    "max-pod-eviction-time": "evictions are retried until there is no progress for maxGracefulTerminationSeconds and "
    "two minutes",
    "max-total-unready-percentage": _BRAKE,
    "min-replica-count": "create a PodDisruptionBudget for workloads that need a minimum number of pods",
    "node-delete-delay-after-taint": _DELETED,
    "node-deletion-batcher-interval": _DELETED,
    "node-deletion-delay-timeout": _DELETED,
    "node-group-auto-discovery": "set minSize and maxSize of each group in the NodeProvisioner of the pool that "
    "replaces it",
    "ok-total-unready-count": _BRAKE,
    "scale-down-candidates-pool-min-count": _ALL_NODES,
    "scale-down-candidates-pool-ratio": _ALL_NODES,
    "scale-down-delay-after-add": "a new node is not drained for a minute, and while pods wait for nodes of a pool "
    "no drain begins there",
    "scale-down-delay-after-delete": "no delay follows a deletion: the number of removed nodes is limited by the two "
    "parallelism fields, and by a ChangeGuard",
    "scale-down-delay-after-failure": "after a failed drain, the node is retried after 5 min, then 10, 20 and 40",
    "scale-down-delay-type-local": "no delay applies to the whole cluster",
    "scale-down-non-empty-candidates-count": _ALL_NODES,
    "skip-nodes-with-custom-controller-pods": _BY_ANNOTATION,
    "skip-nodes-with-local-storage": _BY_ANNOTATION,
    "unremovable-node-recheck-timeout": _ALL_NODES,
}
# If one of these is true, it requests the default behavior.
_AS_HERE = frozenset(
    {
        "daemonset-eviction-for-empty-nodes",
        "daemonset-eviction-for-occupied-nodes",
        "ignore-daemonsets-utilization",
        "ignore-mirror-pods-utilization",
        "scale-down-delay-type-local",
        "skip-nodes-with-custom-controller-pods",
        "skip-nodes-with-local-storage",
    }
)
_NODES, _OF_CPU = "nodes", "scale-down-utilization-threshold"
EXPLAINED_FLAGS = frozenset({*INSTEAD, _NODES, _OF_CPU})


def notes(flags: Flags) -> Iterator[tuple[str, str]]:
    """A sentence and a remedy for each flag without a field in a DrainPolicy."""
    for name in sorted(flags.of.keys() & INSTEAD.keys()):
        if name in _AS_HERE and flags.is_true(name):
            continue
        for value in sorted(set(flags.of[name])) if name == "node-group-auto-discovery" else [flags.value(name)]:
            yield f"--{name}={value} has no counterpart", INSTEAD[name]
    for value in flags.of.get(_NODES, ()):
        yield _of_group(value)
    if (value := flags.value(_OF_CPU)) is not None:
        text = f"--{_OF_CPU}={value} is not converted: Cluster Autoscaler uses it only for nodes without GPUs"
        yield text, "spec.utilizationThresholdPercent corresponds to --scale-down-gpu-utilization-threshold"


def _of_group(value: str) -> tuple[str, str]:
    """Parses least:most:name; the name may contain colons."""
    least, _, rest = value.partition(":")
    most, _, group = rest.partition(":")
    if not (least.isdigit() and most.isdigit() and group):
        return f"--{_NODES}={value} cannot be parsed", "set minSize and maxSize in the NodeProvisioner of its pool"
    sizes = f"minSize: {least} and maxSize: {most}"
    return (
        f"--{_NODES}={value} keeps {least} to {most} nodes of {group}, which a DrainPolicy cannot express",
        f"set {sizes} in the NodeProvisioner of the pool that replaces it",
    )


# --- Fields of a DrainPolicy for flags of Cluster Autoscaler, and notes about the others.

MOST_NODES = 10_000
_MOST_GRACE_SECONDS = 86_400
_UNITS = {"ns": Decimal("0.000001"), "us": Decimal("0.001"), "µs": Decimal("0.001"), "ms": Decimal(1)}
_UNITS |= {"s": Decimal(1_000), "m": Decimal(60_000), "h": Decimal(3_600_000)}


class Counterpart(msgspec.Struct, frozen=True):
    """A field, and its flags: the first given flag counts, otherwise the default of Cluster Autoscaler."""

    field: str
    flags: tuple[str, ...]
    default: str
    read: Callable[[str], Any]  # raises ValueError with the expected form


def _within(read: int, least: int, most: int) -> int:
    if not least <= read <= most:
        raise ValueError(f"from {least} to {most}")
    return read


def _number(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"a number from {least} to {most}")
    return _within(int(text), least, most)


def _percent(text: str) -> int:
    """A ratio as percent, rounded down."""
    try:
        return _within(int(Decimal(text) * 100), 0, 100)
    except InvalidOperation:
        raise ValueError("a ratio from 0 to 1, such as 0.5") from None


def _duration(text: str) -> str:
    """Converts a Go duration."""
    left, total = text, Decimal(0)
    while left:
        number = left[: len(left) - len(left.lstrip("0123456789."))]
        rest = left[len(number) :]
        unit = next((each for each in sorted(_UNITS, key=len, reverse=True) if rest.startswith(each)), "")
        try:
            total += Decimal(number) * _UNITS[unit] if unit else Decimal("NaN") if number != "0" else 0
        except InvalidOperation:
            total = Decimal("NaN")
        if total.is_nan():
            raise ValueError("a duration such as 10m")
        left = rest[len(unit) :]
    return str(Duration(int(total)))


_NODE_COUNT = partial(_number, least=1, most=MOST_NODES)
_SECONDS = partial(_number, least=0, most=_MOST_GRACE_SECONDS)
SYSTEM_POD_TIMEOUT = "blocking-system-pod-distruption-timeout"  # spelled as in Cluster Autoscaler

COUNTERPARTS = (
    # scale-down-utilization-threshold is for nodes without GPUs: Cluster Autoscaler never applies it to a GPU node.
    Counterpart("utilizationThresholdPercent", ("scale-down-gpu-utilization-threshold",), "0.5", _percent),
    Counterpart("maxDrainParallelism", ("max-drain-parallelism",), "1", _NODE_COUNT),
    # The newer flag defaults to the older one.
    Counterpart("maxScaleDownParallelism", ("max-scale-down-parallelism", "max-empty-bulk-delete"), "10", _NODE_COUNT),
    Counterpart("scaleDownUnneededTime", ("scale-down-unneeded-time",), "10m", _duration),
    Counterpart("scaleDownUnreadyTime", ("scale-down-unready-time",), "20m", _duration),
    Counterpart("systemPodTimeout", (SYSTEM_POD_TIMEOUT,), "1h", _duration),
    Counterpart("maxGracefulTerminationSeconds", ("max-graceful-termination-sec",), "600", _SECONDS),
    Counterpart("simulationTimeBound", ("scale-down-simulation-timeout",), "30s", _duration),
)

ENABLED = "scale-down-enabled"
# Flags that are true by default, and the field for the value false.
_SWITCHED_OFF = {
    "scale-down-unready-enabled": ("scaleDownUnreadyTime", "8760h"),
    "skip-nodes-with-system-pods": ("systemPodTimeout", "0s"),
}


# Cluster-wide limits: least:most, for GPUs preceded by their type.
_KEEPS = {"cores-total": ("cpu", ""), "memory-total": ("memory", "Gi"), "gpu-total": (names.NVIDIA_GPU, "")}


def least_of_cluster(flags: Flags) -> dict[str, str]:
    """Values of clusterMin. Raises ValueError that names the flag."""
    result: dict[str, str] = {}
    for flag, (resource, unit) in _KEEPS.items():
        values = flags.of.get(flag, ())
        sums = sum(_least(flag, value) for value in (values if flag == "gpu-total" else values[-1:]))
        if sums:
            result[resource] = f"{sums}{unit}"
    return result


def _least(flag: str, value: str) -> int:
    parts = value.split(":")
    if len(parts) != (3 if flag == "gpu-total" else 2) or not parts[-2].isdigit():
        raise ValueError(f"--{flag}={value}")
    return int(parts[-2])


READ = frozenset({*(flag for each in COUNTERPARTS for flag in each.flags), ENABLED, *_KEEPS, *_SWITCHED_OFF})


# --- Writes the DrainPolicy, formatted for people, with notes about the rest.

NAME = f"from-{PROGRAM}"
FILE = f"policies/base/{NAME}.yaml"
_COMMENTS_AT = 45
_SUSPENDED = "remove this after review: pools in mode Enforce are then drained"


class ImportedField(msgspec.Struct, frozen=True):
    """A line of the policy, and its origin."""

    name: str
    value: Any
    comment: str


class FlagMapping(msgspec.Struct):
    fields: list[ImportedField] = []
    notes: list[ImportNote] = []

    def note(self, sentence: str, remedy: str) -> None:
        self.notes.append(ImportNote(FILE, sentence, remedy))


def drain_policy(flags: Flags) -> tuple[Text, tuple[ImportNote, ...]]:
    """The policy for all pools, suspended: people decide which pools to drain."""
    why = f"--{ENABLED}=false" if flags.is_false(ENABLED) else _SUSPENDED
    mapping = FlagMapping([ImportedField("suspend", True, why)], [])
    mapping.fields.append(ImportedField("poolNames", ["*"], "all pools; pools in mode Observe are only evaluated"))
    for each in COUNTERPARTS:
        mapping.fields.append(_field(each, flags, mapping))
    _switch_off(flags, mapping)
    _agree(mapping)
    _cluster_min(flags, mapping)
    _others(flags, mapping)
    return Text(FILE, "".join(f"{line}\n" for line in _lines(mapping)).encode()), tuple(mapping.notes)


def _field(line: Counterpart, flags: Flags, mapping: FlagMapping) -> ImportedField:
    """The first flag that is given and valid."""
    given = [(name, value) for name in line.flags if (value := flags.value(name)) is not None]
    read: list[tuple[str, Any]] = []
    for name, value in given:
        try:
            read.append((f"--{name}={value}", line.read(value)))
        except ValueError as error:
            mapping.note(f"--{name}={value} is not {error}", f"check spec.{line.field}")
    for other, value in read[1:]:
        if value != read[0][1]:
            mapping.note(f"{other} is ignored, because {read[0][0]} sets spec.{line.field}", "check the value")
    if read:
        return ImportedField(line.field, read[0][1], read[0][0])
    return ImportedField(line.field, line.read(line.default), f"default of {PROGRAM} for --{line.flags[0]}")


def _switch_off(flags: Flags, mapping: FlagMapping) -> None:
    """Removes fields that a false flag makes irrelevant."""
    for flag, (field, value) in _SWITCHED_OFF.items():
        if not flags.is_false(flag):
            continue
        at = next(at for at, each in enumerate(mapping.fields) if each.name == field)
        mapping.fields[at] = ImportedField(field, value, f"--{flag}=false")
        if flag == "scale-down-unready-enabled":
            sentence = f"--{flag}=false has no counterpart: a node that is not ready for {value} is removed anyway"
            mapping.note(sentence, f"check spec.{field}")


def _agree(mapping: FlagMapping) -> None:
    """Limits parallelism: drained nodes are part of all removed nodes."""
    values = {each.name: each.value for each in mapping.fields}
    most, drains = values["maxScaleDownParallelism"], values["maxDrainParallelism"]
    if drains > most:
        at = next(at for at, each in enumerate(mapping.fields) if each.name == "maxDrainParallelism")
        mapping.fields[at] = ImportedField(
            "maxDrainParallelism", most, f"{mapping.fields[at].comment}; at most the total number of removed nodes"
        )


def _cluster_min(flags: Flags, mapping: FlagMapping) -> None:
    try:
        least = least_of_cluster(flags)
    except ValueError as error:
        mapping.note(f"{error} cannot be parsed", "write spec.clusterMin: the minimum for the whole cluster")
        return
    if least:
        mapping.fields.append(
            ImportedField("clusterMin", least, "minimum of --cores-total, --memory-total and --gpu-total")
        )


def _others(flags: Flags, mapping: FlagMapping) -> None:
    for sentence, remedy in notes(flags):
        mapping.note(sentence, remedy)
    rest = sorted(flags.of.keys() - EXPLAINED_FLAGS - READ)
    if rest:
        listed = ", ".join(f"--{name}" for name in rest)
        mapping.note(f"{listed}: no counterpart in a DrainPolicy", "they do not control node removal")


def _lines(mapping: FlagMapping) -> Iterator[str]:
    yield f"# Converted by `reconciler import` from the flags of {PROGRAM}."
    yield "apiVersion: gpu.scheduling/v1"
    yield "kind: DrainPolicy"
    yield f"metadata: {{name: {NAME}}}"
    yield "spec:"
    for each in mapping.fields:
        first, *more = entry(each.name, each.value, 2)
        yield f"{first.ljust(max(_COMMENTS_AT, len(first) + 2))}# {each.comment}"
        yield from more
