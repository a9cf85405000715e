"""Reads revisions, commits, trees and blobs of a repository on disk with GitPython, in this process and without git.

Only repositories with the plain layout (`address.check_layout`) and objects within limits (`object_database`) are
read. For all others, and for any error of the library, Unfit is raised and the hardened process reads the repository.
"""

import contextlib
import importlib
import importlib.abc
import importlib.machinery
import logging
import re
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

from reconciler.sources.repository.address import LARGEST_REF_BYTES, Unfit, check_below, check_layout
from reconciler.sources.repository.commit import CommitHeader, Repository, TreeEntry, lost_node
from reconciler.sources.repository.process import Session
from reconciler.sources.walk import Refused, joined

SHARE = 4  # part of a read's time; the rest is for the process, if needed
LARGEST_COMMIT_BYTES = 1 << 16  # and of a tag
LONGEST_LINE_BYTES = 1 << 10  # of the headers: the library searches names in quadratic time
MOST_STEPS = 10_000  # of HEAD~n
MOST_REFERENCES = 5  # chained references, as git counts
MOST_TREES = 1_000  # cached, since commits share most trees
LISTED_BYTES = 60  # of an entry besides its path, as git lists it

# Git's search order for a short name; the first is for HEAD and full names.
_RULES = ("{}", "refs/{}", "refs/tags/{}", "refs/heads/{}", "refs/remotes/{}", "refs/remotes/{}/HEAD")
_FULL_NAME = re.compile(r"refs/.+|[A-Z_]+")
_FULL_ID = re.compile(r"[0-9a-f]{40}")
# One file each, as git writes them; other tree content is left to git.
_PLAIN_TREE = re.compile(rb"(?:[0-7]{5,6} [^\0/]+\0.{20})*", re.DOTALL)
_STEPS = re.compile(r"([~^])([0-9]{0,5})")
_REVISION = re.compile(r"([^~^]+)((?:[~^][0-9]{0,5})*)")
_TREE, _BLOB, _SYMLINK, _SUBMODULE = 0o04, 0o10, 0o12, 0o16  # a mode without permissions

# GitDB has one global table of mapped files, which is not thread-safe.
_one_at_a_time = threading.Lock()


@contextlib.contextmanager
def opened(repository: Repository, session: Session) -> Iterator["GitPythonObjects"]:
    """The repository, while the block lasts. Raises Unfit if it cannot be read in this process."""
    check_layout(repository.git_dir, repository.is_ours)
    until = time.monotonic() + max(0.0, session.until - time.monotonic()) / SHARE
    if not _one_at_a_time.acquire(timeout=max(0.0, until - time.monotonic())):
        raise Unfit("another is being read")
    try:
        with contextlib.closing(_repo(repository.git_dir)) as repo:
            objects = GitPythonObjects(repo, repository, session, until)
            try:
                yield objects
            finally:
                repo.odb.close()
    except (Refused, Unfit):
        raise
    except Exception as error:  # a broken repository can raise any exception in the library
        raise Unfit(f"{type(error).__name__}: {error}") from error
    finally:
        _one_at_a_time.release()


def _repo(git_dir: str) -> Any:
    git: Any = load()
    from reconciler.sources.repository.object_database import BoundedGitDB  # noqa: PLC0415 - imports the library

    with warnings.catch_warnings():
        # The library warns about GitDB, for the reasons that `object_database` handles.
        warnings.filterwarnings("ignore", message="GitDB is deprecated", category=DeprecationWarning)
        return git.Repo(git_dir, odbt=BoundedGitDB, expand_vars=False)


class Leaf(msgspec.Struct, frozen=True, gc=False):
    """A tree's entry for one name."""

    mode: int
    id: str

    @property
    def kind(self) -> int:
        return self.mode >> 12


