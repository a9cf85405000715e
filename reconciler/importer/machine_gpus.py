"""The GPUs of one machine, as the labels of Karpenter or of the GPU feature discovery tell them, or its type's name."""

import re

import msgspec

from reconciler.importer.machines import ImportedMachine
from reconciler.model import names
from reconciler.model.quantity import Quantity
from reconciler.policy.rules.hardware import KNOWN, gpus_of

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
