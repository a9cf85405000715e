"""Walks a tree of files, on disk or in Git: finds policies, templates, and obstacles.

Links are followed like in `find -L`: a link stands for its target, under its own name. A folder is never entered
from within itself, and every name counts against a limit, so a walk always ends.
"""

import unicodedata
from enum import Enum
from typing import Literal, Protocol

import msgspec

from reconciler.model.problem import Problem

# --- Names of policies, names of templates, and names that cannot be displayed.

POLICY_SUFFIXES = (".yaml", ".yml", ".json")
# Kustomize's own files are beside the objects that they list, and contain none.
KUSTOMIZATIONS = frozenset({"kustomization.yaml", "kustomization.yml"})
TEMPLATE_SUFFIX = ".j2"
TEMPLATES_FOLDER = "templates"

# Git has no limit, file systems do.
LONGEST_NAME = 255

# They reorder displayed text, so that a path reads as another one.
REORDERING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def name_fault(name: str) -> str:
    """Why the name cannot be displayed; empty if it can."""
    if len(name) > LONGEST_NAME:
        return f"is longer than {LONGEST_NAME} letters"
    if any(unicodedata.category(letter) == "Cs" for letter in name):
        return "is not UTF-8"
    if any(_is_control(letter) for letter in name):
        return "contains a control character"
    return ""


def shown(text: str) -> str:
    r"""The text with control characters and undecodable bytes written as \x1b: one line, whatever it held."""
    return "".join(_escaped(letter) if _is_control(letter) else letter for letter in text)


def _is_control(letter: str) -> bool:
    return unicodedata.category(letter) in {"Cc", "Cs", "Zl", "Zp"} or letter in REORDERING


def _escaped(letter: str) -> str:
    number = ord(letter)
    if 0xDC80 <= number <= 0xDCFF:  # Python's encoding of an undecodable byte
        number -= 0xDC00
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"


# --- Limits of a source: reading always ends, whatever a folder or a repository contains.

ENTRY_BYTES = 512  # average size of a line in a listing


class SourceBounds(msgspec.Struct, frozen=True):
    """Limits. Exceeding one is a Problem; nothing is truncated silently."""

    files: int = 2_000  # policies and templates together
    file_bytes: int = 1 << 20
    total_bytes: int = 32 << 20
    depth: int = 16  # folders below the named one
    entries: int = 50_000  # names, ignored ones included
    deadline_seconds: float = 60.0  # for all git processes of one revision
    history_seconds: float = 5.0  # to find the last changes of the lines of one question
    disk_bytes: int = 512 << 20  # of a fetched revision, while git writes it
    memory_bytes: int = 1 << 30  # of each git process, where the kernel can limit it

    @property
    def listing_bytes(self) -> int:
        """Size limit of a tree's listing: its entries, at their average size."""
        return self.entries * ENTRY_BYTES


Kind = Literal["file", "folder", "special", "submodule", "omitted", "outside", "broken"]
Role = Literal["policy", "template"]

TOO_LARGE_REMEDY = "split the file, or move it out of the policies"
LINK_REMEDY = "replace the link with the file, or name the target's folder as a further path"


class ResolvedPath(msgspec.Struct, frozen=True):
    """What a name refers to, links followed."""

    kind: Kind
    real: str = ""  # the path without links
    size_bytes: int = 0
    stamp: tuple[int | str, ...] = ()  # changes with the content
    detail: str = ""  # target of a link, or an error


class Tree(Protocol):
    def names(self, folder: str, most: int) -> list[str]:
        """Names in a real folder, at most `most`. Raises OSError if the folder cannot be read."""

    def look(self, folder: str, name: str) -> ResolvedPath:
        """What a name in a real folder refers to."""


class Root(msgspec.Struct, frozen=True):
    """Start of a walk, its name in problems, and its depth below the named folder."""

    role: Role
    real: str
    shown: str
    depth: int = 0


class BundleFile(msgspec.Struct, frozen=True):
    """A file to read: `path` is its name in the bundle, `file` its name in problems."""

    role: Role
    path: str
    file: str
    node: ResolvedPath


class Listing(msgspec.Struct, frozen=True):
    """All files to read, and all problems; equal listings saw the same tree."""

    files: tuple[BundleFile, ...]
    problems: tuple[Problem, ...]
    folders: tuple[str, ...]


