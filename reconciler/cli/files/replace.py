"""Writes files that a person named, whatever stands there: each whole, and none of them where one can't be written."""

import contextlib
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from reconciler.cli.files.staged import Staged

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