class GitPythonObjects:
    """Objects of one repository; `until` is a time of the monotonic clock."""

    def __init__(self, repo: Any, repository: Repository, session: Session, until: float) -> None:
        self._repo = repo
        self._git: Any = load()
        self._repository = repository
        self._session = session
        self._until = until
        self._trees: dict[str, dict[str, Leaf]] = {}
        self._shallow = _shallow_commits(repository.git_dir)

    def resolve(self, revision: str) -> str:
        """The full commit id of a revision."""
        match = _REVISION.fullmatch(revision)
        if not match:
            raise Unfit("the revision is for git to understand")
        commit = self._peeled(self._object(match[1]))
        for sign, digits in _STEPS.findall(match[2]):
            count = int(digits or 1)
            if count > MOST_STEPS:
                raise Unfit("the revision counts back very far")
            for _ in range(count if sign == "~" else 1):
                if sign == "~" or count:
                    commit = self.commit(commit.parents[0 if sign == "~" else count - 1].hexsha)
        return str(commit.hexsha)

    def commit(self, identity: str) -> Any:
        """The library's commit object for an id."""
        self._look_at_the_clock()
        binary = bytes.fromhex(identity)
        self._check_head(binary, b"commit")
        return self._git.Commit(self._repo, binary)

    def _check_head(self, binary: bytes, kind: bytes) -> None:
        stream = self._repo.odb.stream(binary)
        if stream.type != kind or stream.size > LARGEST_COMMIT_BYTES:
            raise Unfit("it is no commit, or a large one")
        head, _, _ = stream.read().partition(b"\n\n")
        if any(len(line) > LONGEST_LINE_BYTES for line in head.split(b"\n")):
            raise Unfit("a commit has a long line")

    def parents(self, identity: str) -> tuple[str, ...]:
        if identity in self._shallow:
            raise Unfit("a shallow clone left its parents out")
        return tuple(str(parent.hexsha) for parent in self.commit(identity).parents)

    def file_at(self, identity: str, path: str) -> str:
        leaf = self.at(identity, path)
        return leaf.id if leaf and leaf.kind == _BLOB else ""

    def written(self, identity: str) -> CommitHeader:
        commit = self.commit(identity)
        name = commit.author.name or commit.author.email or ""
        subject = commit.summary if isinstance(commit.summary, str) else ""
        return CommitHeader(str(name), int(commit.authored_date), subject)

    def entries(self, identity: str, areas: tuple[str, ...]) -> dict[str, TreeEntry]:
        tree_entries: dict[str, TreeEntry] = {}
        left_bytes = self._session.bounds.listing_bytes
        pending = [(area, node) for area in areas if (node := self.at(identity, area))]
        looked_at = 0
        while pending:
            self._look_at_the_clock()
            path, node = pending.pop()
            looked_at += 1
            if looked_at > self._session.bounds.entries or left_bytes < 0:
                raise Unfit("there is very much of it")
            if node.kind == _TREE:
                pending += [(joined(path, name), inner) for name, inner in self._tree(node.id).items()]
            else:
                left_bytes -= len(path) + LISTED_BYTES
                tree_entries[path] = self._entry(node)
        return tree_entries

    def contents(self, identities: list[str], most_bytes: int) -> dict[str, bytes]:
        contents = {}
        for identity in identities:
            self._look_at_the_clock()
            stream = self._repo.odb.stream(bytes.fromhex(identity))
            most_bytes -= stream.size
            if stream.type != b"blob" or most_bytes < 0:
                raise Unfit("it is no blob, or a large one")
            contents[identity] = bytes(stream.read())
        return contents

    def at(self, identity: str, path: str) -> Leaf | None:
        """Entry of a commit at a path, links not followed."""
        node = Leaf(_TREE << 12, self.commit(identity).tree.hexsha)
        for part in path.split("/") if path else ():
            inner = self._tree(node.id).get(part) if node.kind == _TREE else None
            if inner is None:
                return None
            node = inner
        return node

    def _tree(self, identity: str) -> dict[str, Leaf]:
        """Entries of a tree by name; for duplicate names the last wins, as elsewhere."""
        self._look_at_the_clock()
        if identity not in self._trees:
            stream = self._repo.odb.stream(bytes.fromhex(identity))
            content = stream.read()
            if stream.type != b"tree" or not _PLAIN_TREE.fullmatch(content):
                raise Unfit("it is no tree, or not a plain one")
            entries = self._git.objects.fun.tree_entries_from_data(content)
            if len(self._trees) >= MOST_TREES:
                self._trees.clear()
            self._trees[identity] = {name: Leaf(mode, binary.hex()) for binary, mode, name in entries}
        return self._trees[identity]

    def _object(self, name: str) -> Any:
        if _FULL_ID.fullmatch(name):
            return self._git.Object.new_from_sha(self._repo, bytes.fromhex(name))
        folder = Path(self._repository.git_dir)
        for rule in _RULES:
            if rule == "{}" and not _FULL_NAME.fullmatch(name):
                if (folder / name).exists():
                    raise Unfit("the revision has the name of a file")
                continue
            result = self._referenced(rule.format(name))
            if result is not None:
                return result
        raise Unfit("there is no such reference")

    def _referenced(self, path: str) -> Any:
        """The object of a reference; None if absent."""
        for number in range(MOST_REFERENCES):
            self._look_at_the_clock()
            check_below(Path(self._repository.git_dir), tuple(path.split("/")), LARGEST_REF_BYTES)
            reference = self._git.SymbolicReference(self._repo, path)
            try:
                path = str(reference.reference.path)
            except TypeError:  # the reference names an object
                return reference.object
            except ValueError:
                if number:
                    raise
                return None
        raise Unfit("a reference goes in circles")

    def _peeled(self, found: Any) -> Any:
        """The commit of a tag, or of a tag of a tag."""
        for _ in range(MOST_REFERENCES):
            if found.type == "commit":
                return self.commit(found.hexsha)
            self._check_head(found.binsha, b"tag")
            found = found.object
        raise Unfit("a tag goes in circles")

    def _entry(self, node: Leaf) -> TreeEntry:
        mode = f"{node.mode:06o}"
        lost = lost_node(self._repository, self._session.bounds)
        if node.kind == _SUBMODULE:
            return TreeEntry(mode, node.id, None, lost)
        if node.kind not in {_BLOB, _SYMLINK}:
            raise Unfit("an entry is of no known kind")
        self._look_at_the_clock()
        if not self._repo.odb.has_object(bytes.fromhex(node.id)):
            if not self._repository.is_ours:
                raise Unfit("it lacks an object")
            return TreeEntry(mode, node.id, None, lost)
        return TreeEntry(mode, node.id, int(self._repo.odb.info(bytes.fromhex(node.id)).size), lost)

    def _look_at_the_clock(self) -> None:
        self._session.look_at_the_clock()
        if time.monotonic() > self._until:
            raise Unfit("it takes long")


