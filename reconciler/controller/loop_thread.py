"""The thread of the leader's loop, and the clock that wakes the loop.

The loop is synchronous and waits for the planner and the API server; the endpoints must not wait.
"""

import threading
from collections.abc import Callable

from reconciler.controller.cluster import current_instant
from reconciler.controller.publishers import Log
from reconciler.model.instant import Instant

SETTLE_SECONDS = 0.1  # one command causes many changes
LOOK_SECONDS = 30.0  # the wall clock may be changed during a long wait


class WakingClock:
    """A Clock; `wake` is thread-safe."""

    def __init__(self) -> None:
        self._happened = threading.Event()
        self._hurry = threading.Event()  # set: do not wait for changes to settle

    def now(self) -> Instant:
        return current_instant()

    def wake(self) -> None:
        self._happened.set()

    def hurry(self) -> None:
        """Ends all waits from now on."""
        self._hurry.set()
        self._happened.set()

    def wait(self, until: Instant | None) -> None:
        """Waits until this time or the next change, and a moment more for related changes. Also returns if the clock is
        set back, because the remaining time is then unknown."""
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


_AFTER_A_FAULT_MS = 5_000


class LoopThread:
    """Calls `once` until stopped, each time when the last call said."""

    def __init__(self, clock: WakingClock, log: Log, once: Callable[[], Instant | None]) -> None:
        self._clock, self._log, self._once = clock, log, once
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="loop", daemon=True)

    @property
    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout_seconds: float) -> bool:
        """Starts no more steps; returns whether the last one has ended."""
        self._stop.set()
        self._clock.hurry()
        self._thread.join(timeout_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                wake_at = self._once()
            except Exception as fault:  # noqa: BLE001 - a thread that ends would leave the cluster alone without a word
                text = f"a cycle failed because of a bug in reconciler: {type(fault).__name__}: {fault}"
                self._log.tell("fault", text, "error")
                wake_at = Instant(self._clock.now() + _AFTER_A_FAULT_MS)
            self._clock.wait(wake_at)
