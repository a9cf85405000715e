"""Policies and templates of one revision of a Git repository: blobs only, the same whatever is checked out.

A repository on disk is read where it is. A remote is fetched into the cache folder, whose owner is
`repository.cache`. GitPython reads what is of the plain layout, without starting git (`repository.in_process`). For
the rest, such as partial clones, alternates, reftable and SHA-256, three plumbing commands read: rev-parse, ls-tree
and cat-file; none of them runs a hook or a filter, and the environment they get forbids the rest
(`repository.environment`). A link is followed within the commit and never on disk.
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
from reconciler.sources.repository.cache import Fetch, GitCache, commit_of
from reconciler.sources.repository.commit import Commit, Commits, GitCommits, GitObjects, Repository
from reconciler.sources.repository.process import Credentials, GitFailed, Session, credentials_for, reading
from reconciler.sources.walk import Refused, SourceBounds, SourceFault, shown

# --- Who last changed some lines of policies: a bounded walk of our own over the commits of a repository.
#
# Theory of operation. A line of a file at a commit is looked for in the parents of the commit. Where a parent has the
# same file, or has the line unchanged at the place that it moved from, the walk goes on there (the first such parent of
# a merge); where none has it, the commit is the one that wrote the line. Files are compared by the longest common
# subsequence of what lies between their common beginning and end. A file that was renamed was written by the commit
# that renamed it.
#
# Every step is bounded: commits, time, and the size of what is compared. A walk that meets a bound, or the end of a
# shallow clone, says before which commit it knows nothing.

MOST_LINES = 5  # that one question is about
MOST_COMMITS = 20_000
MOST_COMPARED = 1_000_000  # pairs of lines
LONGEST_TEXT = 200  # characters of a name or a subject


class _BlobLine(msgspec.Struct, frozen=True):
    """A line of a file as one commit has it: `file` is the id of the blob, `line` counts from 0."""

    commit: str
    file: str
    line: int


class LineHistory:
    """Walks the history of one repository until a time of the monotonic clock; owner of the lines that it read last."""

    def __init__(self, commits: Commits, largest_bytes: int, until: float) -> None:
        self._commits = commits
        self._largest_bytes = largest_bytes
        self._until = until
        self._lines: dict[str, list[bytes]] = {}

    def last_change(self, origin: Origin) -> LastChange | None:
        """Of a line at its revision; None where the revision has no such line."""
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
                    return self._last_change(origin, place.commit)
            except Exception:  # noqa: BLE001 - what a broken commit does to the library is of any class
                break
            place = before
        return LastChange(origin, unknown_before=place.commit)

    def _before(self, place: _BlobLine, path: str) -> _BlobLine | None:
        """Where the line comes from, one commit earlier; None where the commit wrote it."""
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

    def _last_change(self, origin: Origin, commit: str) -> LastChange:
        written = self._commits.written(commit)
        return LastChange(origin, commit, _short(written.author), _day(written.seconds), _short(written.subject))


def place_before(after: Sequence[bytes], before: Sequence[bytes], line: int) -> int | None:
    """Where a line stood in the file before; None where it was not there. Raises Unfit where that takes too long."""
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
    """The partner of a line in a longest common subsequence."""
    # lengths[i][j]: of the longest common subsequence of new[i:] and old[j:]
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
    """One line, and not endless: names and subjects may be anything."""
    text = shown(" ".join(text.split()))
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"


def _day(seconds: int) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).date().isoformat()
    except (OverflowError, ValueError, OSError):
        return ""


REMEDY = "see that the repository is whole (git fsck); a partial clone holds only what was checked out"


class GitPlace(msgspec.Struct, frozen=True):
    """A folder (or one file) of a repository at a revision."""

    repository: str  # a folder, bare or not, or an address of https or SSH
    revision: str = "HEAD"
    path: str = ""


class Access(msgspec.Struct, frozen=True):
    """What a reading needs besides: where remotes are kept, what opens them, and who may call it off."""

    cache: Path | None = None
    credentials: Credentials = Credentials()
    cancelled: Event = msgspec.field(default_factory=Event)


NO_ACCESS = Access()  # enough for a repository on disk


def read_revision(place: GitPlace, bounds: SourceBounds, access: Access = NO_ACCESS) -> Bundle:
    """The bundle whose revision is the full id of the commit; with problems and nothing else where it can't be read."""
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
    """Who last changed some lines of a revision, as far as the commits that are there tell: no more is fetched for it
    than was for reading them. Where nothing can be told, nothing is: nobody asked for the history alone."""
    if not origins or not COMMIT.fullmatch(place.revision):
        return ()
    try:
        address = parse_address(place.repository)
        credentials = credentials_for(address, access.credentials)
        until = time.monotonic() + bounds.history_seconds
        # in_process gives a part of the time; the walk ends by itself, and keeps what it found.
        session = Session(address.shown, bounds, until + in_process.SHARE * bounds.history_seconds, access.cancelled)
        with opened(Fetch(address, place.revision, credentials), access, session) as (repository, _):
            return _last_changes(repository, origins, session, until)
    except (Refused, Unfit):
        return ()


