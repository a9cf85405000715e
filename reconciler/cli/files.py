"""Files that a person named: written whole, or not at all."""

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from reconciler.model.bundle import Text

# --- Writes files that a person named, whatever stands there: each whole, and none of them where one can't be written.

# Of what holds a cluster or what will be done to it: for its owner's eyes, whatever the umask says.
PRIVATE = 0o600


def replace_files(contents: Mapping[Path, bytes], mode: int | None = None) -> None:
    """With that mode; else with the mode of what stands there, or as the umask lets. Raises ClickException, with the
    file that can't be written."""
    with contextlib.ExitStack() as undo:
        staged: list[Staged] = []
        for path, content in contents.items():
            with _report_os_error(path):
                target = Path(os.path.realpath(path))  # a link stays one
                if target.is_dir():
                    raise IsADirectoryError(0, "it is a folder")
                if _is_replaceable(target):
                    file = Staged(target, content, _mode_of(target) if mode is None else mode)
                    undo.callback(file.give_up)
                    staged.append(file)
        for file in staged:
            with _report_os_error(file.target):
                file.put()
    for path, content in contents.items():
        if not _is_replaceable(path):
            with _report_os_error(path):
                path.write_bytes(content)


def _is_replaceable(path: Path) -> bool:
    """A terminal or a pipe, /dev/stdout say, can only be written to."""
    return path.is_file() or not path.exists()


def _mode_of(target: Path) -> int:
    return target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask()


@contextlib.contextmanager
def _report_os_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = "there is no such folder" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise click.ClickException(f"nothing was written: {path}: {why}") from None


def mask() -> int:
    """What the user takes away from the rights of new files."""
    result = os.umask(0)
    os.umask(result)
    return result


# --- Content beside the file that it will become: written whole under another name first, and renamed at last.
#
# A process that is killed leaves such a file behind. It is locked for as long as its writer lives, so that the next
# write into the folder knows those that nobody finishes, and takes them away.

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


# --- Writes several files into a folder, all of them or none.


class AlreadyThere(Exception):
    """Files that would be overwritten."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(", ".join(path.as_posix() for path in paths))
        self.paths = tuple(paths)


def write_all(folder: Path, files: Sequence[Text], overwrite: bool = False) -> tuple[Path, ...]:
    """Where they were written. Raises AlreadyThere, or an OSError, and then everything is as it was."""
    targets = [folder / file.path for file in files]
    if there := [target for target in targets if os.path.lexists(target)]:
        if not overwrite:
            raise AlreadyThere(there)
        if folders := [target for target in there if target.is_dir()]:
            raise IsADirectoryError(f"{folders[0]} is a folder")
    with contextlib.ExitStack() as undo:
        staged = [_staged(undo, target, file.content) for target, file in zip(targets, files, strict=True)]
        for each in staged:
            _put(undo, each)
        undo.pop_all()
    for target in targets:
        _before(target).unlink(missing_ok=True)
    return tuple(targets)


def _staged(undo: contextlib.ExitStack, target: Path, content: bytes) -> Staged:
    """The content beside the target under another name: what could fail has failed before anything is replaced."""
    for parent in reversed([each for each in target.parents if not each.exists()]):
        parent.mkdir()
        undo.callback(_remove_folder, parent)
    staged = Staged(target, content, 0o666 & ~mask())
    undo.callback(staged.give_up)
    return staged


def _put(undo: contextlib.ExitStack, staged: Staged) -> None:
    target = staged.target
    if os.path.lexists(target):
        target.replace(_before(target))
        undo.callback(_before(target).replace, target)
    else:
        undo.callback(target.unlink, missing_ok=True)
    staged.put()


def _before(target: Path) -> Path:
    """What stood there, until all is done."""
    return target.with_name(f".{target.name}.before")


def _remove_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # somebody else put something there meanwhile
        folder.rmdir()
