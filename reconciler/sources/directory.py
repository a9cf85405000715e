"""Policies and templates from folders and files on disk, as they were at one moment."""

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from reconciler.model.bundle import Bundle
from reconciler.model.problem import Problem
from reconciler.sources.bounds import SourceBounds
from reconciler.sources.bundle_builder import Read, bundled
from reconciler.sources.fault import SourceFault
from reconciler.sources.file_names import TEMPLATES_FOLDER, shown
from reconciler.sources.file_tree import Changed, FileTree, node_at
from reconciler.sources.walk import Listing, ResolvedPath, Root, TreeWalk, obstacle

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
