"""HTML page with the report of simulations, with plots if matplotlib is installed."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import msgspec

from reconciler.report.formats import html_page
from reconciler.report.formats.html_page import Picture
from reconciler.report.simulation.simulated import Simulated
from reconciler.report.simulation.simulated_document import simulated_document

NO_PLOTS = "the page has no plots, because matplotlib is not installed: pip install 'reconciler[report]'"


class SimulationPage(msgspec.Struct, frozen=True):
    html: str
    pictures: Mapping[str, str]
    note: str = ""


def page_of(runs: Sequence[Simulated], tool_version: str) -> SimulationPage:
    """The page; without pictures if they cannot be drawn."""
    drawn: tuple[Picture, ...] = ()
    if has_plots := find_spec("matplotlib") is not None:
        from reconciler.controller.simulation.plots import pictures  # noqa: PLC0415 - an optional extra

        drawn = pictures(runs)
    page = html_page.write(simulated_document(runs, tool_version), drawn)
    return SimulationPage(page, {f"{each.name}.svg": each.alone for each in drawn}, "" if has_plots else NO_PLOTS)
