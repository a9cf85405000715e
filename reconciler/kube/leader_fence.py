"""Owner of until when this process may write: a Fence, for as long as one term of leadership lasts."""

import threading
import time
from collections.abc import Callable

from reconciler.protocol.leadership import Monotonic

MonotonicClock = Callable[[], Monotonic]


def monotonic_ms() -> Monotonic:
    """Goes on while the process is stopped, and where the system can tell, while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return Monotonic(time.clock_gettime_ns(clock) // 1_000_000)


class LeaderFence:
    """May be asked from several threads. Once it has ended it stays so, whatever is heard later."""

    def __init__(self, until: Monotonic, clock: MonotonicClock = monotonic_ms) -> None:
        self._until = until
        self._clock = clock
        self._has_ended = False
        self._lock = threading.Lock()

    def holds(self) -> bool:
        with self._lock:
            self._has_ended |= self._clock() >= self._until
            return not self._has_ended

    def extend(self, until: Monotonic) -> bool:
        """Says whether it goes on: it may have run out before this was heard."""
        with self._lock:
            self._has_ended |= self._clock() >= self._until
            self._until = max(self._until, until)
            return not self._has_ended

    def end(self) -> None:
        """From now on nothing is sent."""
        with self._lock:
            self._has_ended = True
