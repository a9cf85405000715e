"""One NodePool with all derived data, before it is written as a policy."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from reconciler.importer.portion import Portion, can_say, instance_type_requirement, live_spec, parted, portion
from reconciler.model import names
from reconciler.model.cluster.node import NodeClaimStatus, NodeStatus
from reconciler.model.cluster.observed import Observed
from reconciler.model.cluster.unstructured import Unstructured
from reconciler.model.parsers import natural
from reconciler.model.policy.gpu import CapacityType
from reconciler.model.quantity import Quantity
from reconciler.policy.rules.hardware import KNOWN, gpus_of

# --- Live machines of each NodePool, from their Nodes and NodeClaims.


class ImportedMachine(msgspec.Struct, frozen=True):
    """One machine, described by its Node, or by its NodeClaim until there is a Node."""

    name: str
    labels: dict[str, str]
    capacity: dict[str, str]  # or allocatable, if larger: some providers report no capacity

    @property
    def instance_type(self) -> str:
        return self.labels.get(names.INSTANCE_TYPE, "")

    @property
    def capacity_type(self) -> str:
        return self.labels.get(names.CAPACITY_TYPE, "")


def live_machines(observed: Observed) -> dict[str, tuple[ImportedMachine, ...]]:
    """By NodePool, sorted by name."""
    imported_machines: dict[str, list[ImportedMachine]] = defaultdict(list)
    for node in observed.nodes:
        imported_machines[node.pool].append(ImportedMachine(node.name, node.metadata.labels, _amounts(node.status)))
    seen = {node.name for node in observed.nodes}
    for claim in observed.node_claims:
        if claim.status.node_name not in seen:
            pool = claim.metadata.labels.get(names.KARPENTER_POOL, "")
            imported_machines[pool].append(ImportedMachine(claim.name, claim.metadata.labels, _amounts(claim.status)))
    return {pool: tuple(sorted(each, key=lambda machine: machine.name)) for pool, each in imported_machines.items()}


def _amounts(status: NodeStatus | NodeClaimStatus) -> dict[str, str]:
    resources = {**status.allocatable, **status.capacity}
    lists = (status.capacity, status.allocatable)
    return {each: max((of[each] for of in lists if each in of), key=_milli) for each in resources}


def _milli(amount: str) -> int:
    try:
        return Quantity.parse(amount).milli
    except ValueError:
        return 0


# --- GPUs of a machine, from labels of Karpenter or GPU feature discovery, or from the name of its instance type.

GPU_LABELS = "karpenter.k8s.aws/instance-gpu-"
DISCOVERED = f"{names.NVIDIA_GPU}."

_MODELS = frozenset(model for model, _ in KNOWN.values())
# GH200, RTX-A6000, P100: vendor names of models that no known instance type has.
_MODEL = re.compile(r"[a-z]{1,2}[0-9]{2,4}[a-z]?")
_WHOLE = re.compile(r"[0-9]{1,9}")


class Gpus(msgspec.Struct, frozen=True, order=True):
    """Known data of a machine's GPUs; unknown values are empty or zero."""

    model: str = ""
    count: int = 0
    memory: str = ""  # of one GPU, as policies write it

    @property
    def any(self) -> bool:
        return bool(self.model or self.count or self.memory)

    def agrees(self, other: "Gpus") -> bool:
        """Whether all values known on both sides are equal."""
        pairs = ((self.model, other.model), (self.count, other.count), (self.memory, other.memory))
        return all(not mine or not theirs or mine == theirs for mine, theirs in pairs)

    def completed(self, other: "Gpus") -> "Gpus":
        """Completed with values that only the other has."""
        return Gpus(self.model or other.model, self.count or other.count, self.memory or other.memory)


