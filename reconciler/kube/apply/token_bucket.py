"""Owner of a token bucket: how many writes may be sent now, and how long the next one waits."""

import threading
import time
from collections.abc import Callable


class Bucket:
    """Refilled at a steady rate up to a burst; may be used from several threads."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._burst, self._clock = per_second, burst, clock
        self._lock = threading.Lock()
        self._tokens = float(burst)
        self._filled_at = clock()

    def reserve(self) -> float:
        """Takes a token, of the future where there is none; how many seconds to wait for it."""
        with self._lock:
            self._fill()
            self._tokens -= 1.0
            return max(0.0, -self._tokens / self._per_second)

    def try_take(self) -> bool:
        """Takes a token if there is one."""
        with self._lock:
            self._fill()
            if self._tokens < 1.0:
                return False
            self._tokens -= 1.0
            return True

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(float(self._burst), self._tokens + (now - self._filled_at) * self._per_second)
        self._filled_at = now
