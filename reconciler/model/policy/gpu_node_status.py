"""GpuNodeStatus: what the agent of a node reports of its GPUs."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import LABEL_VALUE, NAME, MergeKey, Says, Unit, Within
from reconciler.model.quantity import Quantity


class Device(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """One GPU."""

    id: Annotated[int, Says("Index of the GPU on its node."), Within(0, 63)]
    uuid: Annotated[str | None, Says("What stays the same across reboots."), Within(1, 96)] = None
    model: Annotated[str | None, Says("Model, in the word that pools use."), Within(1, 63), NAME] = None
    memory: Annotated[Quantity | None, Says("Its memory.")] = None
    island: Annotated[str | None, Says("GPUs of one island are joined by fast links."), LABEL_VALUE] = None
    bandwidth_gbps: Annotated[
        int | None, Says("Bandwidth to its island's other GPUs."), Within(0, 1_000_000), Unit("GB/s")
    ] = msgspec.field(name="bandwidthGBps", default=None)
    health: Annotated[Literal["Healthy", "Unhealthy", "Unknown"], Says("Whether it can be lent.")] = "Unknown"


class GpuNodeReport(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What the agent writes: the object's status."""

    devices: Annotated[list[Device], Says("The node's GPUs."), Within(most=64), MergeKey(("id",))] = msgspec.field(
        default_factory=list
    )


class GpuNodeStatus(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The GPUs of the node of the same name, as its agent sees them; the report is its status."""

    suspend: Annotated[bool, Says("Set aside: nothing new is placed on its GPUs until this is taken back.")] = False
