"""The GPUs of a NodePool's nodes: what most of its machines have, and which of its instance types have others."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.importer.machine_gpus import DISCOVERED, GPU_LABELS, Gpus, of_machine, of_type
from reconciler.importer.machines import ImportedMachine
from reconciler.model import names
from reconciler.policy.rules.hardware import gpus_of

_NONE = ("", 0)  # of a known type
NOTHING_SAYS = "nothing says that its nodes have GPUs"


class PoolGpus(msgspec.Struct, frozen=True):
    """The GPUs of one node, and of each instance type of which something is known."""

    types: tuple[str, ...]  # those named by the NodePool, and those of its machines
    usual: Gpus
    by_type: dict[str, Gpus]
    without: tuple[str, ...]  # instance types that have none

    def carries(self, instance_type: str) -> bool:
        """Whether a node of the type has the usual GPUs, for all that is known."""
        if instance_type in self.without:
            return not self.usual.any
        return self.usual.agrees(self.by_type.get(instance_type, Gpus()))


def pool_gpus(machines: Sequence[ImportedMachine], requested: Sequence[str]) -> PoolGpus:
    """`requested` are the instance types that the NodePool names, first choice first."""
    types = list(dict.fromkeys([*requested, *sorted({machine.instance_type for machine in machines})]))
    by_type = {name: gpus for name in types if (gpus := _of_type(name, machines)).any}
    living = Counter(machine.instance_type for machine in machines)
    # What it asks for before what it once had; then most machines first, then the first choice.
    ranked = sorted(by_type, key=lambda name: (name not in requested, -living[name], types.index(name)))
    usual = by_type[ranked[0]] if ranked else Gpus()
    without = tuple(name for name in types if name not in by_type and (living[name] or gpus_of(name) == _NONE))
    return PoolGpus(tuple(types), usual, by_type, without)


def why_without(spec: Mapping[str, Any], gpus: PoolGpus) -> str:
    """Why the NodePool is none of GPUs; nothing when it is one."""
    if gpus.usual.any:
        return ""
    surely = bool(gpus.without) and all(gpus_of(name) == _NONE for name in gpus.types)
    if not surely and any(_hints(spec)):
        return ""
    if gpus.without:
        return f"its nodes have no GPUs: {', '.join(name or 'of no named type' for name in gpus.without[:5])}"
    return NOTHING_SAYS


def _of_type(name: str, machines: Sequence[ImportedMachine]) -> Gpus:
    """What most machines of the type say, each of the three by itself: a machine may not be labelled yet."""
    gpuses = [of_machine(machine) for machine in machines if machine.instance_type == name]
    said = Gpus(
        model=_most(gpus.model for gpus in gpuses),
        count=_most(gpus.count for gpus in gpuses) or 0,
        memory=_most(gpus.memory for gpus in gpuses),
    )
    return said.completed(of_type(name))


def _most(values: Iterator[Any]) -> Any:
    """The most frequent of those that say something, the least of several such; nothing when none does."""
    counted = Counter(value for value in values if value)
    return min(counted, key=lambda value: (-counted[value], value)) if counted else ""


def _hints(spec: Mapping[str, Any]) -> Iterator[bool]:
    """What in a NodePool without machines of a known type means GPUs."""
    template = spec.get("template", {}).get("spec", {})
    for requirement in template.get("requirements", ()):
        of_gpus = str(requirement.get("key", "")).startswith((GPU_LABELS, DISCOVERED))
        yield of_gpus and requirement.get("operator") not in {"NotIn", "DoesNotExist"}
    for taint in [*template.get("taints", ()), *template.get("startupTaints", ())]:
        yield taint.get("key") == names.NVIDIA_GPU
    yield str(spec.get("limits", {}).get(names.NVIDIA_GPU, "0")) != "0"
