"""A source that keeps up with what it reads; a Watched is the owner of its last good bundle and of one thread.

The thread is there because reading waits: for the kernel to tell of a change, for git, for a network. The loop asks for
the latest bundle at its own pace and must never wait for any of that.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Protocol

import msgspec

from reconciler.model.bundle import Bundle
from reconciler.sources.bounds import SourceBounds
from reconciler.sources.change_triggers import RETRY_SECONDS, PollInterval, polled, watched
from reconciler.sources.directory import read_directory
from reconciler.sources.fault import SourceFault
from reconciler.sources.git import Access, GitPlace, read_revision

STOP_SECONDS = 2.0


class BundleOrigin(Protocol):
    """Where a bundle can be read again and again; setting the event calls off what goes on."""

    def read(self, stop: Event) -> Bundle:
        """What is there now."""
        ...

    def rounds(self, stop: Event) -> Iterator[None]:
        """Yields whenever it may be worth reading again, and ends when stopped."""
        ...


class WatchedFolders(msgspec.Struct, frozen=True):
    """Folders and files on disk, read when the kernel tells of a change."""

    roots: tuple[Path, ...]
    bounds: SourceBounds

    def read(self, stop: Event) -> Bundle:
        return read_directory(self.roots, self.bounds)

    def rounds(self, stop: Event) -> Iterator[None]:
        return watched(self.roots, self.bounds, stop)


class PolledRepository(msgspec.Struct, frozen=True):
    """A revision, usually a branch, asked for at a pace; nothing is fetched while it stays the same."""

    place: GitPlace
    bounds: SourceBounds
    access: Access
    pace: PollInterval

    def read(self, stop: Event) -> Bundle:
        return read_revision(self.place, self.bounds, msgspec.structs.replace(self.access, cancelled=stop))

    def rounds(self, stop: Event) -> Iterator[None]:
        return polled(self.pace, stop)


class WatchedSource:
    """A Source. `judge` says whether a whole bundle is good; `on_change` is told, on the thread, that there is news:
    another latest bundle, or another one refused."""

    def __init__(self, place: BundleOrigin, judge: Callable[[Bundle], bool], on_change: Callable[[], None]) -> None:
        self._place = place
        self._judge = judge
        self._on_change = on_change
        self._latest = _nothing(
            SourceFault.NOTHING_GOOD_YET, "no good policies have been read yet", "see what was refused"
        )
        self._refused: Bundle | None = None
        self._has_read = Event()
        self._stop = Event()
        self._thread = Thread(target=self._run, name="policies", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Calls off what goes on and waits for the thread."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join(STOP_SECONDS)

    def latest(self) -> Bundle:
        """The last good bundle; before the first, one that is a problem and nothing else. Never blocks."""
        return self._latest

    @property
    def last_refused(self) -> Bundle | None:
        """What was read last, if it was not good."""
        return self._refused

    def wait_until_read(self, timeout_seconds: float) -> bool:
        """Waits for the first reading, good or not; says whether there has been one."""
        return self._has_read.wait(timeout_seconds)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._look()
                for _ in self._place.rounds(self._stop):
                    self._look()
            except Exception as error:  # noqa: BLE001 - a thread that ends would freeze the policies without a word
                self._refused = _broke_off(error)
                self._stop.wait(RETRY_SECONDS)

    def _look(self) -> None:
        bundle, is_good = self._read()
        if self._stop.is_set():
            return
        before = (self._latest, self._refused)
        if not is_good:
            self._refused = bundle
        else:
            self._latest, self._refused = bundle, None
        self._has_read.set()
        if (self._latest, self._refused) != before:
            self._on_change()

    def _read(self) -> tuple[Bundle, bool]:
        """A bundle with problems is not whole, whatever the judge would say of the rest."""
        try:
            bundle = self._place.read(self._stop)
            return bundle, not bundle.problems and self._judge(bundle)
        except Exception as error:  # noqa: BLE001 - as above; what is read may bring out any mistake of ours
            return _broke_off(error), False


def _broke_off(error: Exception) -> Bundle:
    sentence = f"reading the policies broke off: {type(error).__name__}: {error}"
    return _nothing(
        SourceFault.BROKE_OFF, sentence, "report this as a mistake of the program; the last good policies stay in force"
    )


def _nothing(fault: SourceFault, sentence: str, remedy: str) -> Bundle:
    return Bundle("", (), problems=(fault.problem("", sentence, remedy),))