class TreeWalk:
    def __init__(self, tree: Tree, bounds: SourceBounds) -> None:
        self._tree = tree
        self._bounds = bounds
        self._files: list[BundleFile] = []
        self._problems: list[Problem] = []
        self._folders: list[str] = []
        self._template_folders: set[str] = set()
        self._looked: dict[tuple[str, str], ResolvedPath] = {}  # links can lead to the same name many times
        self._entries = 0
        self._called = ""  # the first root, named by problems of the whole walk

    def add(self, *problems: Problem) -> None:
        self._problems += problems

    def below(self, root: Root) -> None:
        """Adds everything below a folder."""
        self._called = self._called or root.shown
        self._root(root, frozenset())

    def single(self, path: str, node: ResolvedPath) -> None:
        """Adds a file that was named itself."""
        self._called = self._called or path
        self._files.append(BundleFile("policy", path, path, node))

    def listing(self) -> Listing:
        if self._entries > self._bounds.entries:
            return Listing((), tuple(self._problems), tuple(self._folders))
        # Roots may overlap; a file found twice under one name counts once.
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
            if not name.startswith("."):
                self._name(root, real, (*inner, name), above)
            if self._entries > self._bounds.entries:
                return

    def _too_many_names(self, root: Root) -> None:
        sentence = f"the path contains more than {self._bounds.entries:,} names, including subfolders and link targets"
        remedy = "name a folder with only policies, without links that multiply them"
        self.add(SourceFault.TOO_MUCH.problem(root.shown or ".", sentence, remedy))

    def _name(self, root: Root, folder: str, inner: tuple[str, ...], above: frozenset[str]) -> None:
        name = inner[-1]
        node = self._looked.get((folder, name)) or self._tree.look(folder, name)
        self._looked[folder, name] = node
        if not _matters(root.role, name, node):
            return
        if fault := name_fault(name):
            called = shown(joined(root.shown, *inner[:-1], name[:LONGEST_NAME]))
            remedy = "choose a short name in UTF-8, without control characters"
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
            sentence = f"the path is {depth} folders deep; the limit is {self._bounds.depth}"
            self.add(SourceFault.TOO_MUCH.problem(file, sentence, "move the policies up"))
        elif node.real in above:
            return
        elif inner[-1] == TEMPLATES_FOLDER and root.role == "policy":
            self._root(Root("template", node.real, file, depth), above)
        else:
            self._folder(root, node.real, inner, above | {node.real})

    def _path(self, root: Root, inner: tuple[str, ...]) -> str:
        """Policies have the user's path, templates the same as policies."""
        return joined(root.shown, *inner) if root.role == "policy" else "/".join(inner)


def obstacle(file: str, node: ResolvedPath) -> Problem:
    """The problem of a name that is neither a file nor a folder."""
    detail = shown(node.detail)
    if node.kind == "outside":
        sentence = f"the path is a link to {detail}, outside the folders that are read"
        return SourceFault.LINK_LEAVES.problem(file, sentence, LINK_REMEDY)
    if node.kind == "submodule":
        sentence = "is a submodule; its content is in another repository"
        return SourceFault.KEPT_ELSEWHERE.problem(file, sentence, "commit the policies themselves")
    if node.kind == "omitted":
        return SourceFault.TOO_MUCH.problem(file, f"has {detail}", TOO_LARGE_REMEDY)
    if node.kind == "special":
        return SourceFault.NOT_A_FILE.problem(
            file, f"is {detail}, not a file", "replace it with a regular file, or delete it"
        )
    return SourceFault.UNREADABLE.problem(file, f"the path cannot be read: {detail}", "make it readable, or delete it")


def within(listing: Listing, bounds: SourceBounds, called: str) -> Listing:
    """The listing without files above the size limit; empty if a limit of the whole is exceeded."""
    problems = list(listing.problems)
    files = []
    for one in listing.files:
        if one.node.size_bytes <= bounds.file_bytes:
            files.append(one)
            continue
        sentence = f"the file has {one.node.size_bytes:,} bytes; the limit per file is {bounds.file_bytes:,}"
        problems.append(SourceFault.TOO_MUCH.problem(one.file, sentence, TOO_LARGE_REMEDY))
    total_bytes = sum(one.node.size_bytes for one in files)
    remedy = "name a folder with only policies"
    if len(files) > bounds.files:
        sentence = f"the path contains {len(files):,} files; the limit is {bounds.files:,}"
        problems.append(SourceFault.TOO_MUCH.problem(called, sentence, remedy))
    if total_bytes > bounds.total_bytes:
        sentence = f"the path contains {total_bytes:,} bytes in total; the limit is {bounds.total_bytes:,}"
        problems.append(SourceFault.TOO_MUCH.problem(called, sentence, remedy))
    if len(files) > bounds.files or total_bytes > bounds.total_bytes:
        files = []
    return Listing(tuple(files), tuple(problems), listing.folders)


def joined(*parts: str) -> str:
    """A path with '/' between its parts; empty parts are skipped."""
    named = [part for part in parts if part]
    return "/".join([part.rstrip("/") if part != "/" else "" for part in named[:-1]] + named[-1:])


def _matters(role: Role, name: str, node: ResolvedPath) -> bool:
    """Whether the name could contain policies. Nodes outside are not inspected, so those may be folders."""
    if node.kind in {"folder", "submodule"} or (node.kind in {"outside", "broken"} and "." not in name):
        return True
    suffixes = POLICY_SUFFIXES if role == "policy" else TEMPLATE_SUFFIX
    return name.lower().endswith(suffixes) and not (role == "policy" and name in KUSTOMIZATIONS)


# --- Faults of reading policies: code, and their Problem.


class SourceFault(Enum):
    """Code of a fault; its title is in `policy.words`."""

    UNREADABLE = "RC501"
    LINK_LEAVES = "RC502"
    NOT_A_FILE = "RC503"
    TOO_MUCH = "RC504"
    BAD_NAME = "RC505"
    CHANGING = "RC506"
    TWO_OF_ONE_NAME = "RC507"
    NOTHING_GOOD_YET = "RC508"
    BROKE_OFF = "RC509"
    BAD_ADDRESS = "RC511"
    BAD_REVISION = "RC512"
    KEPT_ELSEWHERE = "RC513"
    TOO_LONG = "RC514"
    GIT_FAILED = "RC515"

    def problem(self, file: str, sentence: str, remedy: str) -> Problem:
        """A Problem of the whole file."""
        return Problem(file, 0, 0, self.value, sentence, remedy)


class Refused(Exception):
    """Ends the read of a source because of one fault of the whole."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.sentence)
        self.problem = problem
