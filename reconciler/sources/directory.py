"""Policies and templates from folders and files on disk, as they were at one moment."""

import errno
import hashlib
import os
import stat
from collections.abc import Sequence
from itertools import islice
from pathlib import Path, PurePath

import msgspec

from reconciler.model.bundle import Bundle, Text
from reconciler.model.problem import Problem
from reconciler.sources.walk import (
    TEMPLATES_FOLDER,
    BundleFile,
    Listing,
    ResolvedPath,
    Root,
    SourceBounds,
    SourceFault,
    TreeWalk,
    obstacle,
    shown,
)

# --- Folders on disk as a tree to walk, and how a file in them is opened so that nothing can lead the reader elsewhere.

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


ATTEMPTS = 5


class Start(msgspec.Struct, frozen=True):
    """A path as the user gave it, and what is there."""

    given: Path
    node: ResolvedPath

    @property
    def shown(self) -> str:
        return "" if self.given == Path() else shown(self.given.as_posix())

    @property
    def beside(self) -> Path:
        """The folder that this one lies in, by the user's words where they name one."""
        return self.given.parent if self.given.name not in {"", ".."} else self.given / ".."


def read_directory(root: Path | Sequence[Path], bounds: SourceBounds) -> Bundle:
    """All policies below the roots, and all templates of the folders `templates` among and beside them.

    A root that is a file is that file alone. A file that changed while it was read is read again with all others.
    """
    roots = [root] if isinstance(root, Path) else list(root)
    for _ in range(ATTEMPTS):
        bundle = _read_once(roots, bounds)
        if bundle is not None:
            return bundle
    file = Start(roots[0], ResolvedPath("folder")).shown or "."
    sentence = f"changed during each of {ATTEMPTS} attempts to read it"
    remedy = "write the files elsewhere, then swap them in by one rename or one link"
    return bundled("", [], [SourceFault.CHANGING.problem(file, sentence, remedy)])


def list_directory(roots: Sequence[Path], bounds: SourceBounds) -> tuple[FileTree, Listing]:
    """All there is to read below the roots, without reading it."""
    starts = [Start(given, _at(given)) for given in roots]
    folders = [start for start in starts if start.node.kind == "folder"]
    beside = [templates for start in folders if (templates := _templates_beside(start))]
    readable = {"folder", "file"}
    tree = FileTree(tuple(start.node.real for start in (*starts, *beside) if start.node.kind in readable))
    walk = TreeWalk(tree, bounds)
    for start in starts:
        if start.node.kind == "folder":
            walk.below(Root("policy", start.node.real, start.shown))
        elif start.node.kind == "file":
            walk.single(start.shown, start.node)
        elif start.node.kind == "special":
            walk.add(obstacle(start.shown, start.node))
        else:
            sentence = f"cannot be read: {start.node.detail}"
            walk.add(SourceFault.UNREADABLE.problem(start.shown, sentence, "name a folder or a file that is there"))
    for templates in beside:
        if templates.node.kind == "folder":
            walk.below(Root("template", templates.node.real, templates.shown))
        elif templates.node.kind in {"outside", "broken"}:
            walk.add(obstacle(templates.shown, templates.node))
    return tree, walk.listing()


def _read_once(roots: Sequence[Path], bounds: SourceBounds) -> Bundle | None:
    """The bundle, or None if anything moved meanwhile."""
    tree, listing = list_directory(roots, bounds)
    read: list[Read] = []
    problems: list[Problem] = []
    for file in listing.files:
        try:
            read.append((file, tree.read(file)))
        except Changed:
            return None
        except OSError as error:
            problems.append(obstacle(file.file, ResolvedPath("broken", detail=error.strerror or str(error))))
    _, afterwards = list_directory(roots, bounds)
    return bundled("", read, [*listing.problems, *problems]) if afterwards == listing else None


def _at(given: Path) -> ResolvedPath:
    """What the user named; a link there may lead anywhere, since the user named it."""
    try:
        return node_at(os.path.realpath(given, strict=True))
    except OSError as error:
        return ResolvedPath("broken", detail=error.strerror or str(error))
    except ValueError as error:  # a NUL in the path
        return ResolvedPath("broken", detail=str(error))


def _templates_beside(start: Start) -> Start | None:
    """The folder beside a root. It may be a link, but not out of the folder that holds both."""
    real = os.path.realpath(start.beside)
    if not os.path.lexists(Path(real, TEMPLATES_FOLDER)):
        return None
    return Start(start.beside / TEMPLATES_FOLDER, FileTree((real,)).look(real, TEMPLATES_FOLDER))


# --- How the texts that were read become a Bundle: sorted, one template a name, and named by what they hold.

Read = tuple[BundleFile, bytes]


def bundled(revision: str, read: Sequence[Read], problems: Sequence[Problem]) -> Bundle:
    """The bundle of a revision; without a name for it, its content names it."""
    policies = sorted((Text(file.path, content) for file, content in read if file.role == "policy"), key=_path)
    templates, doubles = _one_a_name([(file, content) for file, content in read if file.role == "template"])
    return Bundle(
        revision or f"dir:{_digest(policies, templates)}",
        tuple(policies),
        tuple(templates),
        tuple(sorted({*problems, *doubles})),
    )


def _one_a_name(read: Sequence[Read]) -> tuple[list[Text], list[Problem]]:
    """Templates of one name are one where they say the same; else nobody could tell which is meant."""
    first: dict[str, Read] = {}
    problems = []
    for file, content in sorted(read, key=lambda pair: (pair[0].path, pair[0].file)):
        known, text = first.setdefault(file.path, (file, content))
        if text != content:
            sentence = f"is the template {file.path}, and so is {known.file}, which differs"
            problems.append(SourceFault.TWO_OF_ONE_NAME.problem(file.file, sentence, "rename one of them"))
    texts = [Text(path, content, bundle_file.file) for path, (bundle_file, content) in sorted(first.items())]
    return texts, problems


def _digest(policies: Sequence[Text], templates: Sequence[Text]) -> str:
    digest = hashlib.sha256()
    for role, texts in (("policy", policies), ("template", templates)):
        for text in texts:
            # Lengths in front: no two lists of texts come to the same bytes.
            path = text.path.encode("utf-8", "surrogateescape")
            digest.update(f"{role} {len(path)} {len(text.content)}\n".encode() + path + text.content)
    return digest.hexdigest()


def _path(text: Text) -> str:
    return text.path