def of_machine(machine: ImportedMachine) -> Gpus:
    """Data from the machine itself; the first source with a value wins."""
    labels = machine.labels
    memory = _whole(labels.get(f"{GPU_LABELS}memory", "")) or _whole(labels.get(f"{DISCOVERED}memory", ""))
    return Gpus(
        model=_word(labels.get(f"{GPU_LABELS}name", "")) or _word(labels.get(f"{DISCOVERED}product", "")),
        count=_whole(labels.get(f"{GPU_LABELS}count", ""))
        or _whole(labels.get(f"{DISCOVERED}count", ""))
        or _whole(machine.capacity.get(names.NVIDIA_GPU, "")),
        memory=str(Quantity.parse(f"{memory}Mi")) if memory else "",
    )


def of_type(instance_type: str) -> Gpus:
    """Data from the name of a known instance type."""
    model, count = gpus_of(instance_type) or ("", 0)
    return Gpus(model, count)


def is_shared(machine: ImportedMachine) -> bool:
    """Whether a GPU is shared by several pods, or partitioned."""
    product = machine.labels.get(f"{DISCOVERED}product", "")
    replicas = _whole(machine.labels.get(f"{DISCOVERED}replicas", ""))
    return replicas > 1 or product.endswith("-SHARED") or "-MIG-" in product


def _word(product: str) -> str:
    """NVIDIA-A100-SXM4-40GB becomes a100, Tesla-T4 becomes t4."""
    words = re.split(r"[^a-z0-9]+", product.lower())
    known = next((word for word in words if word in _MODELS), "")
    return known or next((word for word in words if _MODEL.fullmatch(word)), "")


def _whole(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text) else 0


# --- GPUs of a NodePool's nodes: those of most machines, and instance types that differ.

_NONE = ("", 0)  # of a known type
NOTHING_SAYS = "there is no evidence that its nodes have GPUs"


class PoolGpus(msgspec.Struct, frozen=True):
    """GPUs of one node, and of each instance type with known data."""

    types: tuple[str, ...]  # those named by the NodePool, and those of its machines
    usual: Gpus
    by_type: dict[str, Gpus]
    without: tuple[str, ...]  # instance types without GPUs

    def carries(self, instance_type: str) -> bool:
        """Whether a node of the type has the usual GPUs, as far as known."""
        if instance_type in self.without:
            return not self.usual.any
        return self.usual.agrees(self.by_type.get(instance_type, Gpus()))


def pool_gpus(machines: Sequence[ImportedMachine], requested: Sequence[str]) -> PoolGpus:
    """`requested` are the instance types named by the NodePool, first choice first."""
    types = list(dict.fromkeys([*requested, *sorted({machine.instance_type for machine in machines})]))
    by_type = {name: gpus for name in types if (gpus := _of_type(name, machines)).any}
    living = Counter(machine.instance_type for machine in machines)
    # Requested types before former ones; then by number of machines, then by choice.
    ranked = sorted(by_type, key=lambda name: (name not in requested, -living[name], types.index(name)))
    usual = by_type[ranked[0]] if ranked else Gpus()
    without = tuple(name for name in types if name not in by_type and (living[name] or gpus_of(name) == _NONE))
    return PoolGpus(tuple(types), usual, by_type, without)


def why_without(spec: Mapping[str, Any], gpus: PoolGpus) -> str:
    """Why the NodePool has no GPUs; empty if it has."""
    if gpus.usual.any:
        return ""
    surely = bool(gpus.without) and all(gpus_of(name) == _NONE for name in gpus.types)
    if not surely and any(_hints(spec)):
        return ""
    if gpus.without:
        return f"its nodes have no GPUs: {', '.join(name or 'of no named type' for name in gpus.without[:5])}"
    return NOTHING_SAYS


def _of_type(name: str, machines: Sequence[ImportedMachine]) -> Gpus:
    """What most machines of the type report, separately for each of the three values: a machine may lack labels."""
    gpu_kinds = [of_machine(machine) for machine in machines if machine.instance_type == name]
    said = Gpus(
        model=_most(gpus.model for gpus in gpu_kinds),
        count=_most(gpus.count for gpus in gpu_kinds) or 0,
        memory=_most(gpus.memory for gpus in gpu_kinds),
    )
    return said.completed(of_type(name))


