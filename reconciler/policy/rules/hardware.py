"""Rules on hardware: instance types, their GPUs, and names and amounts of resources."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from reconciler.model.policy.gpu import ClaimedDevices, Devices, GpuClaim, GpuPool, InstanceType
from reconciler.model.policy.scaling import DrainPolicy, Pressure, PressurePolicy
from reconciler.model.problem import Problem
from reconciler.model.quantity import Quantity
from reconciler.policy.rules.conflicts import RuleContext
from reconciler.policy.unreadable import as_far_as_readable, checked

# Model, GPUs per node, and instance types.
_GPU_TYPES = (
    ("v100", 1, "p3.2xlarge"),
    ("v100", 4, "p3.8xlarge"),
    ("v100", 8, "p3.16xlarge p3dn.24xlarge"),
    ("a100", 8, "p4d.24xlarge p4de.24xlarge"),
    ("h100", 1, "p5.4xlarge"),
    ("h100", 8, "p5.48xlarge"),
    ("h200", 8, "p5e.48xlarge p5en.48xlarge"),
    ("b200", 8, "p6-b200.48xlarge"),
    ("t4", 1, "g4dn.xlarge g4dn.2xlarge g4dn.4xlarge g4dn.8xlarge g4dn.16xlarge"),
    ("t4", 4, "g4dn.12xlarge"),
    ("t4", 8, "g4dn.metal"),
    ("a10g", 1, "g5.xlarge g5.2xlarge g5.4xlarge g5.8xlarge g5.16xlarge"),
    ("a10g", 4, "g5.12xlarge g5.24xlarge"),
    ("a10g", 8, "g5.48xlarge"),
    ("l4", 1, "g6.xlarge g6.2xlarge g6.4xlarge g6.8xlarge g6.16xlarge"),
    ("l4", 4, "g6.12xlarge g6.24xlarge"),
    ("l4", 8, "g6.48xlarge"),
    ("l40s", 1, "g6e.xlarge g6e.2xlarge g6e.4xlarge g6e.8xlarge g6e.16xlarge"),
    ("l40s", 4, "g6e.12xlarge g6e.24xlarge"),
    ("l40s", 8, "g6e.48xlarge"),
    ("a100", 1, "a2-highgpu-1g a2-ultragpu-1g Standard_NC24ads_A100_v4"),
    ("a100", 2, "a2-highgpu-2g a2-ultragpu-2g Standard_NC48ads_A100_v4"),
    ("a100", 4, "a2-highgpu-4g a2-ultragpu-4g Standard_NC96ads_A100_v4"),
    ("a100", 8, "a2-highgpu-8g a2-ultragpu-8g Standard_ND96asr_v4 Standard_ND96amsr_A100_v4"),
    ("a100", 16, "a2-megagpu-16g"),
    ("h100", 8, "a3-highgpu-8g a3-megagpu-8g Standard_ND96isr_H100_v5"),
    ("h200", 8, "a3-ultragpu-8g Standard_ND96isr_H200_v5"),
    ("b200", 8, "a4-highgpu-8g"),
    ("l4", 1, "g2-standard-4 g2-standard-8 g2-standard-12 g2-standard-16 g2-standard-32"),
    ("l4", 2, "g2-standard-24"),
    ("l4", 4, "g2-standard-48"),
    ("l4", 8, "g2-standard-96"),
)
KNOWN = {name: (model, count) for model, count, names in _GPU_TYPES for name in names.split()}
# Families without GPUs.
_NO_GPU = re.compile(
    r"[cmrt][3-8][a-z]*\.([a-z]+|[0-9]+xlarge)(-[0-9]+xl)?"
    r"|(e2|n1|n2|n2d|c3|c4)-(standard|highmem|highcpu)-[0-9]+"
)
_LIKELY_TYPO = 0.85  # ratio of common characters; p5.48xlarge and p5e.48xlarge differ by less, but both are known


def gpus_of(instance_type: str) -> tuple[str, int] | None:
    """GPU model and count of a known instance type."""
    return ("", 0) if _NO_GPU.fullmatch(instance_type) else KNOWN.get(instance_type)


def instance_types_carry_the_gpus(wish: RuleContext) -> Iterator[Problem]:
    """Each known instance type of a pool must have the GPUs that the pool declares."""
    for pool in wish.desired.pools:
        wanted = pool.spec.devices
        for number, each in enumerate(pool.spec.instance_types):
            known = gpus_of(each.name)
            if known is None or (_same_model(wanted.model, known[0]) and wanted.count == known[1]):
                continue
            model, count = known
            has = f"has {count} {model}" if count else "has no GPU"
            text = f"{each.name} {has}, but the pool declares {wanted.count} {wanted.model}"
            remedy = "use another instance type, or correct devices"
            yield wish.problem(pool, f"spec.instanceTypes[{number}].name", ("RC307", text, remedy))


def instance_types_are_spelled_right(wish: RuleContext) -> Iterator[Problem]:
    """A name close to a known instance type is probably a typo: Karpenter would never find such an instance type."""
    for pool in wish.desired.pools:
        for number, each in enumerate(pool.spec.instance_types):
            if gpus_of(each.name) is not None:
                continue
            if close := difflib.get_close_matches(each.name, KNOWN, n=1, cutoff=_LIKELY_TYPO):
                text = f'"{each.name}" is not a known instance type; did you mean "{close[0]}"?'
                remedy = f"write {close[0]}, or leave it if the cloud offers {each.name}"
                yield wish.warning(pool, f"spec.instanceTypes[{number}].name", ("RC312", text, remedy))


def instance_types_say_what_they_have(wish: RuleContext) -> Iterator[Problem]:
    """While no node of an instance type exists, only its declared capacity shows which pods fit."""
    for pool in wish.desired.pools:
        for number, each in enumerate(pool.spec.instance_types):
            missing = [name for name in ("cpu", "memory") if name not in each.capacity]
            if missing and not pool.spec.suspend:
                text = (
                    f"the policy does not state the {' and the '.join(missing)} of {each.name}: while no node of this "
                    "type exists, reconciler assumes that any request fits"
                )
                remedy = "add capacity: {cpu: ..., memory: ..., pods: ...}, with the values that the cloud provider "
                remedy += "documents for this type"
                yield wish.warning(pool, f"spec.instanceTypes[{number}]", ("RC313", text, remedy))


def drained_pools_have_more_than_one_gpu(wish: RuleContext) -> Iterator[Problem]:
    """A node with one GPU is either unused or full, so a GPU threshold never selects a node with a GPU pod."""
    for drain in wish.desired.drains:
        if drain.spec.suspend or drain.spec.utilization_threshold_percent >= 100:
            continue
        for pool in wish.pools_named(drain.spec.pool_names):
            if pool.spec.devices.count == 1:
                text = (
                    f"nodes of GpuPool/{pool.name} have one GPU, which is either used or unused: at "
                    f"{drain.spec.utilization_threshold_percent} % no node with a GPU pod is ever drained"
                )
                remedy = (
                    "remove the pool, unless the policy should remove empty nodes of a pool without NodeProvisioner"
                )
                yield wish.warning(drain, "spec.poolNames", ("RC314", text, remedy))


def _same_model(wanted: str, known: str) -> bool:
    """a100 and a100-80gb are the same model."""
    return bool(known) and wanted.split("-", maxsplit=1)[0] == known


# --- Resource names that no node has, and implausible amounts.
#
# A limit on `gpus` limits nothing, and a memory limit of 40 bytes keeps a pool from ever having a node.
#
# Kubernetes has a fixed set of resource names without a domain. Every other resource has a name with a domain, such as
# nvidia.com/gpu, and any device plugin may advertise one, so all such names are allowed. Limits also accept `nodes`.

NODES = "nodes"  # only in limits: Karpenter counts the nodes of a NodePool under this name
OF_NODES = ("cpu", "memory", "ephemeral-storage", "pods")
_NAMED_SO = re.compile(r"hugepages-[0-9]+[KMGT]i|attachable-volumes-[a-z0-9.-]+")
_WITH_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
# Widely used extended resources. An unknown name close to one of these is probably a typo.
_EXTENDED = frozenset(
    f"{domain}/{name}"
    for domain, several in (
        ("nvidia.com", ("gpu", "gpu.shared", "vgpu", "gpumem", "gpumem-percentage", "gpucores")),
        ("amd.com", ("gpu", "cpx_nps1", "cpx_nps4")),
        ("gpu.intel.com", ("i915", "xe")),
        ("habana.ai", ("gaudi",)),
        ("google.com", ("tpu",)),
        ("aws.amazon.com", ("neuron", "neuroncore", "neurondevice")),
        ("vpc.amazonaws.com", ("efa", "pod-eni")),
        ("rdma", ("hca",)),
    )
    for name in several
)
_MEANT = {
    "gpu": "nvidia.com/gpu",
    "gpus": "nvidia.com/gpu",
    "nvidia": "nvidia.com/gpu",
    "mem": "memory",
    "ram": "memory",
    "core": "cpu",
    "cores": "cpu",
    "vcpu": "cpu",
    "vcpus": "cpu",
    "storage": "ephemeral-storage",
    "disk": "ephemeral-storage",
    "machines": NODES,
    "instances": NODES,
}
_CLOSE, _CLOSE_WITH_DOMAIN = 0.75, 0.9  # ratio of common characters
_IN_BYTES = frozenset({"memory", "ephemeral-storage"})
_LEAST_BYTES = 1 << 20
_WHOLE = frozenset({NODES, "pods", "nvidia.com/gpu", "amd.com/gpu"})
_COUNTED = _WHOLE | {"cpu"}


class FieldProblem(msgspec.Struct, frozen=True):
    path: str
    code: str
    sentence: str
    remedy: str
    severity: Literal["error", "warning"] = "error"
    names_path: bool = False  # the sentence already contains the path


def resource_problems(spec: msgspec.Struct) -> Iterator[FieldProblem]:
    """Problems of all resources that an object names."""
    return checked(_resource_rules(spec))


def _resource_rules(spec: msgspec.Struct) -> Iterator[Iterator[FieldProblem]]:
    match spec:
        case GpuPool():
            yield unknown_names("spec.limits", spec.limits, (*OF_NODES, NODES))
            yield invalid_amounts("spec.limits", spec.limits)  # 0 is valid: Karpenter launches no node
            yield _memory_of_gpus(spec.devices, may_be_none=False)
            for number, each in enumerate(as_far_as_readable(spec.instance_types)):
                yield _capacity(each, f"spec.instanceTypes[{number}].capacity")
        case DrainPolicy():
            yield unknown_names("spec.clusterMin", spec.cluster_min, OF_NODES)
            yield invalid_amounts("spec.clusterMin", spec.cluster_min)
        case PressurePolicy():
            yield unknown_names("spec.resources", spec.resources, OF_NODES)
            yield unknown_names("spec.computeUnit", spec.compute_unit, OF_NODES)
            yield checked(_bounds(name, bounds) for name, bounds in spec.resources.items())
            yield checked(_unit(name, amount) for name, amount in spec.compute_unit.items())
            yield _in_bytes("spec.memSlotSize", "memory", spec.mem_slot_size, may_be_none=False)
        case GpuClaim():
            yield _memory_of_gpus(spec.devices, may_be_none=True)


def _memory_of_gpus(devices: Devices | ClaimedDevices, *, may_be_none: bool) -> Iterator[FieldProblem]:
    if devices.memory is not None:
        yield from invalid_amounts("spec.devices", {"memory": devices.memory}, may_be_none=may_be_none)


def _capacity(instance_type: InstanceType, path: str) -> Iterator[FieldProblem]:
    yield from unknown_names(path, instance_type.capacity, OF_NODES)
    yield from invalid_amounts(path, instance_type.capacity, may_be_none=False)


def _bounds(name: str, bounds: Pressure) -> Iterator[FieldProblem]:
    return _in_bytes(f"spec.resources.{name}.system", name, bounds.system, may_be_none=True)


def _unit(name: str, amount: Quantity) -> Iterator[FieldProblem]:
    return _in_bytes(f"spec.computeUnit.{name}", name, amount, may_be_none=False)


def unknown_names(path: str, resources: Iterable[str], known: tuple[str, ...]) -> Iterator[FieldProblem]:
    """`known`: the names without a domain that are valid here."""
    for name in resources:
        if name in known or name in _EXTENDED or _NAMED_SO.fullmatch(name):
            continue
        close = _meant(name, known)
        meant = f'; did you mean "{close}"?' if close else ""
        if _WITH_DOMAIN.fullmatch(name):
            if close:
                text = f'"{name}" is not a known resource{meant}'
                remedy = f"write {close}, or leave it if nodes advertise {name}"
                yield FieldProblem(f"{path}.{name}", "RC319", text, remedy, "warning")
            continue
        text = f'there is no resource "{name}"{meant}'
        others = f"{', '.join(known)}, or a name with a domain, such as nvidia.com/gpu"
        remedy = f"write {close or others}"
        yield FieldProblem(f"{path}.{name}", "RC318", text, remedy)


def _meant(name: str, known: tuple[str, ...]) -> str:
    """The probably intended resource; empty if there is no clear candidate."""
    plain = name.casefold()
    if (result := _MEANT.get(plain)) is not None and (result in known or "/" in result):
        return result
    if "/" not in name:
        return next(iter(difflib.get_close_matches(plain, known, 1, _CLOSE)), "")
    domain, _, rest = plain.partition("/")
    without_top = [each for each in sorted(_EXTENDED) if each.partition(".")[0] == domain and each.endswith(f"/{rest}")]
    return next(iter(without_top or difflib.get_close_matches(plain, sorted(_EXTENDED), 1, _CLOSE_WITH_DOMAIN)), "")


def invalid_amounts(
    path: str, resources: Mapping[str, Quantity], *, may_be_none: bool = True
) -> Iterator[FieldProblem]:
    """`may_be_none`: whether 0 is a valid amount."""
    return checked(_amount(f"{path}.{name}", name, amount, may_be_none) for name, amount in resources.items())


def _amount(where: str, name: str, amount: Quantity, may_be_none: bool) -> Iterator[FieldProblem]:
    yield from _in_bytes(where, name, amount, may_be_none=may_be_none)
    if name in _COUNTED and amount.binary and amount.milli:
        text = f"{where}: {amount} is not a valid amount of {name}: Ki, Mi and Gi are units of bytes"
        yield FieldProblem(where, "RC208", text, f"write {_number(amount)}", names_path=True)
    elif name in _WHOLE and amount.milli % 1000:
        text = f"{where}: {amount} is not a whole number of {name}"
        yield FieldProblem(where, "RC208", text, "write a whole number", names_path=True)


def _in_bytes(path: str, resource: str, amount: Quantity, *, may_be_none: bool) -> Iterator[FieldProblem]:
    is_none = not amount.milli
    if resource not in _IN_BYTES or amount.milli >= _LEAST_BYTES * 1000 or (is_none and may_be_none):
        return
    text = f"{path}: {amount} means {_bytes(amount)}, which is implausibly small"
    remedy = "write the amount" if is_none else f"write {_number(amount)}Gi, or {_number(amount)}Mi"
    yield FieldProblem(path, "RC208", text, remedy, names_path=True)


def _number(amount: Quantity) -> str:
    return re.sub(r"[A-Za-z]+$", "", str(amount))


def _bytes(amount: Quantity) -> str:
    if 0 < amount.milli < 1000:
        return "less than 1 byte"
    whole = amount.milli // 1000
    return f"{'about ' if amount.milli % 1000 else ''}{whole} {'byte' if whole == 1 else 'bytes'}"
