"""What tests of rendering share: one template and its text, whatever renders it."""

from typing import Any

from reconciler.model.bundle import Rendering, RenderRequest, Text
from reconciler.model.problem import Problem
from reconciler.sources.renderer import RenderBounds, render

# Nothing innocent comes near these, and what is not innocent is stopped soon.
QUICK = RenderBounds(share_seconds=0.2, least_share_seconds=0.05)


def rendered(template: str, values: dict[str, Any] | None = None, **others: str) -> Rendering:
    """The rendering of `main.j2`; further templates are given by name, their dots as underscores."""
    texts = [Text(f"{name}.j2", text.encode()) for name, text in {"main": template, **others}.items()]
    (rendering,) = render(texts, [RenderRequest("main.j2", values or {})], QUICK)
    return rendering


def text_of(template: str, values: dict[str, Any] | None = None, **others: str) -> str:
    rendering = rendered(template, values, **others)
    assert rendering.problem is None, rendering.problem
    return rendering.text


def problem_of(template: str, values: dict[str, Any] | None = None, **others: str) -> Problem:
    rendering = rendered(template, values, **others)
    assert rendering.problem, rendering.text
    assert (rendering.text, rendering.lines) == ("", ())
    return rendering.problem