def _most(values: Iterator[Any]) -> Any:
    """The most frequent value, the least of several such; empty if there is none."""
    counted = Counter(value for value in values if value)
    return min(counted, key=lambda value: (-counted[value], value)) if counted else ""


def _hints(spec: Mapping[str, Any]) -> Iterator[bool]:
    """Signs of GPUs in a NodePool without machines of a known type."""
    template = spec.get("template", {}).get("spec", {})
    for requirement in template.get("requirements", ()):
        of_gpus = str(requirement.get("key", "")).startswith((GPU_LABELS, DISCOVERED))
        yield of_gpus and requirement.get("operator") not in {"NotIn", "DoesNotExist"}
    for taint in [*template.get("taints", ()), *template.get("startupTaints", ())]:
        yield taint.get("key") == names.NVIDIA_GPU
    yield str(spec.get("limits", {}).get(names.NVIDIA_GPU, "0")) != "0"


# First choice first.
_CAPACITY_TYPES: tuple[CapacityType, ...] = ("reserved", "on-demand", "spot")
_WHOLE_UNITS = {"cpu": Quantity.parse("1"), "memory": Quantity.parse("1Gi"), "pods": Quantity.parse("1")}


class ImportedPool(msgspec.Struct, frozen=True):
    """A NodePool, its machines, and how its spec is split."""

    live: Unstructured
    spec: dict[str, Any]
    machines: tuple[ImportedMachine, ...]
    gpus: PoolGpus
    asked: tuple[str, ...]  # instance types named by the NodePool; empty if it names them differently or not at all
    types: tuple[str, ...]  # those listed in its GpuPool
    portion: Portion

    @property
    def name(self) -> str:
        return self.live.name

    @property
    def policy_file(self) -> str:
        return f"policies/base/{self.name}.yaml"

    @property
    def template(self) -> str:
        """Path of its template below templates/."""
        return f"{self.name}.yaml.j2"

    @property
    def other_types(self) -> tuple[str, ...]:
        """Types of possible or existing nodes with other GPUs, or none."""
        return tuple(name for name in self._candidates if not self.gpus.carries(name))

    @property
    def unlisted_types(self) -> tuple[str, ...]:
        """Types of possible nodes that exceed the limit of a GpuPool's list."""
        return tuple(name for name in self._candidates if name not in {*self.types, *self.other_types})

    @property
    def lifeless_types(self) -> tuple[str, ...]:
        """Listed types without a live machine, so that their capacity is unknown."""
        return tuple(name for name in self.types if not self.capacity(name))

    @property
    def living_capacity_types(self) -> tuple[CapacityType, ...]:
        living = {machine.capacity_type for machine in self.machines}
        return tuple(each for each in _CAPACITY_TYPES if each in living)

    @property
    def _candidates(self) -> tuple[str, ...]:
        return candidates(self.asked, self.machines)

    def capacity(self, instance_type: str) -> dict[str, Any]:
        """The minimum over live machines of the type, rounded down to whole cores and Gi."""
        reported = [machine.capacity for machine in self.machines if machine.instance_type == instance_type]
        result = {}
        for resource, unit in _WHOLE_UNITS.items():
            amounts = [amount for each in reported if (amount := _milli(each.get(resource, "")))]
            if amounts and (whole := min(amounts) // unit.milli * unit.milli):
                result[resource] = _written(Quantity(whole, unit.binary))
        return result


def read_imported_pool(live: Unstructured, machines: Sequence[ImportedMachine]) -> ImportedPool:
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
    """Instance types named by the NodePool, in its order; otherwise those of its machines, most frequent first."""
    living = Counter(machine.instance_type for machine in machines if machine.instance_type)
    return tuple(requested) or tuple(sorted(living, key=lambda name: (-living[name], name)))


def is_ours(live: Unstructured) -> bool:
    """Whether the NodePool was created or adopted by reconciler."""
    return live.is_ours or names.ADOPTED in live.metadata.annotations


def _written(quantity: Quantity) -> Any:
    text = str(quantity)
    return text if (number := natural(text)) is None else number
