"""Writes files that a person named, whatever stands there: each whole, and none of them where one can't be written."""

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import click


def replace_files(contents: Mapping[Path, bytes]) -> None:
    """Raises ClickException, with the file that can't be written."""
    with contextlib.ExitStack() as undo:
        staged: list[tuple[Path, Path]] = []
        for path, content in contents.items():
            with _told(path):
                target = Path(os.path.realpath(path))  # a link stays one
                if target.is_dir():
                    raise IsADirectoryError(0, "it is a folder")
                if _is_replaceable(target):
                    staged.append((_staged(undo, target, content), target))
        for source, target in staged:
            with _told(target):
                source.replace(target)
    for path, content in contents.items():
        if not _is_replaceable(path):
            with _told(path):
                path.write_bytes(content)


def _is_replaceable(path: Path) -> bool:
    """A terminal or a pipe, /dev/stdout say, can only be written to."""
    return path.is_file() or not path.exists()


def _staged(undo: contextlib.ExitStack, target: Path, content: bytes) -> Path:
    """The content beside the target: what could fail has failed before anything is replaced."""
    handle, name = tempfile.mkstemp(prefix=".", suffix=".unfinished", dir=target.parent)
    undo.callback(Path(name).unlink, missing_ok=True)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    Path(name).chmod(target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~mask())
    return Path(name)


@contextlib.contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as wrong:
        why = "there is no such folder" if isinstance(wrong, FileNotFoundError) else wrong.strerror or str(wrong)
        raise click.ClickException(f"nothing was written: {path}: {why}") from None


def mask() -> int:
    """What the user takes away from the rights of new files."""
    found = os.umask(0)
    os.umask(found)
    return found
