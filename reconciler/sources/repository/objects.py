"""What reading a commit asks of a repository, its entries and its blobs; and git itself, which answers that.

`in_process` answers the same without a process.
"""

from typing import Protocol

import msgspec

from reconciler.sources.bounds import SourceBounds
from reconciler.sources.repository.environment import reading
from reconciler.sources.repository.process import GitFailed, Run, Session, run
from reconciler.sources.repository.tree import TreeEntry, entries_of
from reconciler.sources.walk import ResolvedPath


class Repository(msgspec.Struct, frozen=True):
    """Where git finds it; one that is ours lacks the blobs that are too large to be read."""

    git_dir: str
    is_ours: bool = False


class RepositoryObjects(Protocol):
    """The objects of a repository."""

    def entries(self, identity: str, areas: tuple[str, ...]) -> dict[str, TreeEntry]:
        """All files, links and submodules in some areas of a commit, by path; an empty area is the whole commit."""
        ...

    def contents(self, identities: list[str], most_bytes: int) -> dict[str, bytes]:
        """Blobs by id, together no more than so many bytes."""
        ...


class GitObjects:
    """As git tells: `ls-tree` and `cat-file` in a hardened process each."""

    def __init__(self, repository: Repository, session: Session) -> None:
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


def lost_node(repository: Repository, bounds: SourceBounds) -> ResolvedPath:
    """What stands for an object that is not there. A repository of ours lacks what was larger than a file may be; any
    other lacks only what is lost."""
    if repository.is_ours:
        return ResolvedPath("omitted", detail=f"more than the {bounds.file_bytes:,} bytes that a file may have")
    return ResolvedPath("broken", detail="the repository lacks it, being damaged or a partial clone")


def _blobs(said: bytes, wanted: list[str]) -> dict[str, bytes]:
    """Takes the answer of `git cat-file --batch` apart: a line with id, kind and size, the content, a line's end."""
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
