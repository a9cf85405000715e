"""What is asked of a template, and what it yields."""

from typing import Any

import msgspec

from reconciler.model.problem import Problem


class RenderRequest(msgspec.Struct, frozen=True):
    """One template with the values it is rendered with; `values` is plain JSON data."""

    template: str  # its path in the bundle's templates
    values: dict[str, Any]


class Rendering(msgspec.Struct, frozen=True):
    """The text that came of a request, or why none did.

    `lines` has, for each line of the text, the template file and line it came from.
    """

    text: str = ""
    lines: tuple[tuple[str, int], ...] = ()
    problem: Problem | None = None
