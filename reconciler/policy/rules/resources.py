"""Names of resources that no node has, and amounts that cannot be meant.

A limit of gpus limits nothing, and a limit of 40 bytes of memory keeps a pool from ever having a node.

Kubernetes has a fixed set of resource names without a domain. Every other resource of a node has a name with one, as
nvidia.com/gpu has, and anybody may advertise such a resource: those names are all allowed. Limits also know `nodes`.
"""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from reconciler.model.policy.drain_policy import DrainPolicy
from reconciler.model.policy.gpu_claim import GpuClaim
from reconciler.model.policy.gpu_pool import GpuPool
from reconciler.model.policy.pressure_policy import PressurePolicy
from reconciler.model.quantity import Quantity

NODES = "nodes"  # of limits alone: Karpenter counts the nodes of a NodePool by it
OF_NODES = ("cpu", "memory", "ephemeral-storage", "pods")
_NAMED_SO = re.compile(r"hugepages-[0-9]+[KMGT]i|attachable-volumes-[a-z0-9.-]+")
_WITH_DOMAIN = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?")
# Extended resources that are in wide use; a name close to one of these, and none of these, is probably misspelled.
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
_CLOSE, _CLOSE_WITH_DOMAIN = 0.75, 0.9  # share of common characters
_IN_BYTES = frozenset({"memory", "ephemeral-storage"})
_LEAST_BYTES = 1 << 20
_WHOLE = frozenset({NODES, "pods", "nvidia.com/gpu", "amd.com/gpu"})
_COUNTED = _WHOLE | {"cpu"}


class ResourceProblem(msgspec.Struct, frozen=True):
    """What is wrong with the name or the amount of one resource."""

    path: str
    code: str
    sentence: str
    remedy: str
    severity: Literal["error", "warning"] = "error"
    names_path: bool = False  # the sentence does


def resource_problems(spec: msgspec.Struct) -> Iterator[ResourceProblem]:
    """Of all resources that an object names."""
    match spec:
        case GpuPool():
            yield from unknown_names("spec.limits", spec.limits, (*OF_NODES, NODES))
            yield from invalid_amounts("spec.limits", spec.limits)  # 0 is meant: nothing more is bought
            yield from invalid_amounts("spec.devices", {"memory": spec.devices.memory}, may_be_none=False)
            for number, each in enumerate(spec.instance_types):
                path = f"spec.instanceTypes[{number}].capacity"
                yield from unknown_names(path, each.capacity, OF_NODES)
                yield from invalid_amounts(path, each.capacity, may_be_none=False)
        case DrainPolicy():
            yield from unknown_names("spec.clusterMin", spec.cluster_min, OF_NODES)
            yield from invalid_amounts("spec.clusterMin", spec.cluster_min)
        case PressurePolicy():
            yield from unknown_names("spec.resources", spec.resources, OF_NODES)
            yield from unknown_names("spec.computeUnit", spec.compute_unit, OF_NODES)
            for name, bounds in spec.resources.items():
                yield from _in_bytes(f"spec.resources.{name}.system", name, bounds.system, may_be_none=True)
            for name, amount in spec.compute_unit.items():
                yield from _in_bytes(f"spec.computeUnit.{name}", name, amount, may_be_none=False)
            yield from _in_bytes("spec.memSlotSize", "memory", spec.mem_slot_size, may_be_none=False)
        case GpuClaim() if spec.devices.memory is not None:
            yield from invalid_amounts("spec.devices", {"memory": spec.devices.memory})


def unknown_names(path: str, resources: Iterable[str], known: tuple[str, ...]) -> Iterator[ResourceProblem]:
    """`known`: the names without a domain that stand for something there."""
    for name in resources:
        if name in known or name in _EXTENDED or _NAMED_SO.fullmatch(name):
            continue
        close = _meant(name, known)
        meant = f'; did you mean "{close}"?' if close else ""
        if _WITH_DOMAIN.fullmatch(name):
            if close:
                text = f'"{name}" is no resource that is known{meant}'
                remedy = f"write {close}, or leave it if nodes advertise {name}"
                yield ResourceProblem(f"{path}.{name}", "RC319", text, remedy, "warning")
            continue
        text = f'no node has a resource "{name}"{meant}'
        remedy = f"write {close}" if close else f"write {', '.join(known)}, or a name with a domain as nvidia.com/gpu"
        yield ResourceProblem(f"{path}.{name}", "RC318", text, remedy)


def _meant(name: str, known: tuple[str, ...]) -> str:
    """The resource that was probably meant; nothing where nobody can tell."""
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
) -> Iterator[ResourceProblem]:
    """`may_be_none`: whether 0 says something there."""
    for name, amount in resources.items():
        where = f"{path}.{name}"
        yield from _in_bytes(where, name, amount, may_be_none=may_be_none)
        if name in _COUNTED and amount.binary and amount.milli:
            text = f"{where}: {amount} is no number of {name}: Ki, Mi and Gi are for bytes"
            yield ResourceProblem(where, "RC208", text, f"write {_number(amount)}", names_path=True)
        elif name in _WHOLE and amount.milli % 1000:
            text = f"{where}: {amount} is no whole number of {name}"
            yield ResourceProblem(where, "RC208", text, "write a whole number", names_path=True)


def _in_bytes(path: str, resource: str, amount: Quantity, *, may_be_none: bool) -> Iterator[ResourceProblem]:
    is_none = not amount.milli
    if resource not in _IN_BYTES or amount.milli >= _LEAST_BYTES * 1000 or (is_none and may_be_none):
        return
    text = f"{path}: {amount} is {_bytes(amount)}, which cannot be meant"
    remedy = "write how much there is" if is_none else f"write {_number(amount)}Gi, or {_number(amount)}Mi"
    yield ResourceProblem(path, "RC208", text, remedy, names_path=True)


def _number(amount: Quantity) -> str:
    return re.sub(r"[A-Za-z]+$", "", str(amount))


def _bytes(amount: Quantity) -> str:
    if amount.milli % 1000:
        return "a fraction of a byte" if amount.milli < 1000 else "not even a whole number of bytes"
    whole = amount.milli // 1000
    return f"{whole} {'byte' if whole == 1 else 'bytes'}"
