"""Text of the facts about pressure."""

from collections.abc import Callable, Mapping
from typing import Any

from reconciler.fleet.amounts import CPU, MEMORY
from reconciler.model.quantity import Quantity
from reconciler.plan.capacity.words import ruled_out_words
from reconciler.plan.pressure.reasons import PlacesRuledOut, PressedResource


def amount_words(resource: str, amount: int) -> str:
    """An amount as a Kubernetes quantity: 2500m, 3Gi."""
    if resource == CPU:
        return str(Quantity(amount))
    return str(Quantity(amount * 1_000, binary=resource == MEMORY))


def _pressed(pressed: PressedResource) -> str:
    name = pressed.resource
    parts = [f"{amount_words(name, pressed.logical)} above its watermark"] if pressed.logical else []
    parts += [f"{amount_words(name, pressed.capacity)} requested and not there"] if pressed.capacity else []
    return f"{name}: {' and '.join(parts)}"


def _places(places: PlacesRuledOut) -> str:
    parts = [
        ruled_out_words(places.ruled_out),
        f"{places.above} above the watermark" if places.above else "",
        f"{places.without} without a PressurePolicy" if places.without else "",
    ]
    return ", ".join(filter(None, parts)) or "there is no other node"


WORDS: Mapping[type, Callable[[Any], str]] = {PressedResource: _pressed, PlacesRuledOut: _places}
