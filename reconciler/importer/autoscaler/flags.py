"""Flags of a Cluster Autoscaler: read from its Deployment, and the field of a DrainPolicy for each."""

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec
import yaml

from reconciler.model import names
from reconciler.model.quantity import Duration

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

PROGRAM = "cluster-autoscaler"


# Flags about nodes that go which are true or false.
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
    """A sentence: why there are none to be found."""


class Flags(msgspec.Struct, frozen=True):
    """By their names without dashes; one that is given several times has several values."""

    of: Mapping[str, tuple[str, ...]]

    def value(self, name: str) -> str | None:
        """The last one, which counts."""
        names = self.of.get(name)
        return names[-1] if names else None

    def is_false(self, name: str) -> bool:
        """As Go reads it; a flag that is not given is neither."""
        return self.value(name) in {"false", "f", "F", "0", "FALSE", "False"}

    def is_true(self, name: str) -> bool:
        """The same."""
        return self.value(name) in {"true", "t", "T", "1", "TRUE", "True"}


def documents(content: bytes) -> list[Any]:
    """What JSON or YAML holds. Raises NoFlags."""
    try:
        if content.lstrip()[:1] in {b"{", b"["}:
            return [msgspec.json.decode(content)]
        return list(yaml.load_all(content, Loader=_LOADER))
    except (msgspec.MsgspecError, yaml.YAMLError, UnicodeDecodeError, RecursionError) as fault:
        raise NoFlags(f"it is neither JSON nor YAML: {' '.join(str(fault).split())}") from None


def flags_in(documents: list[Any], only: str = "") -> Flags:
    """`documents`: manifests, or lists of them; `only`: namespace/name of the one that is meant. Raises NoFlags."""
    found = [each for document in documents for each in _running(document) if only in {"", _title(each[0])}]
    if not found:
        where = f"Deployment {only}" if only else "container"
        raise NoFlags(f"no {where} that runs {PROGRAM} is there")
    if len(found) > 1:
        text = ", ".join(sorted(_title(body) for body, _ in found))
        raise NoFlags(f"several run {PROGRAM} ({text}): say which one as NAMESPACE/NAME, or give a file of one")
    return Flags(_read(found[0][1]))


def _running(document: Any) -> Iterator[tuple[Mapping[str, Any], list[str]]]:
    """The workloads that run it, and with which words."""
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
    """--name=value, --name value, and --name, which is true; one dash does as well. The word after a switch is not its
    value, as in Go."""
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


# --- Flags of Cluster Autoscaler about nodes that go, without a field of their own: what is done instead of each.

_BY_ANNOTATION = (
    'pods of that kind keep their node, unless they carry cluster-autoscaler.kubernetes.io/safe-to-evict: "true"'
)
_DAEMONS = "pods of DaemonSets and static pods never count"
_ALL_NODES = "all nodes are looked at, as far as simulationTimeBound lets them"
_BRAKE = "nothing is drained in a pool of which more than 3 nodes and more than 45 % are not ready"
_TAINTS = "up to 200 candidates are tainted in one plan"
_EVICTED_LAST = "DaemonSet pods are evicted last, when nothing else is left on the node, and from empty nodes too"
_DELETED = "a node is deleted once it was empty for a minute; delay-deletion annotations are not read"
INSTEAD = {
    "cordon-node-before-terminating": "a node that is drained has the NoSchedule taint gpu.scheduling/draining",
    "daemonset-eviction-for-empty-nodes": _EVICTED_LAST,
    "daemonset-eviction-for-occupied-nodes": _EVICTED_LAST,
    "drain-priority-config": "each pod has the grace that it asks for, up to maxGracefulTerminationSeconds: write the "
    "longest there",
    "expendable-pods-priority-cutoff": "pods of any priority need another place before they are evicted",
    "force-delete-failed-nodes": "Karpenter ends machines that never become nodes",
    "force-delete-unregistered-nodes": "Karpenter ends machines that never become nodes",
    "ignore-daemonsets-utilization": _DAEMONS,
    "ignore-mirror-pods-utilization": _DAEMONS,
    "max-bulk-soft-taint-count": _TAINTS,
    "max-bulk-soft-taint-time": _TAINTS,
    "max-nodes-total": "write limits into the GpuPools, and maxSize into their NodeProvisioners",
    "max-pod-eviction-time": "evictions are tried again until nothing went on for maxGracefulTerminationSeconds and "
    "two minutes",
    "max-total-unready-percentage": _BRAKE,
    "min-replica-count": "write a PodDisruptionBudget for what must keep so many pods",
    "node-delete-delay-after-taint": _DELETED,
    "node-deletion-batcher-interval": _DELETED,
    "node-deletion-delay-timeout": _DELETED,
    "node-group-auto-discovery": "write minSize and maxSize of each group into the NodeProvisioner of the pool that "
    "takes its place",
    "ok-total-unready-count": _BRAKE,
    "scale-down-candidates-pool-min-count": _ALL_NODES,
    "scale-down-candidates-pool-ratio": _ALL_NODES,
    "scale-down-delay-after-add": "a node that has come settles for a minute, and while pods wait for nodes of a pool "
    "none of it begins to be drained",
    "scale-down-delay-after-delete": "nothing waits after a deletion: how many nodes go is limited by the two "
    "parallelisms, and by a ChangeGuard",
    "scale-down-delay-after-failure": "a node that could not be emptied is left alone for 5 min, then 10, 20 and 40",
    "scale-down-delay-type-local": "no delay holds for the whole cluster",
    "scale-down-non-empty-candidates-count": _ALL_NODES,
    "skip-nodes-with-custom-controller-pods": _BY_ANNOTATION,
    "skip-nodes-with-local-storage": _BY_ANNOTATION,
    "unremovable-node-recheck-timeout": _ALL_NODES,
}
# Where one of these is true, it says what is done anyway.
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
    """A sentence and a remedy for each flag that a DrainPolicy can't say."""
    for name in sorted(flags.of.keys() & INSTEAD.keys()):
        if name in _AS_HERE and flags.is_true(name):
            continue
        for value in sorted(set(flags.of[name])) if name == "node-group-auto-discovery" else [flags.value(name)]:
            yield f"--{name}={value} has no counterpart", INSTEAD[name]
    for value in flags.of.get(_NODES, ()):
        yield _of_group(value)
    if (value := flags.value(_OF_CPU)) is not None:
        text = (
            f"--{_OF_CPU}={value} is not taken over: Cluster Autoscaler judges nodes without GPUs by it, and no other"
        )
        yield text, "spec.utilizationThresholdPercent says what --scale-down-gpu-utilization-threshold says"


