"""Runs git with limits on time, memory, output and disk, and ends it with all its child processes.

GitPython is not used for processes: it passes on the whole inherited environment, its time limit collects children
one by one with `ps` while they start more, and it has no limit for output or disk. It only reads objects, without a
process (`in_process`).
"""

import base64
import contextlib
import os
import resource
import selectors
import shlex
import shutil
import signal
import subprocess
import time
from pathlib import Path
from threading import Event
from typing import IO
from urllib.parse import quote, urlsplit

import msgspec

from reconciler.sources.repository.address import RepositoryAddress, redacted
from reconciler.sources.walk import Refused, SourceBounds, SourceFault

LOOK_SECONDS = 0.05  # interval of checks of time, disk and the stop event
CHUNK_BYTES = 1 << 16
TALK_BYTES = 1 << 14  # of git's stderr
GRACE_SECONDS = 5.0  # for a killed process to end


class GitFailed(Exception):
    """Git ended with an error; the text is its escaped message."""


class Session(msgspec.Struct, frozen=True):
    """One read of one repository: deadline, limits, and a stop event."""

    shown: str  # the repository's name in problems
    bounds: SourceBounds
    until: float  # of the monotonic clock
    cancelled: Event
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Session({self.shown})"

    def refuse(self, fault: SourceFault, sentence: str, remedy: str) -> Refused:
        return Refused(fault.problem(self.shown, redacted(sentence, self.secrets), redacted(remedy, self.secrets)))

    def look_at_the_clock(self) -> None:
        """Raises Refused after the deadline, or when the read is canceled."""
        if self.cancelled.is_set():
            raise self.refuse(SourceFault.TOO_LONG, "the read was canceled", "try again")
        if time.monotonic() >= self.until:
            sentence = f"git needs more than {self.bounds.deadline_seconds:g} s to read the repository"
            remedy = "try again; if the repository is large, keep policies in a separate repository"
            raise self.refuse(SourceFault.TOO_LONG, sentence, remedy)

    def failed(self, error: GitFailed, remedy: str) -> Refused:
        return self.refuse(SourceFault.GIT_FAILED, f"git cannot read the repository: {error}", remedy)


class Run(msgspec.Struct, frozen=True):
    """One process to start; `filling` is the folder that it writes to, if any."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    stdin: bytes = b""
    most_bytes: int = 1 << 20
    filling: Path | None = None

    def __repr__(self) -> str:
        return f"Run({self.arguments})"  # the environment may contain a token


def run(one: Run, session: Session) -> bytes:
    """Git's stdout. Raises GitFailed for its errors, Refused if a limit is exceeded."""
    session.look_at_the_clock()
    git = shutil.which("git")
    if git is None:
        raise session.refuse(SourceFault.GIT_FAILED, "there is no git on PATH", "install git 2.39 or newer")
    process = subprocess.Popen(
        [git, *one.arguments],
        env=one.environment,
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # the whole group can be ended
    )
    with process:
        try:
            _limit_memory(process.pid, session.bounds.memory_bytes)
            output, talk = _converse(process, one, session)
            _wait(process, session)
        finally:
            _end(process)
    _look_at_the_disk(one, session)
    if process.returncode:
        raise GitFailed(redacted(_gist(talk), session.secrets))
    return output


def _converse(process: subprocess.Popen[bytes], one: Run, session: Session) -> tuple[bytes, bytes]:
    """Writes stdin and reads both outputs concurrently, so that neither side blocks."""
    said = {"stdout": bytearray(), "stderr": bytearray()}
    to_feed = memoryview(one.stdin)
    with selectors.DefaultSelector() as selector:
        for name in ("stdin", "stdout", "stderr"):
            stream: IO[bytes] = getattr(process, name)
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_WRITE if name == "stdin" else selectors.EVENT_READ, name)
        while selector.get_map():
            session.look_at_the_clock()
            _look_at_the_disk(one, session)
            for key, _ in selector.select(LOOK_SECONDS):
                if key.data == "stdin":
                    to_feed = feed(key.fd, to_feed)
                    is_done = not to_feed
                else:
                    chunk = os.read(key.fd, CHUNK_BYTES)
                    most_bytes = one.most_bytes if key.data == "stdout" else TALK_BYTES
                    # One byte more than the limit is kept, to detect more output.
                    said[key.data] += chunk[: max(0, most_bytes + 1 - len(said[key.data]))]
                    is_done = not chunk
                if is_done:
                    selector.unregister(key.fileobj)
                    getattr(process, key.data).close()
            if len(said["stdout"]) > one.most_bytes:
                sentence = f"git {one.arguments[0]} prints more than {one.most_bytes:,} bytes"
                raise session.refuse(SourceFault.TOO_MUCH, sentence, "name a folder that holds only policies")
    return bytes(said["stdout"]), bytes(said["stderr"])


def feed(descriptor: int, to_feed: memoryview) -> memoryview:
    """Writes what a pipe takes now, and returns the rest."""
    try:
        return to_feed[os.write(descriptor, to_feed[:CHUNK_BYTES]) :]
    except BrokenPipeError:  # the process has read enough; its output and exit code give the reason
        return to_feed[len(to_feed) :]


def _wait(process: subprocess.Popen[bytes], session: Session) -> None:
    """Waits until git has ended: its streams close a little earlier."""
    while True:
        try:
            process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            session.look_at_the_clock()
        else:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole group, unless git ended normally. Its process id stays reserved until the wait."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(GRACE_SECONDS)


