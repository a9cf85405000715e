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
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event

import msgspec

from reconciler.model.bundle import Bundle
from reconciler.model.last_change import LastChange
from reconciler.model.origin import Origin
from reconciler.sources.bounds import SourceBounds
from reconciler.sources.fault import Refused, SourceFault
from reconciler.sources.file_names import shown
from reconciler.sources.line_history import MOST_LINES, LineHistory
from reconciler.sources.repository import in_process
from reconciler.sources.repository.address import COMMIT, RepositoryAddress, check_revision, parse_address
from reconciler.sources.repository.cache import Fetch, GitCache, commit_of
from reconciler.sources.repository.commit import Commit
from reconciler.sources.repository.commits import Commits, GitCommits
from reconciler.sources.repository.environment import Credentials, credentials_for, reading
from reconciler.sources.repository.layout import Unfit
from reconciler.sources.repository.objects import GitObjects, Repository
from reconciler.sources.repository.process import GitFailed, Session

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
