"""A Request: what a smart pod was made for, as it is written on it; and the names that follow from that."""

from hashlib import sha256
from typing import Any

import msgspec

from reconciler.model import names
from reconciler.model.plan.purchase import Why

COMPONENT = "smart-scheduler"
TAG = f"{names.OURS}for-"

_DIGITS = 12
_LONGEST_MODEL = 63 - len("smart-gpu-scheduler--") - _DIGITS


class CapacityRequest(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Serialized into the annotation gpu.scheduling/original-request."""

    key: str  # the same for the same demand, however often it is asked for
    pool: str
    model: str
    count: int  # GPUs
    why: Why
    instance_type: str
    capacity_type: str = ""  # what is empty was left open
    zone: str = ""
    tflops: str = ""  # of claims, which say it
    vram: str = ""  # memory of these GPUs together
    node_selector: dict[str, str] = {}
    node_affinity: Any = None  # as the pods that wait have it
    pods: tuple[str, ...] = ()  # uids of those that wait

    @property
    def name(self) -> str:
        """Of the smart pod: made twice, it is the same pod."""
        asked = (self.pool, self.key, self.instance_type, self.capacity_type, self.zone)
        digest = sha256(msgspec.json.encode(asked)).hexdigest()[:_DIGITS]
        model = self.model[:_LONGEST_MODEL].rstrip("-.")
        return f"smart-gpu-scheduler-{model}-{digest}"


def tag_of(name: str) -> str:
    """A label that no node has. A smart pod asks for nodes without it, and Karpenter repeats that in the NodeClaim:
    so it can be told which machine was bought for which smart pod."""
    return TAG + name.rpartition("-")[2]
