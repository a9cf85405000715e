"""One NodePool with all that was found out about it, before it is written down."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from reconciler.importer.live_spec import live_spec
from reconciler.importer.machines import ImportedMachine
from reconciler.importer.pool_gpus import PoolGpus, pool_gpus
from reconciler.importer.portion import Portion, instance_type_requirement, portion
from reconciler.importer.supported_fields import can_say, parted
from reconciler.model import names
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.parsers import natural
from reconciler.model.policy.gpu_pool import CapacityType
from reconciler.model.quantity import Quantity

# First choice first.
_CAPACITY_TYPES: tuple[CapacityType, ...] = ("reserved", "on-demand", "spot")
_WHOLE_UNITS = {"cpu": Quantity.parse("1"), "memory": Quantity.parse("1Gi"), "pods": Quantity.parse("1")}


class ImportedPool(msgspec.Struct, frozen=True):
    """A NodePool, its machines, and how its spec is parted."""

    live: Unstructured
    spec: dict[str, Any]
    machines: tuple[ImportedMachine, ...]
    gpus: PoolGpus
    asked: tuple[str, ...]  # instance types that the NodePool names; none where it names them otherwise or not at all
    types: tuple[str, ...]  # those that its GpuPool lists
    portion: Portion

    @property
    def name(self) -> str:
        return self.live.name

    @property
    def policy_file(self) -> str:
        return f"policies/base/{self.name}.yaml"

    @property
    def template(self) -> str:
        """Its path below templates/."""
        return f"{self.name}.yaml.j2"

    @property
    def other_types(self) -> tuple[str, ...]:
        """What a node of it can be or is, and has other GPUs, or none."""
        return tuple(name for name in self._candidates if not self.gpus.carries(name))

    @property
    def unlisted_types(self) -> tuple[str, ...]:
        """What a node of it can be, and has no room in a GpuPool."""
        return tuple(name for name in self._candidates if name not in {*self.types, *self.other_types})

    @property
    def lifeless_types(self) -> tuple[str, ...]:
        """Those listed of which no machine lives, so that nothing tells their capacity."""
        return tuple(name for name in self.types if not self.capacity(name))

    @property
    def living_capacity_types(self) -> tuple[CapacityType, ...]:
        living = {machine.capacity_type for machine in self.machines}
        return tuple(each for each in _CAPACITY_TYPES if each in living)

    @property
    def _candidates(self) -> tuple[str, ...]:
        return candidates(self.asked, self.machines)

    def capacity(self, instance_type: str) -> dict[str, Any]:
        """The least that a live machine of the type has, rounded down to whole cores and Gi."""
        reported = [machine.capacity for machine in self.machines if machine.instance_type == instance_type]
        result = {}
        for resource, unit in _WHOLE_UNITS.items():
            amounts = [amount for each in reported if (amount := _amount(each.get(resource, "")))]
            if amounts and (whole := min(amounts) // unit.milli * unit.milli):
                result[resource] = _written(Quantity(whole, unit.binary))
        return result


def read_imported_pool(live: Unstructured, machines: Sequence[ImportedMachine]) -> ImportedPool:
    """Everything that a NodePool and its machines say."""
    spec = live_spec(live)
    naming = instance_type_requirement(spec)
    requested = tuple(map(str, naming["values"])) if naming else ()
    gpus = pool_gpus(machines, requested)
    carriers = [name for name in candidates(requested, machines) if gpus.carries(name)]
    types, _ = parted(carriers, lambda each: can_say("instanceTypes", [{"name": name} for name in each]))
    return ImportedPool(
        live, spec, tuple(machines), gpus, requested, tuple(types), portion(spec, types, gpus.usual.model)
    )


def candidates(requested: Sequence[str], machines: Sequence[ImportedMachine]) -> tuple[str, ...]:
    """The instance types that a NodePool names, in its order; else those of its machines, the most frequent first."""
    living = Counter(machine.instance_type for machine in machines if machine.instance_type)
    return tuple(requested) or tuple(sorted(living, key=lambda name: (-living[name], name)))


def is_ours(live: Unstructured) -> bool:
    """Whether it was made or adopted by us."""
    return live.is_ours or names.ADOPTED in live.metadata.annotations


def _amount(text: str) -> int:
    try:
        return Quantity.parse(text).milli
    except ValueError:
        return 0


def _written(quantity: Quantity) -> Any:
    text = str(quantity)
    return text if (number := natural(text)) is None else number
