"""Commits of a repository on disk: objects, trees, history, and one commit as a bundle."""

import re
from functools import cached_property
from typing import Protocol

import msgspec

from reconciler.model.bundle import Bundle
from reconciler.model.problem import Problem
from reconciler.sources.directory import Read, bundled
from reconciler.sources.repository.address import Unfit
from reconciler.sources.repository.process import GitFailed, Run, Session, reading, run
from reconciler.sources.walk import (
    LINK_REMEDY,
    TEMPLATES_FOLDER,
    Listing,
    Refused,
    ResolvedPath,
    Root,
    SourceBounds,
    SourceFault,
    TreeWalk,
    joined,
    obstacle,
)

# --- A commit as a tree to walk: listed once, with the targets of its links; nothing is ever checked out.

# Names that one link may traverse, including further links: a longer path is a cycle, or an attack.
LONGEST_WAY = 4_096


class TreeEntry(msgspec.Struct, frozen=True):
    """A line of `git ls-tree -l`; without a size, the repository lacks the object, and `lacking` says why."""

    mode: str
    id: str
    size_bytes: int | None
    lacking: ResolvedPath

    @property
    def is_link(self) -> bool:
        return self.mode == "120000"

    @property
    def is_submodule(self) -> bool:
        return self.mode == "160000"


class Folder(dict[str, "Folder | TreeEntry"]):
    """Content of a folder, by name; nested, since full paths of all folders could be far longer than the listing."""


class Reached(msgspec.Struct, frozen=True):
    """Result of resolving a path with links: `target`, or nothing at `real`, or outside of the repository."""

    real: str
    target: Folder | TreeEntry | None
    leaves: bool = False


def entries_of(listing: bytes, lost: ResolvedPath) -> dict[str, TreeEntry]:
    """Entries of `git ls-tree -r -l -z` by path; bytes that are not UTF-8 are decoded like file names in Python."""
    entries = {}
    for line in listing.split(b"\0"):
        about, tab, path = line.partition(b"\t")
        if tab:
            mode, _, identity, size = about.decode().split()
            size_bytes = int(size) if size.isdigit() else None
            entries[path.decode("utf-8", "surrogateescape")] = TreeEntry(mode, identity, size_bytes, lost)
    return entries


class GitTree:
    """Content of the areas of a commit; the root of the repository is the empty path. Link targets are keyed by the
    link's id."""

    def __init__(self, entries: dict[str, TreeEntry], targets: dict[str, str], areas: tuple[str, ...]) -> None:
        self._targets = targets
        self._areas = areas
        self._root = Folder()
        for path, entry in entries.items():
            *above, name = path.split("/")
            folder = self._root
            for part in above:
                inner = folder.setdefault(part, Folder())
                if isinstance(inner, TreeEntry):  # a valid tree has no file and folder of the same name
                    break
                folder = inner
            else:
                folder[name] = entry

    def names(self, folder: str, most: int) -> list[str]:
        reached = self._reached(folder)
        return sorted(reached.target)[:most] if isinstance(reached.target, Folder) else []

    def look(self, folder: str, name: str) -> ResolvedPath:
        path = f"{folder}/{name}" if folder else name
        reached = self._reached(path)
        itself = self.entry(path)
        points_to = self._targets.get(itself.id, "") if itself else ""
        if reached.leaves or not self._is_inside(reached.real):
            return ResolvedPath("outside", detail=points_to)
        if isinstance(reached.target, Folder):
            return ResolvedPath("folder", reached.real)
        if reached.target is None:
            return ResolvedPath("broken", reached.real, detail=f"a link to {points_to}, which leads to nothing")
        if reached.target.is_submodule:
            return ResolvedPath("submodule", reached.real)
        if reached.target.size_bytes is None:
            return reached.target.lacking
        return ResolvedPath("file", reached.real, reached.target.size_bytes, (reached.target.id,))

    def entry(self, path: str) -> TreeEntry | None:
        """The entry at exactly this path, which may be a link."""
        above, _, name = path.rpartition("/")
        folder = self._reached(above).target
        found = folder.get(name) if isinstance(folder, Folder) else None
        return found if isinstance(found, TreeEntry) else None

    def holds(self, path: str) -> bool:
        """Whether there is a folder, file or link of this name."""
        return self._reached(path).target is not None or self.entry(path) is not None

    def _is_inside(self, real: str) -> bool:
        return any(not area or real == area or real.startswith(f"{area}/") for area in self._areas)

    def _reached(self, path: str) -> Reached:
        pending = path.split("/")[::-1]
        done: list[str] = []
        way: list[Folder | TreeEntry] = [self._root]
        for _ in range(LONGEST_WAY):
            if not pending:
                return Reached("/".join(done), way[-1])
            part = pending.pop()
            if part in {"", "."}:
                continue
            if part == "..":
                if not done:
                    return Reached("", None, leaves=True)
                done.pop()
                way.pop()
                continue
            here = way[-1]
            found = here.get(part) if isinstance(here, Folder) else None
            if found is None:
                return Reached("/".join([*done, part]), None)
            if isinstance(found, TreeEntry) and found.is_link:
                target = self._targets[found.id]
                if target.startswith("/"):
                    return Reached("", None, leaves=True)
                pending += target.split("/")[::-1]
            else:
                done.append(part)
                way.append(found)
        return Reached(path, None)


