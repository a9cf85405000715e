"""What the loop asks of the world, in as few methods as will do; each says what it promises."""

from collections.abc import Sequence
from typing import Protocol

from reconciler.model.bundle import Bundle, Text
from reconciler.model.rendering import Rendering, RenderRequest


class Source(Protocol):
    """Where policies come from."""

    def latest(self) -> Bundle:
        """The last good bundle. Never blocks; a bad or incomplete bundle never takes a good one's place."""
        ...


class Renderer(Protocol):
    """Turns templates and values into text, whatever the templates try."""

    def render(self, templates: Sequence[Text], requests: Sequence[RenderRequest]) -> tuple[Rendering, ...]:
        """One rendering a request, in order. The same arguments give the same bytes; time and memory are bounded."""
        ...