def _of_group(value: str) -> tuple[str, str]:
    """least:most:name, where the name may have colons of its own."""
    least, _, rest = value.partition(":")
    most, _, group = rest.partition(":")
    if not (least.isdigit() and most.isdigit() and group):
        return f"--{_NODES}={value} can't be read", "write minSize and maxSize into the NodeProvisioner of its pool"
    sizes = f"minSize: {least} and maxSize: {most}"
    return (
        f"--{_NODES}={value} keeps {least} to {most} nodes of {group}, which a DrainPolicy can't say",
        f"write {sizes} into the NodeProvisioner of the pool that takes its place",
    )


# --- Which field of a DrainPolicy says what which flag of Cluster Autoscaler says, and what is said of the others.

MOST_NODES = 10_000
_MOST_GRACE_SECONDS = 86_400
_UNITS = {"ns": Decimal("0.000001"), "us": Decimal("0.001"), "µs": Decimal("0.001"), "ms": Decimal(1)}
_UNITS |= {"s": Decimal(1_000), "m": Decimal(60_000), "h": Decimal(3_600_000)}


class Counterpart(msgspec.Struct, frozen=True):
    """A field, and the flags that say it: the first that is given counts, else what Cluster Autoscaler does without."""

    field: str
    flags: tuple[str, ...]
    default: str
    read: Callable[[str], Any]  # raises ValueError with what was expected


def _within(read: int, least: int, most: int) -> int:
    if not least <= read <= most:
        raise ValueError(f"from {least} to {most}")
    return read


def _number(text: str, least: int, most: int) -> int:
    if not text.isascii() or not text.isdigit():
        raise ValueError(f"a number from {least} to {most}")
    return _within(int(text), least, most)


def _nodes(text: str) -> int:
    return _number(text, 1, MOST_NODES)


def _seconds(text: str) -> int:
    return _number(text, 0, _MOST_GRACE_SECONDS)


def _percent(text: str) -> int:
    """A share of one; what is less than a percent is cut off."""
    try:
        return _within(int(Decimal(text) * 100), 0, 100)
    except InvalidOperation:
        raise ValueError("a share from 0 to 1, such as 0.5") from None


def _duration(text: str) -> str:
    """Go's way of writing, in ours."""
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


SYSTEM_POD_TIMEOUT = "blocking-system-pod-distruption-timeout"  # spelled as Cluster Autoscaler spells it

COUNTERPARTS = (
    # scale-down-utilization-threshold is for nodes without GPUs: Cluster Autoscaler never judges a GPU node by it.
    Counterpart("utilizationThresholdPercent", ("scale-down-gpu-utilization-threshold",), "0.5", _percent),
    Counterpart("maxDrainParallelism", ("max-drain-parallelism",), "1", _nodes),
    # The older name of it is what the newer one defaults to.
    Counterpart("maxScaleDownParallelism", ("max-scale-down-parallelism", "max-empty-bulk-delete"), "10", _nodes),
    Counterpart("scaleDownUnneededTime", ("scale-down-unneeded-time",), "10m", _duration),
    Counterpart("scaleDownUnreadyTime", ("scale-down-unready-time",), "20m", _duration),
    Counterpart("systemPodTimeout", (SYSTEM_POD_TIMEOUT,), "1h", _duration),
    Counterpart("maxGracefulTerminationSeconds", ("max-graceful-termination-sec",), "600", _seconds),
    Counterpart("simulationTimeBound", ("scale-down-simulation-timeout",), "30s", _duration),
)

ENABLED = "scale-down-enabled"
# Flags that are true by default, and the field that says what false means.
_SWITCHED_OFF = {
    "scale-down-unready-enabled": ("scaleDownUnreadyTime", "8760h"),
    "skip-nodes-with-system-pods": ("systemPodTimeout", "0s"),
}


def switched_off(flags: Flags) -> Iterator[tuple[str, str, str]]:
    """A flag that is false, the field, and the value that the field has instead of another flag's."""
    for flag, (field, value) in _SWITCHED_OFF.items():
        if flags.is_false(flag):
            yield flag, field, value


# What a cluster keeps in all: least:most, of GPUs with their sort before that.
_KEEPS = {"cores-total": ("cpu", ""), "memory-total": ("memory", "Gi"), "gpu-total": (names.NVIDIA_GPU, "")}


def least_of_cluster(flags: Flags) -> dict[str, str]:
    """What clusterMin says; raises ValueError, naming the flag."""
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
