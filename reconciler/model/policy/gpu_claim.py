"""GpuClaim: a workload's request for GPUs."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import NAME, Refers, Says, Unit, Within
from reconciler.model.quantity import Quantity


class ClaimedDevices(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Which GPUs, and how close to one another."""

    count: Annotated[int, Says("GPUs for each pod of the claim."), Within(1, 16), Unit("GPUs")]
    policy: Annotated[
        Literal["any", "contiguous", "requireContiguous"],
        Says("contiguous prefers GPUs of one island; requireContiguous takes nothing else."),
    ] = "any"
    model: Annotated[str | None, Says("Model of the GPUs; any, when absent."), Within(1, 63), NAME] = None
    memory: Annotated[Quantity | None, Says("Least memory of each GPU.")] = None


class GpuClaim(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """GPUs for the pods whose annotation gpu.scheduling/claim names it."""

    suspend: Annotated[bool, Says("Set aside: its pods get no GPUs until this is taken back.")] = False
    devices: Annotated[ClaimedDevices, Says("Which GPUs.")]
    pool_name: Annotated[
        str | None, Says("The pool they must be of; any that fits, when absent."), Refers("GpuPool")
    ] = None
    gang_ref: Annotated[str | None, Says("Claims that share it get their GPUs together or not at all."), NAME] = None
