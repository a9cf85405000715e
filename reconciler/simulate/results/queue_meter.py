"""Owner of how long the queue was, and how long pods stood in it, at the most since somebody last looked.

A wait that begins and ends between two looks is seen by neither of them.
"""

from reconciler.model.instant import Instant
from reconciler.simulate.results.totals import PoolTotalsTracker


class Queueing:
    """Told after each write, and of each wait that is over."""

    def __init__(self, where: PoolTotalsTracker) -> None:
        self._where = where
        self.pods = self.gpus = 0
        self.longest_wait_ms = 0
        self.note()

    def note(self) -> None:
        """As many as wait now."""
        self.pods = max(self.pods, len(self._where.waiting))
        self.gpus = max(self.gpus, self._where.waiting_gpus)

    def note_wait(self, waited_ms: int) -> None:
        self.longest_wait_ms = max(self.longest_wait_ms, waited_ms)

    def look(self, now: Instant) -> None:
        """Those that wait now, the longest first."""
        self.note_wait(now - next(iter(self._where.waiting.values()), now))

    def forget(self) -> None:
        """From here on anew, with those that wait now."""
        self.pods = self.gpus = self.longest_wait_ms = 0
        self.note()