def _last_changes(
    repository: Repository, origins: Sequence[Origin], session: Session, until: float
) -> tuple[LastChange, ...]:
    def told(commits: Commits) -> tuple[LastChange, ...]:
        history = LineHistory(commits, session.bounds.file_bytes, until)
        changes = [history.last_change(origin) for origin in origins[:MOST_LINES]]
        return tuple(each for each in changes if each is not None)

    with contextlib.suppress(Unfit), in_process.opened(repository, session) as objects:
        return told(objects)
    try:
        return told(GitCommits(repository, origins[0].revision, session))
    except (Refused, Unfit):
        return tuple(LastChange(origin, unknown_before=origin.revision) for origin in origins[:MOST_LINES])


@contextlib.contextmanager
def opened(fetch: Fetch, access: Access, session: Session) -> Iterator[tuple[Repository, str]]:
    """The repository on disk that holds a revision, and the revision there, for as long as the block lasts."""
    try:
        if fetch.address.transport == "path":
            yield Repository(_git_dir(fetch.address, session)), fetch.revision
        elif access.cache is None:
            sentence = "cannot be fetched, as no cache folder is named"
            raise session.refuse(SourceFault.GIT_FAILED, sentence, "name a cache folder")
        else:
            with GitCache(access.cache).fetched(fetch, session) as (git_dir, identity):
                yield Repository(git_dir, is_ours=True), identity
    except GitFailed as error:
        raise session.failed(error, REMEDY) from error


def _bundle(repository: Repository, revision: str, path: str, session: Session) -> Bundle:
    """In this process where that is safe, else by git in a process of its own, which also tells what is wrong."""
    with contextlib.suppress(Unfit), in_process.opened(repository, session) as objects:
        return Commit(objects, objects.resolve(revision), session).bundle(path)
    identity = commit_of(reading(repository.git_dir), revision, session)
    return Commit(GitObjects(repository, session), identity, session).bundle(path)


def _git_dir(address: RepositoryAddress, session: Session) -> str:
    """Git must not look for one itself: what it finds above could be anybody's."""
    folder = Path(os.path.realpath(address.location))
    if (folder / ".git").is_dir() or (folder / ".git").is_file():
        return str(folder / ".git")
    if (folder / "HEAD").is_file() and (folder / "objects").is_dir():
        return str(folder)
    sentence = "is no Git repository"
    raise session.refuse(SourceFault.GIT_FAILED, sentence, "name the top folder of a work tree, or a bare repository")


def _checked_path(path: str, session: Session) -> str:
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if path.startswith("/") or ".." in parts or shown(path) != path:
        sentence = f"'{shown(path)}' is no path within a repository"
        raise session.refuse(
            SourceFault.UNREADABLE, sentence, "give it from the top of the repository, such as policies"
        )
    return "/".join(parts)
