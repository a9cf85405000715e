"""Runs git, bounded in time, memory, output and disk, and ends it with all that it started.

GitPython runs no process here: it passes the whole inherited environment on and can take nothing out of it, its time
limit collects children one by one with `ps` while they make more, and it knows no limit of output or disk. It reads
objects without one (`in_process`).
"""

import contextlib
import os
import resource
import selectors
import shutil
import signal
import subprocess
import time
from pathlib import Path
from threading import Event
from typing import IO

import msgspec

from reconciler.sources.bounds import SourceBounds
from reconciler.sources.fault import Refused, SourceFault
from reconciler.sources.repository.address import redacted

LOOK_SECONDS = 0.05  # how often time, disk and the wish to stop are looked at
CHUNK_BYTES = 1 << 16
TALK_BYTES = 1 << 14  # of what git says on stderr
GRACE_SECONDS = 5.0  # for a killed process to be gone


class GitFailed(Exception):
    """Git ended with an error; the text is what it said, fit to be shown."""


class Session(msgspec.Struct, frozen=True):
    """One reading of one repository: until when, within what, and who may call it off."""

    shown: str  # the repository, as problems call it
    bounds: SourceBounds
    until: float  # of the monotonic clock
    cancelled: Event
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Session({self.shown})"

    def refuse(self, fault: SourceFault, sentence: str, remedy: str) -> Refused:
        return Refused(fault.problem(self.shown, redacted(sentence, self.secrets), redacted(remedy, self.secrets)))

    def absent(self, sentence: str, remedy: str) -> Refused:
        """The revision was read, and has no such path."""
        problem = self.refuse(SourceFault.UNREADABLE, sentence, remedy).problem
        return Refused(msgspec.structs.replace(problem, is_absent=True))

    def look_at_the_clock(self) -> None:
        """Raises Refused when the time is over, or the reading is called off."""
        if self.cancelled.is_set():
            raise self.refuse(SourceFault.TOO_LONG, "was called off while it was read", "read it again")
        if time.monotonic() >= self.until:
            sentence = f"takes git more than {self.bounds.deadline_seconds:g} s to read"
            remedy = "try again; if the repository is large, keep the policies in one of their own"
            raise self.refuse(SourceFault.TOO_LONG, sentence, remedy)

    def failed(self, error: GitFailed, remedy: str) -> Refused:
        return self.refuse(SourceFault.GIT_FAILED, f"git cannot read it: {error}", remedy)


class Run(msgspec.Struct, frozen=True):
    """One process to be: `filling` is the folder that it writes to, if any."""

    arguments: tuple[str, ...]
    environment: dict[str, str]
    stdin: bytes = b""
    most_bytes: int = 1 << 20
    filling: Path | None = None

    def __repr__(self) -> str:
        return f"Run({self.arguments})"  # the environment may hold a token


def run(one: Run, session: Session) -> bytes:
    """What git says on stdout. Raises GitFailed for its errors, Refused where a bound is met."""
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
        start_new_session=True,  # so that the whole group can be ended
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
    """Feeds stdin and drains the rest at once, so that neither side waits for the other."""
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
                    to_feed = _feed(key.fd, to_feed)
                    is_done = not to_feed
                else:
                    chunk = os.read(key.fd, CHUNK_BYTES)
                    _keep(said[key.data], chunk, one.most_bytes if key.data == "stdout" else TALK_BYTES)
                    is_done = not chunk
                if is_done:
                    selector.unregister(key.fileobj)
                    getattr(process, key.data).close()
            if len(said["stdout"]) > one.most_bytes:
                sentence = f"has git answer {one.arguments[0]} with more than {one.most_bytes:,} bytes"
                raise session.refuse(SourceFault.TOO_MUCH, sentence, "name a folder that holds only policies")
    return bytes(said["stdout"]), bytes(said["stderr"])


def _feed(descriptor: int, to_feed: memoryview) -> memoryview:
    try:
        return to_feed[os.write(descriptor, to_feed[:CHUNK_BYTES]) :]
    except BrokenPipeError:  # git has heard enough; what it says and its exit code tell why
        return to_feed[len(to_feed) :]


def _keep(said: bytearray, chunk: bytes, most_bytes: int) -> None:
    """One byte more than may be, to tell that there was more."""
    said += chunk[: max(0, most_bytes + 1 - len(said))]


def _wait(process: subprocess.Popen[bytes], session: Session) -> None:
    """Until git has ended: its streams end a little earlier."""
    while True:
        try:
            process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            session.look_at_the_clock()
        else:
            return


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends the whole group, unless git has ended in good order; until it is waited for, its number is its own."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(GRACE_SECONDS)


def _limit_memory(pid: int, memory_bytes: int) -> None:
    """A remote may announce references without end, which git keeps in memory."""
    if hasattr(resource, "prlimit"):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (memory_bytes, memory_bytes))


def _look_at_the_disk(one: Run, session: Session) -> None:
    if one.filling is None:
        return
    most_bytes = session.bounds.disk_bytes
    if (held_bytes := _held(one.filling)) > most_bytes:
        sentence = f"sends {held_bytes:,} bytes and more, and a revision may take {most_bytes:,} on disk"
        raise session.refuse(SourceFault.TOO_MUCH, sentence, "keep the policies in a repository of their own")


def _held(folder: Path) -> int:
    total_bytes = 0
    for inner, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # git renames as it goes
                total_bytes += Path(inner, name).lstat().st_size
    return total_bytes


def _gist(talk: bytes) -> str:
    """The lines that say why, the last ones, as one."""
    lines = [line.strip() for line in talk.decode("utf-8", "replace").splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "ERROR:", "remote:"))] or lines
    return "; ".join(telling[-3:]) or "it gave no reason"
