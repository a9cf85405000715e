"""When nodes that are scaled down or drained go, and since when they are marked, in words."""

from collections.abc import Iterator, Sequence

from reconciler.model.human_time import clock
from reconciler.model.instant import Instant
from reconciler.model.plan.consequence import Consequence
from reconciler.plan.impact.scale_down import Departing
from reconciler.report.plans.planned import Planned


class Departures:
    """Those of the plan, and of its base for nodes that go without it."""

    def __init__(self, planned: Planned) -> None:
        self._now = planned.setting.now
        self._departing = {each.node: each for each in planned.departing}

    def words(self, consequence: Consequence) -> Iterator[str]:
        """14:52Z, marked since 14:22Z; or from 14:52Z, 4 at a time. Nothing of nodes that Karpenter takes away."""
        if consequence.fate == "scaled":
            yield from self._scaled(consequence.nodes)
        elif consequence.fate == "drained":
            yield from self._drained(consequence)

    def _scaled(self, nodes: Sequence[str]) -> Iterator[str]:
        departings = [self._departing[name] for name in nodes if name in self._departing]
        times = sorted({each.at for each in departings if each.at is not None})
        if times:
            yield f"{self._span(times)}{self._marked(departings)}"
        if any(each.at is None for each in departings):
            yield "once a guard lets it" if not times else "others once a guard lets it"

    def _drained(self, consequence: Consequence) -> Iterator[str]:
        begun = sorted({each.at for each in consequence.shares if each.at is not None and each.at <= self._now})
        later = sorted({each.at for each in consequence.shares if each.at is not None and each.at > self._now})
        if begun:
            yield "now" if begun == [self._now] else f"since {self._span(begun)}"
        if later:
            yield f"{'others ' if begun else ''}from {clock(later[0], self._now)}"
        if any(each.at is None for each in consequence.shares):
            yield f"{'others ' if begun or later else ''}once a guard or a window allows, or pods have completed"

    def _marked(self, departings: Sequence[Departing]) -> str:
        since = sorted({each.since for each in departings if each.since is not None})
        if since:
            return f", marked since {self._span(since)}"
        return ", marked before" if all(each.is_marked for each in departings) else ", marked now"

    def _span(self, times: Sequence[Instant]) -> str:
        first, last = clock(times[0], self._now), clock(times[-1], self._now)
        return first if first == last else f"{first} to {last}"
