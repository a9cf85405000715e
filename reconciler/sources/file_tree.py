"""Folders on disk as a tree to walk, and how a file in them is opened so that nothing can lead the reader elsewhere."""

import errno
import os
import stat
from itertools import islice
from pathlib import Path, PurePath

from reconciler.sources.walk import BundleFile, ResolvedPath

CALLED = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)

# No terminal is taken over, no FIFO waited for, no link followed, and no child inherits it.
OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

# Gone, or a link, FIFO, socket or file where something else was listed.
MOVED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO})


class Changed(Exception):
    """The file is no longer what was listed."""


class FileTree:
    """What lies in the areas, given by their real paths; whatever a link finds elsewhere is outside."""

    def __init__(self, areas: tuple[str, ...]) -> None:
        self._areas = areas

    def names(self, folder: str, most: int) -> list[str]:
        with os.scandir(folder) as entries:
            return [entry.name for entry in islice(entries, most)]

    def look(self, folder: str, name: str) -> ResolvedPath:
        path = Path(folder, name)
        try:
            points_to = str(path.readlink()) if path.is_symlink() else ""
            real = os.path.realpath(path, strict=True) if points_to else str(path)
        except OSError as error:
            return self._unresolved(path, error)
        if points_to and self._area(real) is None:
            return ResolvedPath("outside", detail=points_to)
        return node_at(real)

    def read(self, bundle_file: BundleFile) -> bytes:
        """The content that was listed; raises Changed if it is another by now, OSError if it can't be read."""
        area = self._area(bundle_file.node.real)
        if area is None:
            raise Changed
        descriptor = _open_below(area, PurePath(bundle_file.node.real).relative_to(area).parts)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - by descriptor: a path could be another file by now
            if _stamp(os.fstat(descriptor)) != bundle_file.node.stamp:
                raise Changed
            content = file.read(bundle_file.node.size_bytes + 1)
            if _stamp(os.fstat(descriptor)) != bundle_file.node.stamp or len(content) != bundle_file.node.size_bytes:
                raise Changed
            return content

    def _unresolved(self, path: Path, error: OSError) -> ResolvedPath:
        """A link that leads nowhere may still lead out."""
        try:
            points_to = str(path.readlink())
            if self._area(os.path.realpath(path)) is None:
                return ResolvedPath("outside", detail=points_to)
        except OSError:
            points_to = ""
        reason = error.strerror or str(error)
        return ResolvedPath("broken", detail=f"a link to {points_to}: {reason}" if points_to else reason)

    def _area(self, real: str) -> str | None:
        return next((area for area in self._areas if PurePath(real).is_relative_to(area)), None)


def node_at(real: str) -> ResolvedPath:
    """What is at a path that has no links in it."""
    try:
        status = os.lstat(real)
    except OSError as error:
        return ResolvedPath("broken", real, detail=error.strerror or str(error))
    if stat.S_ISDIR(status.st_mode):
        return ResolvedPath("folder", real)
    if stat.S_ISREG(status.st_mode):
        return ResolvedPath("file", real, status.st_size, _stamp(status))
    called = (word for is_kind, word in CALLED if is_kind(status.st_mode))
    return ResolvedPath("special", real, detail=next(called, "of an unknown kind"))


def _stamp(status: os.stat_result) -> tuple[int, ...]:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _open_below(area: str, parts: tuple[str, ...]) -> int:
    """Opens part by part, none of them a link: a link put there after the listing cannot lead out of the area."""
    descriptor = _open(area, is_folder=bool(parts))
    for number, part in enumerate(parts, start=1):
        folder = descriptor
        try:
            descriptor = _open(part, is_folder=number < len(parts), within=folder)
        finally:
            os.close(folder)
    return descriptor


def _open(path: str, *, is_folder: bool, within: int | None = None) -> int:
    try:
        return os.open(path, OPENING | (os.O_DIRECTORY if is_folder else 0), dir_fd=within)
    except OSError as error:
        if error.errno in MOVED:
            raise Changed from error
        raise
