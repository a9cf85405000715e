"""PressurePolicy: how full a node may become before elastic pods move away."""

from typing import Annotated, Literal

import msgspec

from reconciler.model.fields import KeyPattern, Refers, Says, Within
from reconciler.model.quantity import Percent, Quantity

_RESOURCE = KeyPattern(r"^[A-Za-z0-9./-]{1,317}$", "a resource name, such as cpu or memory")


class Pressure(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """The bounds of one resource on each node."""

    system: Annotated[Quantity, Says("Kept for what the scheduler does not place.")]
    watermark: Annotated[Percent, Says("Share of what is left beside system from which pods are moved away.")]


class PressurePolicy(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """Watches the reserved resources of each node of its pools, and moves elastic pods before they run out."""

    suspend: Annotated[bool, Says("Set aside: nothing is planned for it until this is taken back.")] = False
    pool_names: Annotated[
        list[Annotated[str, Refers("GpuPool", all_as_star=True)]],
        Says('The pools it is for; "*" for all.'),
        Within(1, 1000),
    ]
    resources: Annotated[Annotated[dict[str, Pressure], _RESOURCE], Says("Bounds by resource."), Within(1, 20)]
    compute_unit: Annotated[
        Annotated[dict[str, Quantity], _RESOURCE], Says("What an agent must ask in multiples of."), Within(1, 20)
    ]
    mem_slot_size: Annotated[Quantity, Says("Memory is lent in slots of this size.")] = Quantity(
        1024**3 * 1000, binary=True
    )
    migration: Annotated[
        Literal["Auto", "Evict", "None"], Says("Live migration where it exists, eviction, or neither.")
    ] = "Auto"