def _shallow_commits(git_dir: str) -> frozenset[str]:
    """Commits whose parents a shallow clone omits."""
    path = Path(git_dir, "shallow")
    return frozenset(path.read_text("ascii", "replace").split()) if path.exists() else frozenset()


# --- Imports GitPython without a git executable, so that no property of the library can start git.
#
# On import GitPython runs `git version` with the whole inherited environment, in the current folder, so a repository or
# a hook could influence it. Instead, the class that runs git is prevented from looking for a program; `git.Repo` with
# `GitDB` needs none. Code here that runs git uses `process`.

_RUNS_GIT = "git.cmd"


@cache
def load() -> ModuleType:
    """The package `git`; its import takes a tenth of a second, so only readers of repositories import it."""
    logging.getLogger("git").addHandler(logging.NullHandler())  # warnings about malformed commits are not shown
    if "git" in sys.modules:
        return sys.modules["git"]
    finder = _WithoutExecutable()
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module("git")
    finally:
        sys.meta_path.remove(finder)


class _WithoutExecutable(importlib.abc.MetaPathFinder):
    """Finds `git.cmd` at its location, and makes its class find no program."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name != _RUNS_GIT:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader)
        return spec


class _Loader(importlib.abc.Loader):
    def __init__(self, loader: importlib.abc.Loader) -> None:
        self._loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        commands: Any = module
        commands.Git.refresh = classmethod(lambda _cls, path=None: False)  # noqa: ARG005 - the signature is theirs
