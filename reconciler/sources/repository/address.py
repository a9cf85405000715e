"""Validates addresses of repositories and names of revisions, before git gets them."""

import os
import re
import stat
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Literal, NoReturn
from urllib.parse import unquote

import msgspec

from reconciler.sources.walk import Refused, SourceFault, shown

Transport = Literal["path", "https", "ssh"]

LONGEST = 2_000
LONGEST_REVISION = 255

HOST = r"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])"
USER = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
# No @: in a password with a slash, the rest of the password would pass for a path.
PATH = r"[^?#\s\\@]+"
HTTPS = re.compile(rf"https://{HOST}(?::[0-9]{{1,5}})?/{PATH}")
SSH = re.compile(rf"ssh://(?:{USER}@)?{HOST}(?::[0-9]{{1,5}})?/(?!-){PATH}")
SCP = re.compile(rf"(?:{USER}@)?{HOST}:(?!-|:){PATH}")
# `ext::`, `fd::` and similar name a program to run.
HELPER = re.compile(r"[A-Za-z0-9+.-]*::")

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
REFUSED_IN_REVISIONS = (
    (re.compile(r"^[-+^]"), "begins with a sign"),
    (re.compile(r"\.\."), "is a range"),
    (re.compile(r"@\{|[{}]"), "reads a reflog or searches"),
    (re.compile(r":"), "names a file"),
    (re.compile(r"[\s*?\[\\]"), "contains a space or a pattern"),
)

ADDRESS_REMEDY = "write a folder, https://host/path, ssh://user@host/path or user@host:path"
REVISION_REMEDY = "name one branch, tag or full commit id"
# Git follows these from commit to commit; a fetch of one revision lacks the other commits.
STEPS = re.compile(r"[~^]")


class RepositoryAddress(msgspec.Struct, frozen=True):
    """A repository address for git, without credentials; `shown` is its form for messages."""

    transport: Transport
    location: str
    shown: str
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def parse_address(text: str) -> RepositoryAddress:
    """The repository that the text names. Raises Refused for text that could make git run or send something else."""
    # One word: a password may contain spaces.
    display = shown(_without_credentials(text))[:LONGEST]
    if not text or len(text) > LONGEST or text.startswith("-") or shown(text) != text or HELPER.match(text):
        _refuse(display)
    if "://" not in text:
        # Same rule as git for host:path; a folder of such a name is written as ./host:path.
        transport: Transport = "ssh" if ":" in text.partition("/")[0] else "path"
        if transport == "ssh" and not SCP.fullmatch(text):
            _refuse(display)
        return RepositoryAddress(transport, text, display)
    if text.startswith("ssh://") and SSH.fullmatch(text):
        return RepositoryAddress("ssh", text, display)
    return _https(text, display)


def _https(text: str, display: str) -> RepositoryAddress:
    """Removes credentials from the URL, because everybody can read the arguments of git."""
    head, _, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    credentials, _, host = authority.rpartition("@")
    location = f"{head}://{host}{slash}{path}"
    if not HTTPS.fullmatch(location):
        _refuse(display)
    user, _, password = credentials.partition(":")
    return RepositoryAddress("https", location, display, unquote(user), unquote(password))


def _refuse(display: str) -> NoReturn:
    sentence = "the repository address is not supported"
    raise Refused(SourceFault.BAD_ADDRESS.problem(display or "''", sentence, ADDRESS_REMEDY))


def check_revision(revision: str, address: RepositoryAddress) -> None:
    """Raises Refused for text that git could parse as an option, a range, a search or a file."""
    reason = next((words for pattern, words in REFUSED_IN_REVISIONS if pattern.search(revision)), "")
    if not revision or len(revision) > LONGEST_REVISION or shown(revision) != revision:
        reason = "is empty, too long, or has characters that cannot be displayed"
    elif address.transport != "path" and not reason and STEPS.search(revision):
        reason = "counts back from another commit, which a fetch of one revision does not include"
    if reason:
        sentence = f"the revision '{shown(revision)[:LONGEST_REVISION]}' {reason}"
        raise Refused(SourceFault.BAD_REVISION.problem(address.shown, sentence, REVISION_REMEDY))


