"""A source that follows changes. A WatchedSource owns its last good bundle and one thread.

The thread is needed because reading waits for the kernel, for git, or for a network. The loop requests the latest
bundle at its own pace and must never block.
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

# --- Triggers for a read: files may have changed, or a remote is due to be polled.
#
# Folders are watched individually instead of as a subtree, because a subtree would include link targets. Mounts are
# swapped by a link above or beside the files, so the parent of a root and each link on the way to it are watched too.

SETTLED_MS = 50  # quiet time after a change: one command causes many changes
LONGEST_MS = 500  # maximum wait while changes continue
QUIET_MS = 200
LOOK_SECONDS = 60.0  # fallback interval: some file systems report no changes
RETRY_SECONDS = 1.0
LINKS_FOLLOWED = 40  # same limit as the kernel


class Watch(msgspec.Struct, frozen=True):
    """Watched folders, and watched single names in other folders."""

    folders: frozenset[str]
    names: frozenset[str]

    @property
    def places(self) -> list[str]:
        around = {str(Path(name).parent) for name in self.names}
        return sorted(folder for folder in {*self.folders, *around} if Path(folder).is_dir())

    def concerns(self, path: str) -> bool:
        return path in self.names or str(Path(path).parent) in self.folders


def watched(roots: Sequence[Path], bounds: SourceBounds, stop: Event) -> Iterator[None]:
    """Yields whenever files below the roots may have changed, until stopped."""
    while not stop.is_set():
        try:
            yield from _while_it_lasts(watch_of(roots, bounds), roots, bounds, stop)
        except OSError:  # a folder was deleted between listing and watching, or the kernel's watch limit is reached
            if not stop.wait(RETRY_SECONDS):
                yield


def watch_of(roots: Sequence[Path], bounds: SourceBounds) -> Watch:
    """What to watch in the current state."""
    _, listing = list_directory(roots, bounds)
    names: set[str] = set()
    for root in roots:
        names |= _on_the_way(Path(os.path.abspath(root)))  # noqa: PTH100 - resolve() would lose the links to watch
        names.add(str(Path(os.path.realpath(root.parent), TEMPLATES_FOLDER)))
    folders = {os.path.realpath(folder) for folder in listing.folders}
    folders |= {str(Path(file.node.real).parent) for file in listing.files}
    return Watch(frozenset(folders), frozenset(names))


def _while_it_lasts(now: Watch, roots: Sequence[Path], bounds: SourceBounds, stop: Event) -> Iterator[None]:
    """Yields until there is something else to watch."""
    is_due = True  # changes before the watch was active were not reported
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
            is_due = concerned  # once more when quiet: the last write may have been incomplete
            looked = time.monotonic()
            if watch_of(roots, bounds) != now:
                return


def _on_the_way(path: Path, hops: int = LINKS_FOLLOWED) -> set[str]:
    """Real paths of the path itself, of every link on the way to it, and of every folder that does not exist yet."""
    names = {str(Path(os.path.realpath(path.parent), path.name))}
    for place in (path, *path.parents):
        if place.is_symlink() or not os.path.lexists(place):
            names.add(str(Path(os.path.realpath(place.parent), place.name)))
        if hops and place.is_symlink():
            names |= _on_the_way(place.parent / place.readlink(), hops - 1)
    return names


STOP_SECONDS = 2.0


class BundleOrigin(Protocol):
    """A bundle's origin, readable repeatedly; setting the event cancels a read."""

    def read(self, stop: Event) -> Bundle:
        """The current bundle."""

    def rounds(self, stop: Event) -> Iterator[None]:
        """Yields whenever a new read may be useful, and ends when stopped."""


class WatchedFolders(msgspec.Struct, frozen=True):
    """Folders and files on disk, read when the kernel reports a change."""

    roots: tuple[Path, ...]
    bounds: SourceBounds

    def read(self, stop: Event) -> Bundle:
        return read_directory(self.roots, self.bounds)

    def rounds(self, stop: Event) -> Iterator[None]:
        return watched(self.roots, self.bounds, stop)


class PolledRepository(msgspec.Struct, frozen=True):
    """A revision, usually a branch, fetched only when it changes.

    It is polled at the interval plus up to a tenth, so that replicas do not poll at the same time.
    """

    place: GitPlace
    bounds: SourceBounds
    access: Access
    interval_seconds: float
    chance: random.Random

    def read(self, stop: Event) -> Bundle:
        return read_revision(self.place, self.bounds, msgspec.structs.replace(self.access, cancelled=stop))

    def rounds(self, stop: Event) -> Iterator[None]:
        while not stop.wait(self.next_seconds()):
            yield

    def next_seconds(self) -> float:
        return self.interval_seconds * (1 + self.chance.random() / 10)


class WatchedSource:
    """A Source. `judge` says whether a complete bundle is good; `on_change` is called on the thread for each new latest
    or refused bundle."""

    def __init__(self, place: BundleOrigin, judge: Callable[[Bundle], bool], on_change: Callable[[], None]) -> None:
        self._place = place
        self._judge = judge
        self._on_change = on_change
        self._latest = _nothing(
            SourceFault.NOTHING_GOOD_YET, "no valid policies have been read yet", "see the refused revision"
        )
        self.last_refused: Bundle | None = None  # the last bundle read, if it was not good
        self.has_read = False  # whether there was a first read, good or not
        self._stop = Event()
        self._thread = Thread(target=self._run, name="policies", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Cancels a read and waits for the thread."""
        self._stop.set()
        if self._thread.is_alive() and self._thread is not current_thread():
            self._thread.join(STOP_SECONDS)

    def latest(self) -> Bundle:
        """The last good bundle; before the first, a bundle with only a problem. Never blocks."""
        return self._latest

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._look()
                for _ in self._place.rounds(self._stop):
                    self._look()
            except Exception as error:  # noqa: BLE001 - a thread that ends would freeze the policies without a word
                self.last_refused = _broke_off(error)
                self._stop.wait(RETRY_SECONDS)

    def _look(self) -> None:
        bundle, is_good = self._read()
        if self._stop.is_set():
            return
        before = (self._latest, self.last_refused)
        if not is_good:
            self.last_refused = bundle
        else:
            self._latest, self.last_refused = bundle, None
        self.has_read = True
        if (self._latest, self.last_refused) != before:
            self._on_change()

    def _read(self) -> tuple[Bundle, bool]:
        """Reads a bundle. A bundle with problems is incomplete, and therefore never good."""
        try:
            bundle = self._place.read(self._stop)
            return bundle, not bundle.problems and self._judge(bundle)
        except Exception as error:  # noqa: BLE001 - as above; what is read may bring out any mistake of ours
            return _broke_off(error), False


def _broke_off(error: Exception) -> Bundle:
    sentence = f"reading the policies failed: {type(error).__name__}: {error}"
    return _nothing(
        SourceFault.BROKE_OFF, sentence, "report this as a bug in reconciler; the last valid policies stay in force"
    )


def _nothing(fault: SourceFault, sentence: str, remedy: str) -> Bundle:
    return Bundle("", (), problems=(fault.problem("", sentence, remedy),))
