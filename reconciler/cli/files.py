"""Atomic writes of files that a person named."""

import contextlib
import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from reconciler.model.bundle import Text

# --- Replaces files that a person named: each atomically, and none if one cannot be written.

# Mode of files that contain a cluster or a plan: readable by the owner only, whatever the umask.
PRIVATE = 0o600


def replace_files(contents: Mapping[Path, bytes], mode: int | None = None) -> None:
    """Writes files with this mode; by default with the mode of the existing file, or as the umask allows. Raises
    ClickException with the file that cannot be written."""
    with contextlib.ExitStack() as undo:
        staged: list[Staged] = []
        for path, content in contents.items():
            with _report_os_error(path):
                target = Path(os.path.realpath(path))  # a link stays a link
                if target.is_dir():
                    raise IsADirectoryError(0, "is a directory")
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
    """Whether the path is a regular file. A terminal or pipe, such as /dev/stdout, can only be written to."""
    return path.is_file() or not path.exists()


def _mode_of(target: Path) -> int:
    return target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask()


@contextlib.contextmanager
def _report_os_error(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        why = "no such folder" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise click.ClickException(f"nothing was written: {path}: {why}") from None


def mask() -> int:
    result = os.umask(0)
    os.umask(result)
    return result


# --- Staged files: written completely under another name beside the target, then renamed.
#
# A killed process leaves its staged file behind. The writer locks the file while it lives, so that the next write into
# the folder recognizes abandoned files and deletes them.

SUFFIX = ".unfinished"
_ATTEMPTS = 10  # to create a name that a sweep deleted before it was locked


class Staged:
    """Owner of one staged file and its lock, until the file is renamed or discarded."""

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
        """Replaces the target. Raises OSError, in which case nothing has changed."""
        self.path.replace(self.target)
        self._close()

    def give_up(self) -> None:
        """Deletes the staged file; does nothing after `put`."""
        if self._descriptor >= 0:
            self.path.unlink(missing_ok=True)
            self._close()

    def _close(self) -> None:
        os.close(self._descriptor)
        self._descriptor = -1


def sweep(folder: Path) -> None:
    """Deletes files abandoned by killed writers. Never raises."""
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
    """Staged files of ours for this name."""
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
        with contextlib.suppress(OSError):  # a file system without locks: abandoned files stay
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if _is_still(Path(name), descriptor):
            return descriptor, Path(name)
        os.close(descriptor)
    raise OSError(f"files in {folder} are deleted as soon as they are created")


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the name still refers to the open file: another process may have locked and deleted it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return os.path.samestat(found, os.fstat(descriptor))


# --- Writes several files into a folder, all or none.


class AlreadyThere(Exception):
    """Files that would be overwritten."""

    def __init__(self, paths: Sequence[Path]) -> None:
        super().__init__(", ".join(path.as_posix() for path in paths))
        self.paths = tuple(paths)


def write_all(folder: Path, files: Sequence[Text], overwrite: bool = False) -> tuple[Path, ...]:
    """Paths of the written files. Raises AlreadyThere or OSError, in which case nothing has changed."""
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
    """Stages the content beside the target, so that errors happen before anything is replaced."""
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
    """Copy of the previous file, kept until all files are written."""
    return target.with_name(f".{target.name}.before")


def _remove_folder(folder: Path) -> None:
    with contextlib.suppress(OSError):  # another process created a file meanwhile
        folder.rmdir()
