"""What a walk over the history asks of a repository, and git itself, which answers that in hardened processes.

`in_process` answers the same without a process. Here a few processes tell a lot at once: which commits there are with
their parents, and which blob each of them has at a path.
"""

import re
from typing import Protocol

import msgspec

from reconciler.sources.repository.environment import reading
from reconciler.sources.repository.layout import Unfit
from reconciler.sources.repository.objects import GitObjects, Repository
from reconciler.sources.repository.process import GitFailed, Run, Session, run

MOST_COMMITS = 5_000  # that git lists
LISTED_BYTES = 512  # of a commit and its parents, and of an object that is asked for
_AUTHOR = re.compile(rb"author ([^\n<]{0,500})<([^\n>]{0,500})> (-?[0-9]{1,12}) ")


class CommitHeader(msgspec.Struct, frozen=True):
    """What a commit says of itself."""

    author: str
    seconds: int
    subject: str


class Commits(Protocol):
    """The commits of a repository. What is not known, or takes too long, raises Unfit."""

    def parents(self, identity: str) -> tuple[str, ...]:
        """The ids of a commit's parents; raises Unfit where a shallow clone left them out."""
        ...

    def file_at(self, identity: str, path: str) -> str:
        """The id of the file that a commit has at a path, or nothing."""
        ...

    def written(self, identity: str) -> CommitHeader:
        """Who wrote a commit, when, and its first line."""
        ...

    def contents(self, identities: list[str], most_bytes: int) -> dict[str, bytes]:
        """Blobs by id, together no more than so many bytes."""
        ...


class GitCommits:
    """As git tells: `rev-list` and `cat-file`; owner of what they told of the commits below one."""

    def __init__(self, repository: Repository, newest: str, session: Session) -> None:
        self._environment = reading(repository.git_dir)
        self._objects = GitObjects(repository, session)
        self._session = session
        self._parents = self._listed(newest)
        self._files: dict[str, dict[str, str]] = {}

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

    def contents(self, identities: list[str], most_bytes: int) -> dict[str, bytes]:
        return self._objects.contents(identities, most_bytes)

    def _head(self, identity: str) -> bytes:
        return self._read(("cat-file", "commit", identity))

    def _listed(self, newest: str) -> dict[str, tuple[str, ...]]:
        arguments = ("rev-list", "--parents", f"--max-count={MOST_COMMITS}", "--end-of-options", newest)
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
