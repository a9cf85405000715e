"""What may be asked of git at all: addresses of repositories and names of revisions, judged before git sees them."""

import re
from typing import Literal, NoReturn
from urllib.parse import unquote

import msgspec

from reconciler.sources.fault import Refused, SourceFault
from reconciler.sources.file_names import shown

Transport = Literal["path", "https", "ssh"]

LONGEST = 2_000
LONGEST_REVISION = 255

HOST = r"(?:[A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])"
USER = r"[A-Za-z0-9_][A-Za-z0-9._-]*"
# No @: in a password that has a slash, the rest of the password would pass for a path.
PATH = r"[^?#\s\\@]+"
HTTPS = re.compile(rf"https://{HOST}(?::[0-9]{{1,5}})?/{PATH}")
SSH = re.compile(rf"ssh://(?:{USER}@)?{HOST}(?::[0-9]{{1,5}})?/(?!-){PATH}")
SCP = re.compile(rf"(?:{USER}@)?{HOST}:(?!-|:){PATH}")
# `ext::`, `fd::` and their like name a program to run.
HELPER = re.compile(r"[A-Za-z0-9+.-]*::")

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
REFUSED_IN_REVISIONS = (
    (re.compile(r"^[-+^]"), "begins with a sign"),
    (re.compile(r"\.\."), "is a range"),
    (re.compile(r"@\{|[{}]"), "asks a log or searches"),
    (re.compile(r":"), "names a file"),
    (re.compile(r"[\s*?\[\\]"), "contains a space or a pattern"),
)

ADDRESS_REMEDY = "give a folder, https://host/path, ssh://user@host/path or user@host:path"
REVISION_REMEDY = "name one branch, tag or full commit id"
# Git follows these from commit to commit, which a fetch of one revision does not bring.
STEPS = re.compile(r"[~^]")


class RepositoryAddress(msgspec.Struct, frozen=True):
    """A repository as git is told of it, without credentials; `shown` is what messages may say."""

    transport: Transport
    location: str
    shown: str
    user: str = ""
    password: str = ""

    def __repr__(self) -> str:
        return f"Address({self.shown})"


def parse_address(text: str) -> RepositoryAddress:
    """The repository that the text names; raises Refused for what might make git run or send something else."""
    # As one word: a password may hold spaces.
    display = shown(_without_credentials(text))[:LONGEST]
    if not text or len(text) > LONGEST or text.startswith("-") or shown(text) != text or HELPER.match(text):
        _refuse(display)
    if "://" not in text:
        # Where git would see host:path, so do we: a folder of such a name is given as ./host:path.
        transport: Transport = "ssh" if ":" in text.partition("/")[0] else "path"
        if transport == "ssh" and not SCP.fullmatch(text):
            _refuse(display)
        return RepositoryAddress(transport, text, display)
    if text.startswith("ssh://") and SSH.fullmatch(text):
        return RepositoryAddress("ssh", text, display)
    return _https(text, display)


def _https(text: str, display: str) -> RepositoryAddress:
    """Credentials are taken out of the URL: git's arguments are there for all to read."""
    head, _, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    credentials, _, host = authority.rpartition("@")
    location = f"{head}://{host}{slash}{path}"
    if not HTTPS.fullmatch(location):
        _refuse(display)
    user, _, password = credentials.partition(":")
    return RepositoryAddress("https", location, display, unquote(user), unquote(password))


def _refuse(display: str) -> NoReturn:
    sentence = "is no address of a repository that is read from"
    raise Refused(SourceFault.BAD_ADDRESS.problem(display or "''", sentence, ADDRESS_REMEDY))


def check_revision(revision: str, address: RepositoryAddress) -> None:
    """Raises Refused for what git could take for an option, a range, a search or a file."""
    reason = next((words for pattern, words in REFUSED_IN_REVISIONS if pattern.search(revision)), "")
    if not revision or len(revision) > LONGEST_REVISION or shown(revision) != revision:
        reason = "is empty, too long or cannot be shown"
    elif address.transport != "path" and not reason and STEPS.search(revision):
        reason = "counts back from another, which a fetch of one revision cannot"
    if reason:
        sentence = f"the revision '{shown(revision)[:LONGEST_REVISION]}' {reason}"
        raise Refused(SourceFault.BAD_REVISION.problem(address.shown, sentence, REVISION_REMEDY))


def redacted(text: str, secrets: tuple[str, ...] = ()) -> str:
    """The text as a message may say it: no passwords, no queries, no control characters, and not endless."""
    for secret in secrets:
        text = text.replace(secret, "***") if secret else text
    words = re.split(r"(\s+)", text)
    return "".join(shown(_without_credentials(word)) for word in words)[:LONGEST]


def _without_credentials(word: str) -> str:
    """Anything before the last @ may be a password, unless it is just a user of SSH or part of a path."""
    scheme = match[0] if (match := re.match(r"[^A-Za-z]*[A-Za-z][A-Za-z0-9+.-]*://", word)) else ""
    before, at, after = word[len(scheme) :].rpartition("@")
    is_secret = bool(scheme) and not ("ssh://" in scheme and re.fullmatch(USER, before))
    if at and (is_secret or ":" in before):
        before = "***"
    if scheme and "?" in after:
        after = after.partition("?")[0] + "?***"
    return f"{scheme}{before}{at}{after}"
