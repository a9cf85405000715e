"""Reads policies and templates of one revision of a Git repository: blobs only, independent of any checkout.

A repository on disk is read in place. A remote is fetched into the cache folder, owned by `repository.cache`.
GitPython reads repositories with the plain layout, without starting git (`repository.in_process`). For others, such
as partial clones, alternates, reftable and SHA-256, three plumbing commands read: rev-parse, ls-tree and cat-file.
None of them runs a hook or a filter, and their environment prevents others (`repository.process`). Links are
followed within the commit and never on disk.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import msgspec

from reconciler.model.bundle import Bundle
from reconciler.model.problem import LastChange, Origin
from reconciler.sources.repository import in_process
from reconciler.sources.repository.address import COMMIT, RepositoryAddress, Unfit, check_revision, parse_address
from reconciler.sources.repository.cache import Fetch, commit_of, fetched
from reconciler.sources.repository.commit import Commit, GitObjects, Repository, RepositoryObjects
from reconciler.sources.repository.process import Credentials, GitFailed, Session, credentials_for, reading
from reconciler.sources.walk import Refused, SourceBounds, SourceFault, shown

# --- Authors of policy lines: a bounded walk over the commits of a repository.
#
# Theory of operation. The walk looks for a line of a file in the parents of the commit. If a parent has the same file,
# or has the line unchanged at its previous position, the walk continues there (at the first such parent of a merge).
# Otherwise the commit wrote the line. Files are compared by the longest common subsequence of the lines between their
# common beginning and end. The commit that renames a file counts as the author of its lines.
#
# Every step is bounded: commits, time, and the size of compared texts. A walk that reaches a bound, or the end of a
# shallow clone, returns the commit before which the author is unknown.

MOST_LINES = 5  # per question
MOST_COMMITS = 20_000
MOST_COMPARED = 1_000_000  # pairs of lines
LONGEST_TEXT = 200  # characters of a name or a subject


class _BlobLine(msgspec.Struct, frozen=True):
    """A line of a file at one commit: `file` is the id of the blob, `line` counts from 0."""

    commit: str
    file: str
    line: int


class LineHistory:
    """Walks the history of one repository until a time of the monotonic clock. Owns the lines read last."""

    def __init__(self, commits: RepositoryObjects, largest_bytes: int, until: float) -> None:
        self._commits = commits
        self._largest_bytes = largest_bytes
        self._until = until
        self._lines: dict[str, list[bytes]] = {}

    def last_change(self, origin: Origin) -> LastChange | None:
        """Last change of a line at its revision; None if the revision does not have the line."""
        try:
            file = self._commits.file_at(origin.revision, origin.file)
            if not file or not 0 < origin.line <= len(self._lines_of(file)):
                return None
        except (Refused, Unfit):
            return LastChange(origin, unknown_before=origin.revision)
        place = _BlobLine(origin.revision, file, origin.line - 1)
        for _ in range(MOST_COMMITS):
            try:
                before = self._before(place, origin.file)
                if before is None:
                    written = self._commits.written(place.commit)
                    author, subject = _short(written.author), _short(written.subject)
                    return LastChange(origin, place.commit, author, _day(written.seconds), subject)
            except Exception:  # noqa: BLE001 - what a broken commit does to the library is of any class
                break
            place = before
        return LastChange(origin, unknown_before=place.commit)

    def _before(self, place: _BlobLine, path: str) -> _BlobLine | None:
        """The line in the previous commit; None if this commit wrote the line."""
        if time.monotonic() > self._until:
            raise Unfit("it takes long")
        parents = self._commits.parents(place.commit)
        files = [(parent, self._commits.file_at(parent, path)) for parent in parents]
        for parent, file in files:
            if file == place.file:
                return _BlobLine(parent, file, place.line)
        for parent, file in files:
            if file:
                line = place_before(self._lines_of(place.file), self._lines_of(file), place.line)
                if line is not None:
                    return _BlobLine(parent, file, line)
        return None

    def _lines_of(self, file: str) -> list[bytes]:
        if file not in self._lines:
            if len(self._lines) >= 2 * MOST_LINES:
                self._lines.clear()
            self._lines[file] = self._commits.contents([file], self._largest_bytes)[file].splitlines()
        return self._lines[file]


def place_before(after: Sequence[bytes], before: Sequence[bytes], line: int) -> int | None:
    """Position of a line in the previous version of the file; None if absent. Raises Unfit if the search takes too
    long."""
    head = _common(lambda number: after[number] == before[number], min(len(after), len(before)))
    if line < head:
        return line
    rest = min(len(after), len(before)) - head
    tail = _common(lambda number: after[-1 - number] == before[-1 - number], rest)
    if line >= len(after) - tail:
        return line - len(after) + len(before)
    new, old = after[head : len(after) - tail], before[head : len(before) - tail]
    if after[line] not in old:
        return None
    if len(new) * len(old) > MOST_COMPARED:
        raise Unfit("too many lines changed at once")
    found = _in_common(new, old, line - head)
    return None if found is None else head + found


def _common(is_same: Callable[[int], bool], most: int) -> int:
    return next((number for number in range(most) if not is_same(number)), most)


def _in_common(new: Sequence[bytes], old: Sequence[bytes], line: int) -> int | None:
    """Partner of a line in a longest common subsequence."""
    # lengths[i][j]: length of the longest common subsequence of new[i:] and old[j:]
    lengths = [[0] * (len(old) + 1) for _ in range(len(new) + 1)]
    for i in range(len(new) - 1, -1, -1):
        row, below = lengths[i], lengths[i + 1]
        for j in range(len(old) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if new[i] == old[j] else max(below[j], row[j + 1])
    i = j = 0
    while i <= line and j < len(old):
        if new[i] == old[j]:
            if i == line:
                return j
            i, j = i + 1, j + 1
        elif lengths[i + 1][j] >= lengths[i][j + 1]:
            i += 1
        else:
            j += 1
    return None


def _short(text: str) -> str:
    """The text as one line of bounded length: names and subjects may contain anything."""
    text = shown(" ".join(text.split()))
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _day(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return ""


REMEDY = "check the repository with git fsck; a partial clone has only checked-out content"


class GitPlace(msgspec.Struct, frozen=True):
    """A folder (or one file) of a repository at a revision."""

    repository: str  # a folder, bare or not, or an https or SSH URL
    revision: str = "HEAD"
    path: str = ""


class Access(msgspec.Struct, frozen=True):
    """Resources of a read: cache folder, credentials, and a stop event."""

    cache: Path | None = None
    credentials: Credentials = Credentials()
    cancelled: Event = msgspec.field(default_factory=Event)


NO_ACCESS = Access()  # sufficient for a repository on disk


def read_revision(place: GitPlace, bounds: SourceBounds, access: Access = NO_ACCESS) -> Bundle:
    """The bundle, with the full commit id as its revision. If it cannot be read, the bundle only has problems."""
    try:
        address = parse_address(place.repository)
        check_revision(place.revision, address)
        credentials = credentials_for(address, access.credentials)
        until = time.monotonic() + bounds.deadline_seconds
        session = Session(address.shown, bounds, until, access.cancelled, credentials.secrets)
        path = _checked_path(place.path, session)
        with opened(Fetch(address, place.revision, credentials), access, session) as (repository, revision):
            return _bundle(repository, revision, path, session)
    except Refused as refused:
        return Bundle("", (), problems=(refused.problem,))


def last_changes(
    place: GitPlace, origins: Sequence[Origin], bounds: SourceBounds, access: Access = NO_ACCESS
) -> tuple[LastChange, ...]:
    """Last changes of policy lines, from the commits that are available: nothing more is fetched. Empty if unknown,
    without problems."""
    if not origins or not COMMIT.fullmatch(place.revision):
        return ()
    try:
        address = parse_address(place.repository)
        credentials = credentials_for(address, access.credentials)
        until = time.monotonic() + bounds.history_seconds
        # in_process gives a part of the time; the walk ends by itself and returns its results so far
        session = Session(address.shown, bounds, until + in_process.SHARE * bounds.history_seconds, access.cancelled)
        with opened(Fetch(address, place.revision, credentials), access, session) as (repository, _):
            return _last_changes(repository, origins, session, until)
    except (Refused, Unfit):
        return ()


def _last_changes(
    repository: Repository, origins: Sequence[Origin], session: Session, until: float
) -> tuple[LastChange, ...]:
    def told(commits: RepositoryObjects) -> tuple[LastChange, ...]:
        history = LineHistory(commits, session.bounds.file_bytes, until)
        changes = [history.last_change(origin) for origin in origins[:MOST_LINES]]
        return tuple(each for each in changes if each is not None)

    with contextlib.suppress(Unfit), in_process.opened(repository, session) as objects:
        return told(objects)
    return told(GitObjects(repository, session, origins[0].revision))


@contextlib.contextmanager
def opened(fetch: Fetch, access: Access, session: Session) -> Iterator[tuple[Repository, str]]:
    """The repository on disk that contains the revision, and the commit id, while the block lasts."""
    try:
        if fetch.address.transport == "path":
            yield Repository(_git_dir(fetch.address, session)), fetch.revision
        elif access.cache is None:
            sentence = "the repository cannot be fetched without a cache folder"
            raise session.refuse(SourceFault.GIT_FAILED, sentence, "name a cache folder")
        else:
            with fetched(access.cache, fetch, session) as (git_dir, identity):
                yield Repository(git_dir, is_ours=True), identity
    except GitFailed as error:
        raise session.failed(error, REMEDY) from error


def _bundle(repository: Repository, revision: str, path: str, session: Session) -> Bundle:
    """Reads in this process if that is safe, otherwise with a git process, which also reports errors."""
    with contextlib.suppress(Unfit), in_process.opened(repository, session) as objects:
        return Commit(objects, objects.resolve(revision), session).bundle(path)
    identity = commit_of(reading(repository.git_dir), revision, session)
    return Commit(GitObjects(repository, session), identity, session).bundle(path)


def _git_dir(address: RepositoryAddress, session: Session) -> str:
    """The git directory. Git must not search for one itself, because a parent folder may belong to anybody."""
    folder = Path(os.path.realpath(address.location))
    if (folder / ".git").is_dir() or (folder / ".git").is_file():
        return str(folder / ".git")
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
        return str(folder)
    sentence = "the path is not a Git repository"
    raise session.refuse(SourceFault.GIT_FAILED, sentence, "name the top folder of a work tree, or a bare repository")


def _checked_path(path: str, session: Session) -> str:
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if path.startswith("/") or ".." in parts or shown(path) != path:
        sentence = f"'{shown(path)}' is not a path within a repository"
        raise session.refuse(
            SourceFault.UNREADABLE, sentence, "write the path from the top of the repository, such as policies"
        )
    return "/".join(parts)
