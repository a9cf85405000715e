"""Owner of the changes on their way from the watchers' threads to whoever owns the store.

What comes between two takings is one batch. Its owner is told once that there is something to take, not once an event;
and while nobody takes, watchers wait here, which stops their reading: the API server then keeps what it has to say.
"""

import threading
from collections.abc import Callable

from reconciler.kube.watch.changes import Change, is_news

MOST_CHANGES = 5_000


class ChangeQueue:
    """`on_news` is called on a watcher's thread, and should do no more than wake somebody."""

    def __init__(self, on_news: Callable[[], None], most_changes: int = MOST_CHANGES) -> None:
        self._on_news = on_news
        self._most_changes = most_changes
        self._changes: list[Change] = []
        self._is_told = False
        self._is_closed = False
        self._moved = threading.Condition()

    def tell(self, change: Change) -> None:
        """Waits while there is no room. What is told after closing is lost."""
        with self._moved:
            self._moved.wait_for(lambda: self._is_closed or len(self._changes) < self._most_changes)
            if self._is_closed:
                return
            self._changes.append(change)
            self._moved.notify_all()
            tells_now = is_news(change) and not self._is_told
            self._is_told |= tells_now
        if tells_now:
            self._on_news()

    def take(self) -> list[Change]:
        """All that has come, in the order in which it came. Never blocks."""
        with self._moved:
            taken, self._changes = self._changes, []
            self._is_told = False
            self._moved.notify_all()
        return taken

    def wait(self, timeout_seconds: float) -> None:
        """Returns when there is something to take, at the latest after that long."""
        with self._moved:
            self._moved.wait_for(lambda: self._is_closed or bool(self._changes), timeout_seconds)

    def close(self) -> None:
        """Nobody takes any more: nobody need wait."""
        with self._moved:
            self._is_closed = True
            self._moved.notify_all()
