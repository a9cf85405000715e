"""Owner of how long there has been a controller that sees soon what happens: only so long it can be late."""

from reconciler.model.instant import Instant


class Presence:
    """Told when it begins and ends."""

    def __init__(self) -> None:
        self._since: Instant | None = None  # None: there is none now
        self._before_ms = 0

    def note(self, is_there: bool, now: Instant) -> None:
        """As it is from now on."""
        if self._since is not None:
            self._before_ms += now - self._since
        self._since = now if is_there else None

    def so_far_ms(self, now: Instant) -> int:
        """All together."""
        return self._before_ms + (0 if self._since is None else now - self._since)
