"""When to read again: a round each time that files may have changed, or that a remote is due to be asked.

Folders are watched one by one and not by subtree, since a subtree would take in whatever links lead to. Mounts are
swapped by a link above or beside the files, so what holds a root, and each link on the way to it, is watched too.
"""

import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

import msgspec
from watchfiles import watch

from reconciler.sources.bounds import SourceBounds
from reconciler.sources.directory import list_directory
from reconciler.sources.file_names import TEMPLATES_FOLDER

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
