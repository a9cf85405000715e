"""A walk over a tree of files, on disk or in Git alike: what in it is a policy or a template, and what is in the way.

Links are followed as `find -L` does: a link stands for what it points to, under its own name. A folder is never entered
from within itself, and every name counts against a bound, so a walk ends whatever the links do.
"""

from typing import Literal, Protocol

import msgspec

from reconciler.model.problem import Problem
from reconciler.sources.bounds import SourceBounds
from reconciler.sources.fault import SourceFault
from reconciler.sources.file_names import (
    LONGEST_NAME,
    TEMPLATES_FOLDER,
    is_hidden,
    is_policy,
    is_template,
    name_fault,
    shown,
)

Kind = Literal["file", "folder", "special", "submodule", "omitted", "outside", "broken"]
Role = Literal["policy", "template"]

TOO_LARGE_REMEDY = "split it, or move it out of the policies"
LINK_REMEDY = "put the file itself there, or name the folder it lies in as a further path"


class ResolvedPath(msgspec.Struct, frozen=True):
    """What a name stands for, links followed."""

    kind: Kind
    real: str = ""  # where it is, without links
    size_bytes: int = 0
    stamp: tuple[int | str, ...] = ()  # differs when the content does
    detail: str = ""  # where a link points, or why nothing can be told


class Tree(Protocol):
    """The two things a walk asks of a tree."""

    def names(self, folder: str, most: int) -> list[str]:
        """Names in a real folder, no more than asked for; raises OSError with the reason where it can't be read."""
        ...

    def look(self, folder: str, name: str) -> ResolvedPath:
        """What a name in a real folder stands for."""
        ...


class Root(msgspec.Struct, frozen=True):
    """Where a walk begins, how problems call that, and how deep it is below what the user named."""

    role: Role
    real: str
    shown: str
    depth: int = 0


class BundleFile(msgspec.Struct, frozen=True):
    """A file to read: `path` is what the bundle calls it, `file` what problems call it."""

    role: Role
    path: str
    file: str
    node: ResolvedPath


class Listing(msgspec.Struct, frozen=True):
    """All there is to read, and all that is wrong with it; two that are equal saw the same tree."""

    files: tuple[BundleFile, ...]
    problems: tuple[Problem, ...]
    folders: tuple[str, ...]


class TreeWalk:
    """Owner of what one walk has found so far."""

    def __init__(self, tree: Tree, bounds: SourceBounds) -> None:
        self._tree = tree
        self._bounds = bounds
        self._files: list[BundleFile] = []
        self._problems: list[Problem] = []
        self._folders: list[str] = []
        self._template_folders: set[str] = set()
        self._looked: dict[tuple[str, str], ResolvedPath] = {}  # links can lead to the same name many times
        self._entries = 0
        self._called = ""  # what a problem of the whole stands against: the first root

    def add(self, *problems: Problem) -> None:
        self._problems += problems

    def below(self, root: Root) -> None:
        """Takes in all that lies below a folder."""
        self._called = self._called or root.shown
        self._root(root, frozenset())

    def single(self, path: str, node: ResolvedPath) -> None:
        """Takes in one file that was named itself."""
        self._called = self._called or path
        self._files.append(BundleFile("policy", path, path, node))

    def listing(self) -> Listing:
        if self._entries > self._bounds.entries:
            return Listing((), tuple(self._problems), tuple(self._folders))
        # Roots may overlap; what both found under one name is one file.
        files = {(one.role, one.path, one.file): one for one in self._files}
        problems = dict.fromkeys(self._problems)
        listing = Listing(tuple(files.values()), tuple(problems), tuple(self._folders))
        return within(listing, self._bounds, self._called or ".")

    def _root(self, root: Root, above: frozenset[str]) -> None:
        # The templates beside one root may be those in another.
        if self._entries > self._bounds.entries or (root.role == "template" and root.real in self._template_folders):
            return
        if root.role == "template":
            self._template_folders.add(root.real)
        self._folder(root, root.real, (), above | {root.real})

    def _folder(self, root: Root, real: str, inner: tuple[str, ...], above: frozenset[str]) -> None:
        file = shown(joined(root.shown, *inner)) or "."
        self._folders.append(real)
        try:
            names = self._tree.names(real, self._bounds.entries + 1 - self._entries)
        except OSError as error:
            self.add(obstacle(file, ResolvedPath("broken", detail=error.strerror or str(error))))
            return
        self._entries += len(names)
        if self._entries > self._bounds.entries:
            self._too_many_names(root)
            return
        for name in sorted(names):
            if not is_hidden(name):
                self._name(root, real, (*inner, name), above)
            if self._entries > self._bounds.entries:
                return

    def _too_many_names(self, root: Root) -> None:
        sentence = f"holds more than {self._bounds.entries:,} names, folders within and what links lead to included"
        remedy = "name a folder that holds only policies, and let no links multiply it"
        self.add(SourceFault.TOO_MUCH.problem(root.shown or ".", sentence, remedy))

    def _name(self, root: Root, folder: str, inner: tuple[str, ...], above: frozenset[str]) -> None:
        name = inner[-1]
        node = self._looked.get((folder, name)) or self._tree.look(folder, name)
        self._looked[folder, name] = node
        if not _matters(root.role, name, node):
            return
        if fault := name_fault(name):
            called = shown(joined(root.shown, *inner[:-1], name[:LONGEST_NAME]))
            remedy = "rename it: short, UTF-8, without control characters"
            self.add(SourceFault.BAD_NAME.problem(called, f"the name {fault}", remedy))
            return
        file = joined(root.shown, *inner)
        if node.kind == "folder":
            self._inner_folder(root, node, inner, above)
        elif node.kind == "file":
            self._files.append(BundleFile(root.role, self._path(root, inner), file, node))
        else:
            self.add(obstacle(file, node))

    def _inner_folder(self, root: Root, node: ResolvedPath, inner: tuple[str, ...], above: frozenset[str]) -> None:
        file = joined(root.shown, *inner)
        depth = root.depth + len(inner)
        if depth > self._bounds.depth:
            sentence = f"is {depth} folders deep, and a bundle may be {self._bounds.depth} deep"
            self.add(SourceFault.TOO_MUCH.problem(file, sentence, "move the policies up"))
        elif node.real in above:
            return
        elif inner[-1] == TEMPLATES_FOLDER and root.role == "policy":
            self._root(Root("template", node.real, file, depth), above)
        else:
            self._folder(root, node.real, inner, above | {node.real})

    def _path(self, root: Root, inner: tuple[str, ...]) -> str:
        """Policies are called as the user would call them, templates as policies do."""
        return joined(root.shown, *inner) if root.role == "policy" else "/".join(inner)


