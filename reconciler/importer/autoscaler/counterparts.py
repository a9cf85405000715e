"""Which field of a DrainPolicy says what which flag of Cluster Autoscaler says, and what is said of the others."""

from collections.abc import Callable, Iterator
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

from reconciler.importer.autoscaler.flags import Flags
from reconciler.model import names
from reconciler.model.quantity import Duration

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
