"""Owner of how long pods waited, in as many counts as a long time has doublings, however many pods there were."""

from itertools import accumulate

_PARTS = 4  # of each doubling
_COUNTS = 40 * _PARTS


class WaitHistogram:
    """The mean is exact; of a share the answer is up to a fifth too long."""

    def __init__(self) -> None:
        self._counts = [0] * _COUNTS
        self._sum_ms = 0
        self._number = 0

    def note(self, waited_ms: int) -> None:
        self._counts[min(_COUNTS - 1, _place(waited_ms // 1_000))] += 1
        self._sum_ms += waited_ms
        self._number += 1

    @property
    def mean_seconds(self) -> int:
        return self._sum_ms // self._number // 1_000 if self._number else 0

    def within_seconds(self, percent: int) -> int:
        """So many of a hundred waited no longer."""
        if not self._number:
            return 0
        wanted = -(-percent * self._number // 100)
        sums = accumulate(self._counts)
        return _most(next(place for place, found in enumerate(sums) if found >= wanted))


def _place(seconds: int) -> int:
    """Below 4 each second by itself; then four a doubling."""
    if seconds < _PARTS:
        return seconds
    doublings = seconds.bit_length() - _PARTS.bit_length()
    return _PARTS * (doublings + 1) + (seconds >> doublings) - _PARTS


def _most(place: int) -> int:
    """The greatest number of seconds that falls there."""
    if place < _PARTS:
        return place
    doublings, part = divmod(place - _PARTS, _PARTS)
    return ((part + _PARTS + 1) << doublings) - 1
