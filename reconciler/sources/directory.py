"""Reads policies and templates from folders and files on disk, as one consistent state."""

import errno
import hashlib
import os
import stat
from collections.abc import Sequence
from itertools import islice
from operator import attrgetter
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

# --- Folders on disk as a tree to walk, with safe opening of files.

CALLED = (
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)

# Do not take over a terminal, wait for a FIFO, follow a link, or pass the descriptor to children.
OPENING = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY

# The file is deleted, or is a link, FIFO, socket or other file now.
MOVED = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO})


class Changed(Exception):
    """The file is not the listed one any more."""


class FileTree:
    """Content of the areas, given by their real paths; link targets elsewhere are outside."""

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
        """The listed content. Raises Changed if the file changed since, OSError if it cannot be read."""
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
        """A broken link may still lead out of the areas."""
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
    """The node at a path without links."""
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
    """Opens each path component without following links: a link created after the listing cannot leave the area."""
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
    given: Path
    node: ResolvedPath

    @property
    def shown(self) -> str:
        return "" if self.given == Path() else shown(self.given.as_posix())

    @property
    def beside(self) -> Path:
        """The parent folder, with the user's spelling if it names one."""
        return self.given.parent if self.given.name not in {"", ".."} else self.given / ".."


def read_directory(root: Path | Sequence[Path], bounds: SourceBounds) -> Bundle:
    """All policies below the roots, and all templates of the folders `templates` among and beside them.

    A root may be a single file. If a file changes during the read, all files are read again.
    """
    roots = [root] if isinstance(root, Path) else list(root)
    for _ in range(ATTEMPTS):
        bundle = _read_once(roots, bounds)
        if bundle is not None:
            return bundle
    file = Start(roots[0], ResolvedPath("folder")).shown or "."
    sentence = f"the content changed during each of {ATTEMPTS} attempts to read it"
    remedy = "write the files elsewhere, then move them in with one rename or one link"
    return bundled("", [], [SourceFault.CHANGING.problem(file, sentence, remedy)])


def list_directory(roots: Sequence[Path], bounds: SourceBounds) -> tuple[FileTree, Listing]:
    """Lists all files below the roots, without reading them."""
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
            sentence = f"the path cannot be read: {start.node.detail}"
            walk.add(SourceFault.UNREADABLE.problem(start.shown, sentence, "name an existing folder or file"))
    for templates in beside:
        if templates.node.kind == "folder":
            walk.below(Root("template", templates.node.real, templates.shown))
        elif templates.node.kind in {"outside", "broken"}:
            walk.add(obstacle(templates.shown, templates.node))
    return tree, walk.listing()


def _read_once(roots: Sequence[Path], bounds: SourceBounds) -> Bundle | None:
    """The bundle, or None if a file changed meanwhile."""
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
    """The node of a path named by the user. A link may lead anywhere here, because the user named it."""
    try:
        return node_at(os.path.realpath(given, strict=True))
    except OSError as error:
        return ResolvedPath("broken", detail=error.strerror or str(error))
    except ValueError as error:  # a NUL in the path
        return ResolvedPath("broken", detail=str(error))


def _templates_beside(start: Start) -> Start | None:
    """The templates folder beside a root. It may be a link, but only within their parent folder."""
    real = os.path.realpath(start.beside)
    if not os.path.lexists(Path(real, TEMPLATES_FOLDER)):
        return None
    return Start(start.beside / TEMPLATES_FOLDER, FileTree((real,)).look(real, TEMPLATES_FOLDER))


# --- A Bundle from the texts: sorted, with unique template names, and a revision from their content.

Read = tuple[BundleFile, bytes]


def bundled(revision: str, read: Sequence[Read], problems: Sequence[Problem]) -> Bundle:
    """The bundle of a revision; without a given revision, the content determines it."""
    texts = (Text(file.path, content) for file, content in read if file.role == "policy")
    policies = sorted(texts, key=attrgetter("path"))
    templates, doubles = _one_a_name([(file, content) for file, content in read if file.role == "template"])
    return Bundle(
        revision or f"dir:{_digest(policies, templates)}",
        tuple(policies),
        tuple(templates),
        tuple(sorted({*problems, *doubles})),
    )


def _one_a_name(read: Sequence[Read]) -> tuple[list[Text], list[Problem]]:
    """Merges equal templates with the same name; different ones are ambiguous."""
    first: dict[str, Read] = {}
    problems = []
    for file, content in sorted(read, key=lambda pair: (pair[0].path, pair[0].file)):
        known, text = first.setdefault(file.path, (file, content))
        if text != content:
            sentence = f"the template {file.path} differs from {known.file}"
            problems.append(SourceFault.TWO_OF_ONE_NAME.problem(file.file, sentence, "rename one of them"))
    texts = [Text(path, content, bundle_file.file) for path, (bundle_file, content) in sorted(first.items())]
    return texts, problems


def _digest(policies: Sequence[Text], templates: Sequence[Text]) -> str:
    digest = hashlib.sha256()
    for role, texts in (("policy", policies), ("template", templates)):
        for text in texts:
            # Length prefixes: different lists of texts never give the same bytes.
            path = text.path.encode("utf-8", "surrogateescape")
            digest.update(f"{role} {len(path)} {len(text.content)}\n".encode() + path + text.content)
    return digest.hexdigest()
