"""A source that keeps up with what it reads; a Watched is the owner of its last good bundle and of one thread.

The thread is there because reading waits: for the kernel to tell of a change, for git, for a network. The loop asks for
the latest bundle at its own pace and must never wait for any of that.
"""

import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Protocol

import msgspec
from watchfiles import watch

from reconciler.model.bundle import Bundle
from reconciler.sources.directory import list_directory, read_directory
from reconciler.sources.git import Access, GitPlace, read_revision
from reconciler.sources.walk import TEMPLATES_FOLDER, SourceBounds, SourceFault

# --- When to read again: a round each time that files may have changed, or that a remote is due to be asked.
#
# Folders are watched one by one and not by subtree, since a subtree would take in whatever links lead to. Mounts are
# swapped by a link above or beside the files, so what holds a root, and each link on the way to it, is watched too.

SETTLED_MS = 50  # without a further change: what one command writes is one change
LONGEST_MS = 500  # while changes keep coming
QUIET_MS = 200
LOOK_SECONDS = 60.0  # even without a word of change: some file systems tell nothing
RETRY_SECONDS = 1.0
LINKS_FOLLOWED = 40  # as the kernel does


class PollInterval(msgspec.Struct, frozen=True):
    """How often a remote is asked: after the interval and up to a tenth more, so that replicas do not ask as one."""

    interval_seconds: float
    chance: random.Random

    def next_seconds(self) -> float:
        return self.interval_seconds * (1 + self.chance.random() / 10)


class Watch(msgspec.Struct, frozen=True):
    """All that lies in the folders concerns us; of what lies elsewhere, only the names."""

    folders: frozenset[str]
    names: frozenset[str]

    @property
    def places(self) -> list[str]:
        """Every folder to be told about."""
        around = {str(Path(name).parent) for name in self.names}
        return sorted(folder for folder in {*self.folders, *around} if Path(folder).is_dir())

    def concerns(self, path: str) -> bool:
        return path in self.names or str(Path(path).parent) in self.folders


def polled(pace: PollInterval, stop: Event) -> Iterator[None]:
    """A round whenever the pace says so, until stopped."""
    while not stop.wait(pace.next_seconds()):
        yield


def watched(roots: Sequence[Path], bounds: SourceBounds, stop: Event) -> Iterator[None]:
    """A round whenever what is below the roots may have changed, until stopped."""
    while not stop.is_set():
        try:
            yield from _while_it_lasts(watch_of(roots, bounds), roots, bounds, stop)
        except OSError:  # a folder is gone between listing and watching, or the kernel watches no more
            if not stop.wait(RETRY_SECONDS):
                yield


def watch_of(roots: Sequence[Path], bounds: SourceBounds) -> Watch:
    """What is to be watched as things are now."""
    _, listing = list_directory(roots, bounds)
    names: set[str] = set()
    for root in roots:
        names |= _on_the_way(Path(os.path.abspath(root)))  # noqa: PTH100 - resolve() would lose the links to watch
        names.add(str(Path(os.path.realpath(root.parent), TEMPLATES_FOLDER)))
    folders = {os.path.realpath(folder) for folder in listing.folders}
    folders |= {str(Path(file.node.real).parent) for file in listing.files}
    return Watch(frozenset(folders), frozenset(names))


def _while_it_lasts(now: Watch, roots: Sequence[Path], bounds: SourceBounds, stop: Event) -> Iterator[None]:
    """Rounds until there is something else to watch."""
    is_due = True  # what changed before the watch stood has been told to nobody
    looked = time.monotonic()
    batches = watch(
        *now.places,
        watch_filter=None,
        debounce=LONGEST_MS,
        step=SETTLED_MS,
        stop_event=stop,
        rust_timeout=QUIET_MS,
        yield_on_timeout=True,
        raise_interrupt=False,
        recursive=False,
    )
    for changes in batches:
        concerned = any(now.concerns(path) for _, path in changes)
        if concerned or is_due or time.monotonic() > looked + LOOK_SECONDS:
            yield
            is_due = concerned  # once more when all is quiet: the last write may have been half done
            looked = time.monotonic()
            if watch_of(roots, bounds) != now:
                return


def _on_the_way(path: Path, hops: int = LINKS_FOLLOWED) -> set[str]:
    """The real places of the path itself, of every link that leads to it, and of every folder that is yet to come."""
    names = {str(Path(os.path.realpath(path.parent), path.name))}
    for place in (path, *path.parents):
        if place.is_symlink() or not os.path.lexists(place):
            names.add(str(Path(os.path.realpath(place.parent), place.name)))
        if hops and place.is_symlink():
            names |= _on_the_way(place.parent / place.readlink(), hops - 1)
    return names


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