def obstacle(file: str, node: ResolvedPath) -> Problem:
    """What to say of a name that is neither a file nor a folder."""
    detail = shown(node.detail)
    if node.kind == "outside":
        sentence = f"is a link to {detail}, outside of what is read"
        return SourceFault.LINK_LEAVES.problem(file, sentence, LINK_REMEDY)
    if node.kind == "submodule":
        sentence = "is a submodule, and what it holds is in another repository"
        return SourceFault.KEPT_ELSEWHERE.problem(file, sentence, "commit the policies themselves")
    if node.kind == "omitted":
        return SourceFault.TOO_MUCH.problem(file, f"has {detail}", TOO_LARGE_REMEDY)
    if node.kind == "special":
        return SourceFault.NOT_A_FILE.problem(
            file, f"is {detail}, not a file", "put a regular file there, or take it away"
        )
    return SourceFault.UNREADABLE.problem(file, f"cannot be read: {detail}", "make it readable, or take it away")


def within(listing: Listing, bounds: SourceBounds, called: str) -> Listing:
    """The listing without what is too large; beyond a bound of the whole, nothing of it is left to read."""
    problems = list(listing.problems)
    files = []
    for one in listing.files:
        if one.node.size_bytes <= bounds.file_bytes:
            files.append(one)
            continue
        sentence = f"has {one.node.size_bytes:,} bytes, and a file may have {bounds.file_bytes:,}"
        problems.append(SourceFault.TOO_MUCH.problem(one.file, sentence, TOO_LARGE_REMEDY))
    total_bytes = sum(one.node.size_bytes for one in files)
    remedy = "name a folder that holds only policies"
    if len(files) > bounds.files:
        sentence = f"holds {len(files):,} files, and a bundle may have {bounds.files:,}"
        problems.append(SourceFault.TOO_MUCH.problem(called, sentence, remedy))
    if total_bytes > bounds.total_bytes:
        sentence = f"holds {total_bytes:,} bytes in all, and a bundle may have {bounds.total_bytes:,}"
        problems.append(SourceFault.TOO_MUCH.problem(called, sentence, remedy))
    if len(files) > bounds.files or total_bytes > bounds.total_bytes:
        files = []
    return Listing(tuple(files), tuple(problems), listing.folders)


def joined(*parts: str) -> str:
    """A path with '/' between its parts; empty parts leave no trace."""
    named = [part for part in parts if part]
    return "/".join([part.rstrip("/") if part != "/" else "" for part in named[:-1]] + named[-1:])


def _matters(role: Role, name: str, node: ResolvedPath) -> bool:
    """Whether it could hold policies. What lies outside is not even looked at, so it may be a folder if named so."""
    if node.kind in {"folder", "submodule"} or (node.kind in {"outside", "broken"} and "." not in name):
        return True
    return is_policy(name) if role == "policy" else is_template(name)