# --- Interface to read a commit, its entries, its blobs and its history; and its implementation with git.
#
# `in_process` implements it without a process. Here a few processes return many results at once: commits with their
# parents, and the blob of each commit at a path.

MOST_COMMITS = 5_000  # listed by git
LISTED_BYTES = 512  # of a commit and its parents, and of a requested object
_AUTHOR = re.compile(rb"author ([^\n<]{0,500})<([^\n>]{0,500})> (-?[0-9]{1,12}) ")


class CommitHeader(msgspec.Struct, frozen=True):
    author: str
    seconds: int
    subject: str


class Repository(msgspec.Struct, frozen=True):
    """The location of a repository for git; a repository of ours lacks blobs above the size limit."""

    git_dir: str
    is_ours: bool = False


class RepositoryObjects(Protocol):
    """Objects of a repository. Parts of its history that are unknown, or take too long, raise Unfit."""

    def entries(self, identity: str, areas: tuple[str, ...]) -> dict[str, TreeEntry]:
        """All files, links and submodules in some areas of a commit, by path; an empty area is the whole commit."""

    def contents(self, identities: list[str], most_bytes: int) -> dict[str, bytes]:
        """Blobs by id, in total at most `most_bytes`."""

    def parents(self, identity: str) -> tuple[str, ...]:
        """Parent ids of a commit. Raises Unfit if a shallow clone omits them."""

    def file_at(self, identity: str, path: str) -> str:
        """Id of the file at a path of a commit; empty if absent."""

    def written(self, identity: str) -> CommitHeader:
        """Author, time, and subject of a commit."""


class GitObjects:
    """Implementation with git in hardened processes. Owns their results for the ancestors of the commit `newest`."""

    def __init__(self, repository: Repository, session: Session, newest: str = "") -> None:
        self._newest = newest
        self._files: dict[str, dict[str, str]] = {}
        self._environment = reading(repository.git_dir)
        self._lost = lost_node(repository, session.bounds)
        self._session = session

    def entries(self, identity: str, areas: tuple[str, ...]) -> dict[str, TreeEntry]:
        paths = [area for area in areas if area]
        arguments = ("ls-tree", "-r", "-l", "-z", "--full-tree", "--end-of-options", identity, *paths)
        listing = run(Run(arguments, self._environment, most_bytes=self._session.bounds.listing_bytes), self._session)
        return entries_of(listing, self._lost)

    def contents(self, identities: list[str], most_bytes: int) -> dict[str, bytes]:
        stdin = "".join(f"{one}\n" for one in identities).encode()
        said = run(Run(("cat-file", "--batch"), self._environment, stdin, most_bytes), self._session)
        return _blobs(said, identities)

    def parents(self, identity: str) -> tuple[str, ...]:
        listed = self._parents.get(identity)
        if listed is None:
            raise Unfit("the commit was not listed")
        if not listed and b"\nparent " in self._head(identity):
            raise Unfit("a shallow clone left its parents out")
        return listed

    def file_at(self, identity: str, path: str) -> str:
        if path not in self._files:
            self._files[path] = self._files_at(path)
        return self._files[path].get(identity, "")

    def written(self, identity: str) -> CommitHeader:
        head, _, message = self._head(identity).partition(b"\n\n")
        author = _AUTHOR.search(head)
        if author is None:
            return CommitHeader("", 1 << 62, "")
        name = (author[1].strip() or author[2]).decode("utf-8", "replace")
        return CommitHeader(name, int(author[3]), message.strip().partition(b"\n")[0].decode("utf-8", "replace"))

    def _head(self, identity: str) -> bytes:
        return self._read(("cat-file", "commit", identity))

    @cached_property
    def _parents(self) -> dict[str, tuple[str, ...]]:
        arguments = ("rev-list", "--parents", f"--max-count={MOST_COMMITS}", "--end-of-options", self._newest)
        lines = self._read(arguments).decode("ascii", "replace").splitlines()
        return {commit: tuple(parents) for commit, *parents in (line.split() for line in lines)}

    def _files_at(self, path: str) -> dict[str, str]:
        stdin = "".join(f"{commit}:{path}\n" for commit in self._parents).encode("utf-8", "surrogateescape")
        said = self._read(("cat-file", "--batch-check=%(objectname) %(objecttype)"), stdin).splitlines()
        replies = (line.decode("ascii", "replace").split(" ") for line in said)
        pairs = zip(self._parents, replies, strict=True)
        return {commit: words[0] for commit, words in pairs if words[1:] == ["blob"]}

    def _read(self, arguments: tuple[str, ...], stdin: bytes = b"") -> bytes:
        try:
            most_bytes = MOST_COMMITS * LISTED_BYTES
            return run(Run(arguments, self._environment, stdin, most_bytes), self._session)
        except GitFailed as error:
            raise Unfit(str(error)) from error