def redacted(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text for messages: no passwords, queries or control characters, and of bounded length."""
    for secret in secrets:
        text = text.replace(secret, "***") if secret else text
    words = re.split(r"(\s+)", text)
    return "".join(shown(_without_credentials(word)) for word in words)[:LONGEST]


def _without_credentials(word: str) -> str:
    """Anything before the last @ may be a password, unless it is just an SSH user or part of a path."""
    scheme = match[0] if (match := re.match(r"[^A-Za-z]*[A-Za-z][A-Za-z0-9+.-]*://", word)) else ""
    before, at, after = word[len(scheme) :].rpartition("@")
    is_secret = bool(scheme) and not ("ssh://" in scheme and re.fullmatch(USER, before))
    if at and (is_secret or ":" in before):
        before = "***"
    if scheme and "?" in after:
        after = after.partition("?")[0] + "?***"
    return f"{scheme}{before}{at}{after}"


# --- Repositories on disk that may be read in this process: those with the plain layout, without references to
# elsewhere.
#
# GitPython and GitDB follow includes in configurations, alternates, links, `commondir` and `.git` files wherever they
# lead, wait for a FIFO, and read files of any size into memory. Therefore all of these are checked first, and other
# layouts are left to the hardened process (`process`), which is bounded from outside.

LARGEST_SETTINGS_BYTES = 1 << 16
LARGEST_REF_BYTES = 1 << 12
LARGEST_LIST_BYTES = 1 << 24  # packed-refs, shallow
LARGEST_INDEX_BYTES = 1 << 28
MOST_PACKS = 500
MOST_NAMES = 8 * MOST_PACKS  # the folder of packs also contains indexes and other files

_ABSENT = (
    ".git", "commondir", "gitdir", "info/grafts", "objects/info/alternates", "objects/info/http-alternates", "reftable",
)  # fmt: skip
# GitPython reads these at any time, and would then read another repository.
_MISLEADING = ("GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR")
# Other settings files, other object and reference formats, objects stored elsewhere.
_SETTINGS_ELSEWHERE = (b"include", b"extensions", b"partialclone", b"promisor")


class Unfit(Exception):
    """The repository is not read in this process; the reason is for engineers."""


def check_layout(git_dir: str, is_ours: bool, environment: Mapping[str, str] = os.environ) -> None:
    """Raises Unfit unless the repository has the plain layout. A repository of ours may lack blobs."""
    folder = Path(git_dir)
    if any(name in environment for name in _MISLEADING):
        raise Unfit("the environment names another repository")
    for name in ("", "objects", "refs"):
        if _mode(folder / name) != stat.S_IFDIR:
            raise Unfit(f"{name or 'the repository'} is no folder")
    for name in _ABSENT:
        if os.path.lexists(folder / name):
            raise Unfit(f"it has {name}")
    check_file(folder / "HEAD", LARGEST_REF_BYTES)
    check_file(folder / "config", LARGEST_SETTINGS_BYTES)
    for name in ("packed-refs", "shallow"):
        if os.path.lexists(folder / name):
            check_file(folder / name, LARGEST_LIST_BYTES)
    settings = (folder / "config").read_bytes().lower()
    if any(word in settings for word in _SETTINGS_ELSEWHERE):
        raise Unfit("its settings are kept elsewhere, or its objects are")
    _check_packs(folder / "objects" / "pack", is_ours)


def check_file(path: Path, most_bytes: int) -> None:
    """Raises Unfit unless there is a regular file of at most this size."""
    try:
        status = path.lstat()
    except OSError as error:
        raise Unfit(f"there is no {path.name}") from error
    if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
        raise Unfit(f"{path.name} is no small file")


def check_below(folder: Path, parts: tuple[str, ...], most_bytes: int) -> None:
    """Raises Unfit unless the path leads through folders to a small file, or does not exist."""
    for number, part in enumerate(parts, start=1):
        folder /= part
        mode = _mode(folder)
        if mode == stat.S_IFREG and number == len(parts):
            check_file(folder, most_bytes)
        elif mode not in {stat.S_IFDIR, 0}:
            raise Unfit(f"{part} is no folder")


def _check_packs(folder: Path, is_ours: bool) -> None:
    if not os.path.lexists(folder):
        return
    if _mode(folder) != stat.S_IFDIR:
        raise Unfit("pack is no folder")
    names = [path.name for path in islice(folder.iterdir(), MOST_NAMES + 1)]
    if len(names) > MOST_NAMES or sum(name.endswith(".pack") for name in names) > MOST_PACKS:
        raise Unfit("it has very many packs")
    for name in names:
        if name.endswith(".promisor") and not is_ours:
            raise Unfit("it is a partial clone")
        if name.endswith(".pack") and _mode(folder / name) != stat.S_IFREG:
            raise Unfit("a pack is no file")
        if name.endswith(".idx"):
            check_file(folder / name, LARGEST_INDEX_BYTES)


def _mode(path: Path) -> int:
    """File type at a path, links not followed; 0 if absent."""
    try:
        return stat.S_IFMT(path.lstat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        return 0
