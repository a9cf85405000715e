"""Which repositories on disk may be read in this process: those of the plain layout, with nothing that leads elsewhere.

GitPython and GitDB follow includes of a configuration, alternates, links, `commondir` and `.git` files wherever they
point, wait for a FIFO, and read files of any size into memory. So all of that is looked at first, and whatever is not
plain is left to the hardened process (`process`), which is bounded from outside.
"""

import os
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

LARGEST_SETTINGS_BYTES = 1 << 16
LARGEST_REF_BYTES = 1 << 12
LARGEST_LIST_BYTES = 1 << 24  # packed-refs, shallow
LARGEST_INDEX_BYTES = 1 << 28
MOST_PACKS = 500
MOST_NAMES = 8 * MOST_PACKS  # beside the packs lie their indexes, and more

_ABSENT = (
    ".git", "commondir", "gitdir", "info/grafts", "objects/info/alternates", "objects/info/http-alternates", "reftable",
)  # fmt: skip
# GitPython reads these at any time, and would read another repository.
_MISLEADING = ("GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
# Other files with settings, other formats of objects and references, objects that are kept elsewhere.
_SETTINGS_ELSEWHERE = (b"include", b"extensions", b"partialclone", b"promisor")


class Unfit(Exception):
    """The repository is not read in this process, for a reason that nobody but an engineer asks about."""


def check_layout(git_dir: str, is_ours: bool, environment: Mapping[str, str] = os.environ) -> None:
    """Raises Unfit unless the repository is of the plain layout. One that is ours may lack blobs."""
    folder = Path(git_dir)
    if any(name in environment for name in _MISLEADING):
        raise Unfit("the environment names another repository")
    for name in ("", "objects", "refs"):
        if _mode(folder / name) != stat.S_IFDIR:
            raise Unfit(f"{name or 'the repository'} is no folder")
    for name in _ABSENT:
        if os.path.lexists(folder / name):
            raise Unfit(f"it has {name}")
    check_file(folder / "HEAD", LARGEST_REF_BYTES)
    check_file(folder / "config", LARGEST_SETTINGS_BYTES)
    for name in ("packed-refs", "shallow"):
        if os.path.lexists(folder / name):
            check_file(folder / name, LARGEST_LIST_BYTES)
    settings = (folder / "config").read_bytes().lower()
    if any(word in settings for word in _SETTINGS_ELSEWHERE):
        raise Unfit("its settings are kept elsewhere, or its objects are")
    _check_packs(folder / "objects" / "pack", is_ours)


def check_file(path: Path, most_bytes: int) -> None:
    """Raises Unfit unless there is a regular file of at most so many bytes."""
    try:
        status = path.lstat()
    except OSError as error:
        raise Unfit(f"there is no {path.name}") from error
    if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
        raise Unfit(f"{path.name} is no small file")


def check_below(folder: Path, parts: tuple[str, ...], most_bytes: int) -> None:
    """Raises Unfit unless a path leads through folders to a small file, or to nothing."""
    for number, part in enumerate(parts, start=1):
        folder /= part
        mode = _mode(folder)
        if mode == stat.S_IFREG and number == len(parts):
            check_file(folder, most_bytes)
        elif mode not in {stat.S_IFDIR, 0}:
            raise Unfit(f"{part} is no folder")


def _check_packs(folder: Path, is_ours: bool) -> None:
    if not os.path.lexists(folder):
        return
    if _mode(folder) != stat.S_IFDIR:
        raise Unfit("pack is no folder")
    names = [path.name for path in islice(folder.iterdir(), MOST_NAMES + 1)]
    if len(names) > MOST_NAMES or sum(name.endswith(".pack") for name in names) > MOST_PACKS:
        raise Unfit("it has very many packs")
    for name in names:
        if name.endswith(".promisor") and not is_ours:
            raise Unfit("it is a partial clone")
        if name.endswith(".pack") and _mode(folder / name) != stat.S_IFREG:
            raise Unfit("a pack is no file")
        if name.endswith(".idx"):
            check_file(folder / name, LARGEST_INDEX_BYTES)


def _mode(path: Path) -> int:
    """The kind of what is at a path, links not followed; 0 where nothing is."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0
