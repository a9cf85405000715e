"""One NodePool with all that was found out about it, before it is written down."""

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

# --- The live machines of each NodePool, by what their Nodes and NodeClaims say of them.


class ImportedMachine(msgspec.Struct, frozen=True):
    """One machine; a NodeClaim tells of it as long as there is no Node."""

    name: str
    labels: dict[str, str]
    capacity: dict[str, str]  # or what is allocatable, where that is more: some providers tell no capacity

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


# --- The GPUs of one machine, as the labels of Karpenter or of the GPU feature discovery tell them, or its type's name.

GPU_LABELS = "karpenter.k8s.aws/instance-gpu-"
DISCOVERED = f"{names.NVIDIA_GPU}."

_MODELS = frozenset(model for model, _ in KNOWN.values())
# GH200, RTX-A6000, P100: what the maker calls a model that no known instance type has.
_MODEL = re.compile(r"[a-z]{1,2}[0-9]{2,4}[a-z]?")
_WHOLE = re.compile(r"[0-9]{1,9}")


class Gpus(msgspec.Struct, frozen=True, order=True):
    """What is known of a machine's GPUs; what isn't is empty, or zero."""

    model: str = ""
    count: int = 0
    memory: str = ""  # of one GPU, as policies write it

    @property
    def any(self) -> bool:
        return bool(self.model or self.count or self.memory)

    def agrees(self, other: "Gpus") -> bool:
        """Whether nothing that is known of both differs."""
        pairs = ((self.model, other.model), (self.count, other.count), (self.memory, other.memory))
        return all(not mine or not theirs or mine == theirs for mine, theirs in pairs)

    def completed(self, other: "Gpus") -> "Gpus":
        """With what only the other knows."""
        return Gpus(self.model or other.model, self.count or other.count, self.memory or other.memory)


def of_machine(machine: ImportedMachine) -> Gpus:
    """What the machine itself says; the first that says something wins."""
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
    """What the name of an instance type says, where it is a known one."""
    model, count = gpus_of(instance_type) or ("", 0)
    return Gpus(model, count)


def is_shared(machine: ImportedMachine) -> bool:
    """Whether one GPU is given to several pods, or cut into several."""
    product = machine.labels.get(f"{DISCOVERED}product", "")
    replicas = _whole(machine.labels.get(f"{DISCOVERED}replicas", ""))
    return replicas > 1 or product.endswith("-SHARED") or "-MIG-" in product


def _word(product: str) -> str:
    """NVIDIA-A100-SXM4-40GB is an a100, Tesla-T4 a t4."""
    words = re.split(r"[^a-z0-9]+", product.lower())
    known = next((word for word in words if word in _MODELS), "")
    return known or next((word for word in words if _MODEL.fullmatch(word)), "")


def _whole(text: str) -> int:
    return int(text) if _WHOLE.fullmatch(text) else 0


# --- The GPUs of a NodePool's nodes: what most of its machines have, and which of its instance types have others.

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
    gpu_kinds = [of_machine(machine) for machine in machines if machine.instance_type == name]
    said = Gpus(
        model=_most(gpus.model for gpus in gpu_kinds),
        count=_most(gpus.count for gpus in gpu_kinds) or 0,
        memory=_most(gpus.memory for gpus in gpu_kinds),
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
