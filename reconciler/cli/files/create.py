"""Writes several files into a folder, all of them or none."""

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from reconciler.cli.files.replace import mask
from reconciler.cli.files.staged import Staged
from reconciler.model.bundle import Text


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