def lost_node(repository: Repository, bounds: SourceBounds) -> ResolvedPath:
    """Placeholder for a missing object. In a repository of ours, the object exceeded the size limit; in any other, it
    is lost."""
    if repository.is_ours:
        return ResolvedPath("omitted", detail=f"more than the limit of {bounds.file_bytes:,} bytes per file")
    return ResolvedPath("broken", detail="the repository is damaged or a partial clone, and lacks the object")


def _blobs(said: bytes, wanted: list[str]) -> dict[str, bytes]:
    """Parses the output of `git cat-file --batch`: a line with id, kind and size, the content, and a newline."""
    contents: dict[str, bytes] = {}
    place = 0
    for one in wanted:
        end = said.find(b"\n", place)
        header = said[place:end].split(b" ")
        if len(header) != 3 or header[1] != b"blob":
            raise GitFailed(f"it lacks the content {one}")
        start, size = end + 1, int(header[2])
        contents[one] = said[start : start + size]
        place = start + size + 1
    return contents


LONGEST_LINK_BYTES = 1_024
HEADER_BYTES = 128  # before each blob
LFS = b"version https://git-lfs.github.com/spec/v1\n"
NOWHERE = "\0"  # no tree has such a name


class Commit:
    def __init__(self, objects: RepositoryObjects, identity: str, session: Session) -> None:
        self._objects = objects
        self._identity = identity
        self._session = session
        self._bounds = session.bounds

    def bundle(self, path: str) -> Bundle:
        """The policies below the path, which may be empty, and the templates in and beside it."""
        listing = self._listing(path)
        contents = self._contents({str(bundle_file.node.stamp[0]) for bundle_file in listing.files})
        read: list[Read] = []
        problems: list[Problem] = []
        for file in listing.files:
            content = contents[str(file.node.stamp[0])]
            if content.startswith(LFS):
                sentence = "is kept in Git LFS, and the repository holds only a pointer to it"
                remedy = "commit the file itself: run git lfs untrack, then add the file again"
                problems.append(SourceFault.KEPT_ELSEWHERE.problem(file.file, sentence, remedy))
            else:
                read.append((file, content))
        return bundled(self._identity, read, [*listing.problems, *problems])

    def _listing(self, path: str) -> Listing:
        folder, _, name = path.rpartition("/")
        areas = (path, joined(folder, TEMPLATES_FOLDER)) if path else ("",)
        entries = self._objects.entries(self._identity, areas)
        tree = GitTree(entries, self._targets(list(entries.values())), areas)
        if not tree.holds(path):
            sentence = f"there is no {path} in commit {self._identity[:12]}"
            remedy = "name a folder or file of that revision"
            problem = self._session.refuse(SourceFault.UNREADABLE, sentence, remedy).problem
            raise Refused(msgspec.structs.replace(problem, is_absent=True))
        walk = TreeWalk(tree, self._bounds)
        node = tree.look(folder, name)
        itself = tree.entry(path)
        if itself and itself.is_link:
            sentence = f"the path is a link in {self._identity[:12]} of {self._session.shown}"
            walk.add(SourceFault.LINK_LEAVES.problem(path, sentence, LINK_REMEDY))
        elif node.kind == "file":
            walk.single(path, node)
        elif node.kind == "folder":
            walk.below(Root("policy", path, path))
            if path:  # nothing is beside the top of a repository
                _walk_templates(walk, tree, folder)
        else:
            walk.add(obstacle(path, node))
        return walk.listing()

    def _targets(self, entries: list[TreeEntry]) -> dict[str, str]:
        """The target of each link, by its id; links without a valid target are broken."""
        sizes = {entry.id: entry.size_bytes or 0 for entry in entries if entry.is_link}
        if len(sizes) > self._bounds.files:
            sentence = f"the revision contains {len(sizes):,} links; the limit is {self._bounds.files:,}"
            raise self._session.refuse(SourceFault.TOO_MUCH, sentence, "name a folder that holds only policies")
        contents = self._contents({identity for identity, size in sizes.items() if 0 < size <= LONGEST_LINK_BYTES})
        targets = {identity: contents.get(identity, b"") for identity in sizes}
        return {one: target.decode("utf-8", "surrogateescape") or NOWHERE for one, target in targets.items()}

    def _contents(self, identities: set[str]) -> dict[str, bytes]:
        """Blobs by id. Their sizes are known and within limits, which the readers enforce."""
        wanted = sorted(identities)
        if not wanted:
            return {}
        most_bytes = self._bounds.total_bytes + len(wanted) * (HEADER_BYTES + LONGEST_LINK_BYTES)
        return self._objects.contents(wanted, most_bytes)


def _walk_templates(walk: TreeWalk, tree: GitTree, parent: str) -> None:
    called = joined(parent, TEMPLATES_FOLDER)
    if not tree.holds(called):
        return
    node = tree.look(parent, TEMPLATES_FOLDER)
    if node.kind == "folder":
        walk.below(Root("template", node.real, called))
    elif node.kind != "file":
        walk.add(obstacle(called, node))
