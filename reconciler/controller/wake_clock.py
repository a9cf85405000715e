"""The loop's Clock: owner of whether something has happened since it last looked."""

import threading

from reconciler.controller.cluster import current_instant
from reconciler.model.instant import Instant

SETTLE_SECONDS = 0.1  # what one command writes comes as many changes
LOOK_SECONDS = 30.0  # the wall clock may be set while we wait for an hour of it


class WakingClock:
    """`wake` may be called from any thread."""

    def __init__(self) -> None:
        self._happened = threading.Event()
        self._hurry = threading.Event()  # nothing is worth settling for

    def now(self) -> Instant:
        return current_instant()

    def wake(self) -> None:
        self._happened.set()

    def hurry(self) -> None:
        """From now on nobody waits here."""
        self._hurry.set()
        self._happened.set()

    def wait(self, until: Instant | None) -> None:
        """Until then, or until something happens, and a moment more for what comes with it; or until the hour is set
        back, since then nobody knows any more how long that would be."""
        before = self.now()
        while not self._hurry.is_set():
            now = self.now()
            if now < before:
                return
            before = now
            left_seconds = LOOK_SECONDS if until is None else (until - now) / 1000
            if left_seconds <= 0:
                return
            if self._happened.wait(min(left_seconds, LOOK_SECONDS)):
                self._hurry.wait(SETTLE_SECONDS)
                self._happened.clear()
                return
