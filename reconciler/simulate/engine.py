"""Owner of simulated time: the events to come, in order of their hour and then of when they were asked for; one seed.

Chance is drawn from streams by name, so that what one actor draws does not change what happens to another: with the
same seed two sets of policies meet the same arrivals and faults.
"""

import random
from collections.abc import Callable
from heapq import heappop, heappush

from reconciler.model.instant import Instant

Do = Callable[[], object]


class Engine:
    """Runs one event after the other; nothing takes time but waiting for the next."""

    def __init__(self, seed: int, start: Instant) -> None:
        self.seed = seed
        self.now = start
        self.done = 0  # events so far
        self.listeners: list[Callable[[str], None]] = []  # called after each event with its name
        self.clocks: list[Callable[[Instant], None]] = []  # called when the hour moves on, before what happens then
        self._to_come: list[tuple[Instant, int, str, Do]] = []
        self._requested = 0
        self._streams: dict[str, random.Random] = {}

    @property
    def chance(self) -> random.Random:
        """The stream of whoever has none of its own."""
        return self.stream("")

    def stream(self, name: str) -> random.Random:
        """Chance for one purpose: the same for the same seed and name, whatever else is drawn."""
        result = self._streams.get(name)
        if result is None:
            # A text is hashed by random itself, never by a hash that differs from one process to another.
            result = self._streams[name] = random.Random(f"{self.seed}/{name}")  # noqa: S311 - chance, not a secret
        return result

    def at(self, when: Instant, what: str, do: Do) -> None:
        """What is to happen at that hour; at once, if it has passed."""
        self._requested += 1
        heappush(self._to_come, (max(when, self.now), self._requested, what, do))

    def after(self, delay_ms: int, what: str, do: Do) -> None:
        """What is to happen so much later."""
        self.at(Instant(self.now + delay_ms), what, do)

    def run(self, until: Instant) -> None:
        """All events up to that hour, those at it included; then it is that hour."""
        to_come = self._to_come
        while to_come and to_come[0][0] <= until:
            when, _, what, do = heappop(to_come)
            self._move_on(when)
            do()
            self.done += 1
            for each in self.listeners:
                each(what)
        self._move_on(until)

    def _move_on(self, when: Instant) -> None:
        if when <= self.now:
            return
        self.now = when
        for each in self.clocks:
            each(when)