def _limit_memory(pid: int, memory_bytes: int) -> None:
    """Limits git's memory: a remote may announce endless references, which git keeps in memory."""
    if hasattr(resource, "prlimit"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


def _look_at_the_disk(one: Run, session: Session) -> None:
    if one.filling is None:
        return
    most_bytes = session.bounds.disk_bytes
    if (held_bytes := _held(one.filling)) > most_bytes:
        sentence = (
            f"the repository sends at least {held_bytes:,} bytes; the limit for a revision is {most_bytes:,} on disk"
        )
        raise session.refuse(SourceFault.TOO_MUCH, sentence, "keep policies in a separate repository")


def _held(folder: Path) -> int:
    total_bytes = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # git renames files meanwhile
                total_bytes += Path(inner, name).lstat().st_size
    return total_bytes


def _gist(talk: bytes) -> str:
    """The last lines that give the reason, as one line."""
    lines = [line.strip() for line in talk.decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "remote:"))] or lines
    return "; ".join(telling[-3:]) or "it gave no reason"


# --- Environment of a git process: no user or system settings, no prompts.
#
# The environment is built from nothing, because inherited variables can name programs (GIT_SSH, GIT_CONFIG_PARAMETERS)
# or another repository (GIT_DIR, set by every hook). Settings given here override those of a repository. A token is
# passed in the environment, which only the same user can read, and never as an argument.

# Locations of programs, proxies and certificate authorities; git runs none of these.
INHERITED = (
    "PATH", "LD_LIBRARY_PATH", "TMPDIR", "SSH_AUTH_SOCK",
    "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH",
)  # fmt: skip

ALWAYS = {
    "HOME": os.devnull,  # no settings, no .netrc
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": os.devnull,
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "",  # set but empty: not even the program named by a repository
    "SSH_ASKPASS": "",
    "SSH_ASKPASS_REQUIRE": "never",
    "GIT_NO_REPLACE_OBJECTS": "1",  # an id always means its own content
    "GIT_NO_LAZY_FETCH": "1",  # missing objects stay missing
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_PAGER": "cat",
}

SETTINGS = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.attributesFile", os.devnull),
    ("core.askPass", ""),
    ("core.commitGraph", "false"),  # a cache of commits that may be wrong
    ("core.bigFileThreshold", "1m"),  # larger blobs are streamed, not held in memory
    ("credential.helper", ""),  # empties the list
    ("protocol.allow", "never"),
    ("protocol.ext.allow", "never"),
    ("protocol.file.allow", "never"),
    ("http.followRedirects", "false"),  # a token is only sent to its own host
    ("http.sslVerify", "true"),
    ("transfer.bundleURI", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("fetch.unpackLimit", "1"),
    ("submodule.recurse", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)

# Without -F, a user's configuration could name programs to run.
SSH = (
    "ssh", "-F", os.devnull, "-oBatchMode=yes", "-oStrictHostKeyChecking=yes", "-oPermitLocalCommand=no",
    "-oForwardAgent=no", "-oForwardX11=no", "-oClearAllForwardings=yes", "-oControlMaster=no",
)  # fmt: skip


class Credentials(msgspec.Struct, frozen=True):
    """Credentials of a remote: a token for https, files for SSH (by default the user's keys and known hosts)."""

    token: str = ""
    username: str = "token"  # most hosts only check the token
    ssh_key: str = ""
    known_hosts: str = ""

    def __repr__(self) -> str:
        return f"Credentials({self.username}, token {'given' if self.token else 'not given'})"

    @property
    def basic(self) -> str:
        """The HTTP Basic value."""
        return base64.b64encode(f"{self.username}:{self.token}".encode()).decode()

    @property
    def secrets(self) -> tuple[str, ...]:
        """Every form in which a message could reveal the token."""
        return (self.token, quote(self.token, safe=""), self.basic) if self.token else ()


def credentials_for(address: RepositoryAddress, given: Credentials) -> Credentials:
    """Credentials in the address, if any, otherwise the given ones."""
    if address.password:
        return Credentials(address.password, address.user)
    if address.user and given.token:
        return Credentials(given.token, address.user)
    if address.user and address.transport == "https":
        return Credentials(address.user)  # https://TOKEN@host, as some hosts write it
    return given


def reading(git_dir: str) -> dict[str, str]:
    """Environment of a process that reads a repository on disk and can contact no other."""
    return _environment(git_dir, "none", SETTINGS)


def fetching(git_dir: str, address: RepositoryAddress, credentials: Credentials) -> dict[str, str]:
    """Environment of a process that fetches from a remote, named origin."""
    settings = [*SETTINGS, (f"protocol.{address.transport}.allow", "always"), ("remote.origin.url", address.location)]
    if address.transport == "https" and credentials.token:
        host = urlsplit(address.location).netloc
        settings.append((f"http.https://{host}/.extraHeader", f"Authorization: Basic {credentials.basic}"))
    environment = _environment(git_dir, address.transport, settings)
    environment["GIT_SSH_VARIANT"] = "ssh"
    key = ["-oIdentitiesOnly=yes", f"-oIdentityFile={credentials.ssh_key}"] if credentials.ssh_key else []
    hosts = [f"-oUserKnownHostsFile={credentials.known_hosts}"] if credentials.known_hosts else []
    environment["GIT_SSH_COMMAND"] = shlex.join([*SSH, *key, *hosts])
    return environment


def _environment(
    git_dir: str, allowed: str, settings: tuple[tuple[str, str], ...] | list[tuple[str, str]]
) -> dict[str, str]:
    environment = {name: os.environ[name] for name in INHERITED if name in os.environ} | ALWAYS
    environment |= {"GIT_DIR": git_dir, "GIT_ALLOW_PROTOCOL": allowed, "GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings):
        environment[f"GIT_CONFIG_KEY_{number}"] = key
        environment[f"GIT_CONFIG_VALUE_{number}"] = value
    return environment
