"""Content beside the file that it will become: written whole under another name first, and renamed at last.

A process that is killed leaves such a file behind. It is locked for as long as its writer lives, so that the next write
into the folder knows those that nobody finishes, and takes them away.
"""

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

SUFFIX = ".unfinished"
_ATTEMPTS = 10  # at a name that a sweeper took away before it was locked


class Staged:
    """Owner of one unfinished file, and of the lock on it, until it is put in its place or given up."""

    def __init__(self, target: Path, content: bytes, mode: int) -> None:
        self.target = target
        self._descriptor, self.path = _locked(target.parent)
        try:
            with open(self._descriptor, "wb", closefd=False) as file:
                file.write(content)
            os.fchmod(self._descriptor, mode)
        except BaseException:
            self.give_up()
            raise

    def put(self) -> None:
        """In place of what stood there. Raises OSError, and then nothing has changed."""
        self.path.replace(self.target)
        self._close()

    def give_up(self) -> None:
        """Leaves nothing behind; does nothing once it was put."""
        if self._descriptor >= 0:
            self.path.unlink(missing_ok=True)
            self._close()

    def _close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1


def sweep(folder: Path) -> None:
    """Takes away what a writer left that was killed. Never raises."""
    for path in _left(folder):
        with contextlib.suppress(OSError):
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_still(path, descriptor):
                    path.unlink()
            finally:
                os.close(descriptor)


def _left(folder: Path) -> Iterator[Path]:
    """Our own files of the name alone."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".") and entry.name.endswith(SUFFIX):
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid():
                    yield Path(entry.path)


def _locked(folder: Path) -> tuple[int, Path]:
    sweep(folder)
    for _ in range(_ATTEMPTS):
        descriptor, name = tempfile.mkstemp(prefix=".", suffix=SUFFIX, dir=folder)
        with contextlib.suppress(OSError):  # a file system without locks: what is left there stays
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_still(Path(name), descriptor):
            return descriptor, Path(name)
        os.close(descriptor)
    raise OSError(f"in {folder} each file is taken away as it is made")


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the name still is that of the file which is open: another may have locked and removed it before."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))
