"""Fetches single revisions of remotes. Owns the cache folder: a folder per remote with a bare repository per commit.

A repository of one commit is completed in a temporary folder and then renamed, so that an aborted fetch leaves
nothing that looks complete. Nothing is fetched twice, and only a few commits of a remote are kept.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from reconciler.sources.repository.address import COMMIT, RepositoryAddress
from reconciler.sources.repository.process import (
    LOOK_SECONDS,
    Credentials,
    GitFailed,
    Run,
    Session,
    fetching,
    reading,
    run,
)
from reconciler.sources.walk import SourceFault

KEPT = 4  # commits per remote: head and base of a pull request, and earlier ones
FETCHED = "refs/reconciler/fetched"
SETTINGS = {
    40: "[core]\n\trepositoryformatversion = 0\n\tbare = true\n",
    64: "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tobjectFormat = sha256\n",
}  # by the length of an id
REMEDY = "check the address, the credentials, and that the host is reachable"


class Fetch(msgspec.Struct, frozen=True):
    address: RepositoryAddress
    revision: str
    credentials: Credentials


@contextlib.contextmanager
def fetched(folder: Path, fetch: Fetch, session: Session) -> Iterator[tuple[str, str]]:
    """A repository that contains the revision, and the commit id, while the block lasts.

    Threads and processes may share the cache folder: each remote is locked during a read.
    """
    # The limit is part of the key: a fetch with a lower limit omits files that a higher limit allows.
    what = f"{session.bounds.file_bytes} {fetch.address.location}"
    remote = folder / hashlib.sha256(what.encode()).hexdigest()[:24]
    try:
        remote.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = remote.stat().st_uid
    except OSError as error:
        sentence = f"the cache folder {folder} cannot be used: {error.strerror}"
        raise session.refuse(SourceFault.GIT_FAILED, sentence, "name a writable folder") from error
    if owner != os.geteuid():
        sentence = f"the cache folder {remote} belongs to another user"
        raise session.refuse(SourceFault.GIT_FAILED, sentence, "name a folder of your own")
    with _locked(remote, session):
        commit = _stored(remote, fetch, session)
        os.utime(remote / commit)
        _prune(remote)
        yield str(remote / commit), commit


@contextlib.contextmanager
def _locked(remote: Path, session: Session) -> Iterator[None]:
    with (remote / "lock").open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                session.cancelled.wait(LOOK_SECONDS)
                session.look_at_the_clock()
        yield


def _stored(remote: Path, fetch: Fetch, session: Session) -> str:
    if COMMIT.fullmatch(fetch.revision) and (remote / fetch.revision).is_dir():
        return fetch.revision
    for left in remote.glob("new-*"):  # of a killed process, since this process holds the lock
        shutil.rmtree(left, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix="new-", dir=remote))
    try:
        commit = _fill(new, remote, fetch, session)
        if not (remote / commit).is_dir():
            new.rename(remote / commit)
    except GitFailed as error:
        raise session.failed(error, REMEDY) from error
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return commit


def _fill(new: Path, remote: Path, fetch: Fetch, session: Session) -> str:
    """Fetches the commit, unless it is already in the cache."""
    environment = fetching(str(new), fetch.address, fetch.credentials)
    run(Run(("init", "--quiet", "--bare", "--template="), environment), session)
    wanted = commit = fetch.revision
    if not COMMIT.fullmatch(wanted):
        wanted, commit = _resolve_remote(environment, fetch, session)
        if (remote / commit).is_dir():
            return commit
    settings = SETTINGS[len(commit)]
    (new / "config").write_text(settings)
    smallest_omitted = session.bounds.file_bytes + 1  # larger files would be refused, so they are not transferred
    arguments = (
        "fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head",
        f"--filter=blob:limit={smallest_omitted}", "--end-of-options", "origin", f"+{wanted}:{FETCHED}",
    )  # fmt: skip
    run(Run(arguments, environment, filling=new), session)
    # A fetch records where omitted blobs are available; without the record, git treats them as missing and contacts
    # nobody.
    (new / "config").write_text(settings)
    return commit_of(reading(str(new)), FETCHED, session)


def _resolve_remote(environment: dict[str, str], fetch: Fetch, session: Session) -> tuple[str, str]:
    """The remote's full name of the revision, by git's own precedence, and its commit."""
    revision = fetch.revision
    names = [revision] if revision == "HEAD" or revision.startswith("refs/") else []
    names += [f"refs/tags/{revision}", f"refs/heads/{revision}"]
    patterns = [pattern for name in names for pattern in (name, f"{name}^{{}}")]
    said = run(Run(("ls-remote", "--quiet", "--end-of-options", "origin", *patterns), environment), session)
    there = {}
    for line in said.decode("utf-8", "replace").splitlines():
        commit, _, name = line.partition("\t")
        if COMMIT.fullmatch(commit):
            there[name] = commit
    for full_name in names:
        if full_name in there:
            return full_name, there.get(f"{full_name}^{{}}", there[full_name])
    sentence = f"the repository has no branch or tag {revision}"
    raise session.refuse(SourceFault.BAD_REVISION, sentence, "name a branch, a tag, or a commit by its full id")


def commit_of(environment: dict[str, str], revision: str, session: Session) -> str:
    """The full commit id of a revision in a repository on disk."""
    arguments = ("rev-parse", "--verify", "--end-of-options", f"{revision}^{{commit}}")
    try:
        said = run(Run(arguments, environment), session).decode().strip()
    except GitFailed as error:
        if "Needed a single revision" not in str(error):
            raise
        sentence = f'the repository has no commit "{revision}"'
        raise session.refuse(SourceFault.BAD_REVISION, sentence, "name an existing branch, tag or commit") from error
    if not COMMIT.fullmatch(said):
        raise session.refuse(SourceFault.BAD_REVISION, f"{revision} is not one commit", "name a branch, tag or commit")
    return said


def _prune(remote: Path) -> None:
    kept = sorted((one for one in remote.iterdir() if one.is_dir()), key=lambda one: one.stat().st_mtime_ns)
    for old in kept[:-KEPT]:
        shutil.rmtree(old, ignore_errors=True)
