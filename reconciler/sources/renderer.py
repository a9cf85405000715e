"""Renders templates in a child process with limited resources.

Theory of operation. All requests of a call go to one child, which answers one after another. A request that exceeds
a limit ends the child; the first request without an answer caused it. The remaining requests go to another child,
with half the time limit for each, and templates that caused no failure come first: so harmless templates are
rendered before the time of the call ends. The others fail with a message.
"""

import importlib.util
import json
import math
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from reconciler.model.bundle import Rendering, RenderRequest, Text
from reconciler.model.problem import Problem
from reconciler.policy.words import did_you_mean
from reconciler.sources.repository.process import CHUNK_BYTES, feed

# --- One conversation with a child process: it gets all input at once; its output lines are read until it ends or the
# deadline.
#
# A separate process is required, because only a process can limit a template's time and memory from outside.


class Exchange(msgspec.Struct, frozen=True):
    """Input of a child, and the deadline for its answers."""

    command: Sequence[str]
    environment: dict[str, str]
    sent: bytes
    deadline: float  # of time.monotonic()
    longest_line_bytes: int


class Ending(msgspec.Struct, frozen=True):
    """How a conversation ended: end of output, deadline, a line that was too long, or a failed start."""

    why: Literal["ended", "overdue", "flooded", "not started"]
    signal: int = 0  # signal that ended the child
    detail: str = ""


class _Flooded(Exception):
    """A line is longer than any valid answer."""


def converse(exchange: Exchange, take: Callable[[bytes], None]) -> Ending:
    """Starts the child, passes each of its lines to `take`, and has ended the child when this returns."""
    try:
        process = subprocess.Popen(
            exchange.command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=exchange.environment,
            cwd="/",
            start_new_session=True,  # Ctrl-C in a terminal reaches only the parent, which ends the child
        )
    except OSError as error:
        return Ending("not started", detail=str(error))
    with process:
        try:
            why: Literal["ended", "overdue", "flooded"] = "ended" if _exchange(process, exchange, take) else "overdue"
        except _Flooded:
            why = "flooded"
        finally:
            if not _ended_by_itself(process, exchange.deadline):
                process.kill()
        return Ending(why, signal=max(0, -process.wait()))


def _ended_by_itself(process: subprocess.Popen[bytes], deadline: float) -> bool:
    """Waits briefly for a child that closed its output, to learn how it ended."""
    if process.stdout is None or not process.stdout.closed:
        return False
    try:
        process.wait(timeout=max(0.0, min(1.0, deadline - time.monotonic())))
    except subprocess.TimeoutExpired:
        return False
    return True


def _exchange(process: subprocess.Popen[bytes], exchange: Exchange, take: Callable[[bytes], None]) -> bool:
    """Whether the child reached the end of its output before the deadline."""
    stdin, stdout = process.stdin, process.stdout
    if stdin is None or stdout is None:
        return True
    unsent, heard = memoryview(exchange.sent), bytearray()
    os.set_blocking(stdin.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(stdin, selectors.EVENT_WRITE)
        selector.register(stdout, selectors.EVENT_READ)
        while (left := exchange.deadline - time.monotonic()) > 0:
            ready = {key.fileobj for key, _ in selector.select(left)}
            if stdin in ready:
                unsent = feed(stdin.fileno(), unsent)
                if not unsent:
                    selector.unregister(stdin)
                    stdin.close()
            if stdout in ready:
                said = os.read(stdout.fileno(), CHUNK_BYTES)
                if not said:
                    stdout.close()
                    return True
                _take_lines(heard, said, take)
                if len(heard) > exchange.longest_line_bytes:
                    raise _Flooded
    return False


def _take_lines(heard: bytearray, said: bytes, take: Callable[[bytes], None]) -> None:
    """Appends the new output, and passes on complete lines."""
    *whole, rest = said.split(b"\n")
    for line in whole:
        heard += line
        take(bytes(heard))
        heard.clear()
    heard += rest


# --- Templates of one call by name, and problems located in them.

FOLDER = "templates/"

# Names are part of line marks and sentences.
_NAME = re.compile("[^\x00-\x1f\x7f-\x9f\ue000\ue001\u2028\u2029]+")


class Fault(msgspec.Struct, frozen=True):
    """A fault in a template as the child reports it; the name is the template's, line 0 means the whole template."""

    code: str
    name: str
    sentence: str
    line: int = 0
    word: str = ""  # the word to underline
    remedy: str = ""


class TemplateTexts:
    """Templates that can be rendered, and the faults of the others."""

    def __init__(self, templates: Sequence[Text]) -> None:
        self.texts: dict[str, str] = {}
        self.broken: dict[str, tuple[int, str]] = {}
        for template in templates:
            if not _NAME.fullmatch(template.path):
                continue
            try:
                self.texts[template.path] = template.content.decode("utf-8-sig")
            except UnicodeDecodeError as error:
                line = template.content[: error.start].count(b"\n") + 1
                self.broken[template.path] = line, f"byte {error.start + 1} of the file is not UTF-8"

    def lacks(self, name: str) -> Problem | None:
        """The problem if a requested template does not exist. It has no file: the policy that names it is at fault."""
        if name in self.texts or name in self.broken:
            return None
        if name.startswith("/") or ".." in name.split("/"):
            text = f'"{name}" is outside of the templates folder'
            return Problem("", 0, 0, "RC403", text, "name a template of the bundle")
        text = f'there is no template "{name}"{did_you_mean(name, [*self.texts, *self.broken])}'
        return Problem("", 0, 0, "RC405", text, f"add {FOLDER}{name}, or name an existing template")

    def problem(self, fault: Fault) -> Problem:
        """The fault with its source line, and a column if its word occurs there."""
        lines = self.texts.get(fault.name, "").splitlines()
        excerpt = lines[fault.line - 1] if 0 < fault.line <= len(lines) else ""
        blanks = len(excerpt) - len(excerpt.lstrip())
        at = excerpt.find(fault.word) if fault.word else -1
        return Problem(
            file=FOLDER + fault.name,
            line=fault.line,
            column=at + 1 if at >= 0 else blanks + 1 if excerpt else 0,
            code=fault.code,
            sentence=fault.sentence,
            remedy=fault.remedy,
            width=len(fault.word) if at >= 0 else max(1, len(excerpt.strip())),
            excerpt=excerpt,
        )


CHILD = "reconciler.sources.rendering.child.main"
# The child inherits no environment and imports only from the given folders. Hashes are fixed, so that sets have a
# stable order; this is why -I is not used, which would ignore PYTHONHASHSEED.
ISOLATED = ("-P", "-s", "-S", "-B", "-W", "ignore")
ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
BEGIN = "import importlib, sys; sys.path += sys.argv[2:]; importlib.import_module(sys.argv[1]).main()"
IMPORTED = ("reconciler", "jinja2", "markupsafe")

TOO_MUCH = "RC404"
REMEDY = "make the output of the template smaller, or use fewer or shorter loops"
OUT_OF_TIME = frozenset({signal.SIGXCPU, signal.SIGPROF, signal.SIGVTALRM})


class RenderBounds(msgspec.Struct, frozen=True):
    call_seconds: float = 10
    share_seconds: float = 1  # CPU time of one rendering
    least_share_seconds: float = 0.1
    memory_bytes: int = 512 << 20  # of the child
    rendering_bytes: int = 8 << 20
    rendering_lines: int = 100_000
    call_bytes: int = 32 << 20
    call_lines: int = 1_000_000


class Answer(msgspec.Struct, frozen=True):
    """One line of the child; see `rendering.child.main`."""

    index: int
    text: str = ""
    files: list[str] = []
    lines: list[int] = []
    fault: Fault | None = None


def render(
    templates: Sequence[Text], requests: Sequence[RenderRequest], bounds: RenderBounds | None = None
) -> tuple[Rendering, ...]:
    """One rendering per request, in order. Equal arguments give equal bytes; time and memory are bounded."""
    return _Call(TemplateTexts(templates), requests, bounds or RenderBounds()).rendered()


class _Call:
    def __init__(self, templates: TemplateTexts, requests: Sequence[RenderRequest], bounds: RenderBounds) -> None:
        self._templates = templates
        self._requests = requests
        self._bounds = bounds
        self._done: dict[int, Rendering] = {}
        self._harmful: set[str] = set()  # templates
        self._places: dict[tuple[str, int], tuple[str, int]] = {}  # each place once, however many lines came from it
        self._bytes_left = bounds.call_bytes
        self._lines_left = bounds.call_lines
        self._begun = False  # the child of this round is ready
        self._was_told = False  # the child itself named the request that exceeded a limit

    def rendered(self) -> tuple[Rendering, ...]:
        for index, request in enumerate(self._requests):
            if problem := self._templates.lacks(request.template):
                self._done[index] = Rendering(problem=problem)
        deadline = time.monotonic() + self._bounds.call_seconds
        share_seconds = self._bounds.share_seconds
        while (waiting := self._waiting()) and time.monotonic() < deadline:
            self._begun = self._was_told = False
            ending = self._round(waiting, share_seconds, deadline)
            if not self._begun and ending.why != "overdue":
                text = f"the template renderer process could not be started {ending.detail}".strip()
                self._give_up(text, "check the memory and process limits of this machine")
            elif (
                ending.why != "overdue" and not self._was_told and (left := [i for i in waiting if i not in self._done])
            ):
                self._fail(left[0], f"rendering takes {_ending_text(ending)}", REMEDY)
            share_seconds = max(share_seconds / 2, self._bounds.least_share_seconds)
        text = f"the time limit of {self._bounds.call_seconds:g} s for all renderings ended before this one was done"
        self._give_up(text, "first reduce the renderings that exceed a limit")
        return tuple(self._done[index] for index in range(len(self._requests)))

    def _waiting(self) -> list[int]:
        left = [index for index in range(len(self._requests)) if index not in self._done]
        return sorted(left, key=lambda index: self._requests[index].template in self._harmful)

    def _round(self, waiting: Sequence[int], share_seconds: float, deadline: float) -> Ending:
        """Runs one child for as many of the waiting requests as possible."""
        limits = {
            "memory_bytes": self._bounds.memory_bytes,
            "cpu_seconds": math.ceil(self._bounds.call_seconds) + 1,
            "share_seconds": share_seconds,
            "rendering_bytes": self._bounds.rendering_bytes,
            "rendering_lines": self._bounds.rendering_lines,
        }
        requested = [
            {"index": index, "template": self._requests[index].template, "values": self._requests[index].values}
            for index in waiting
        ]
        job = {"templates": self._templates.texts, "broken": self._templates.broken, "requests": requested}
        exchange = Exchange(
            command=(sys.executable, *ISOLATED, "-c", BEGIN, CHILD, *_folders()),
            environment=ENVIRONMENT,
            sent=json.dumps({**job, "limits": limits}).encode(),
            deadline=deadline,
            longest_line_bytes=3 * self._bounds.rendering_bytes,
        )
        try:
            return converse(exchange, self._take)
        except (msgspec.DecodeError, LookupError):
            return Ending("flooded")  # not an output of our child

    def _take(self, line: bytes) -> None:
        """Handles a line of the child: its start, or an answer."""
        if not self._begun:
            self._begun = True
            return
        answer = msgspec.json.decode(line, type=Answer)
        if answer.index in self._done or not 0 <= answer.index < len(self._requests):
            raise LookupError(answer.index)
        if answer.fault:
            self._done[answer.index] = Rendering(problem=self._templates.problem(answer.fault))
            if answer.fault.code == TOO_MUCH:
                self._was_told = True
                self._harmful.add(self._requests[answer.index].template)
            return
        self._bytes_left -= sys.getsizeof(answer.text)
        self._lines_left -= len(answer.lines) // 2
        if self._bytes_left < 0 or self._lines_left < 0:
            most = f"{self._bounds.call_bytes >> 20} MiB or {self._bounds.call_lines:,} lines"
            self._fail(answer.index, f"all renderings together exceed {most} with this one", REMEDY)
            return
        pairs = zip(answer.lines[::2], answer.lines[1::2], strict=True)
        lines = tuple(self._place(answer.files[file], line) for file, line in pairs)
        self._done[answer.index] = Rendering(answer.text, lines)

    def _place(self, name: str, line: int) -> tuple[str, int]:
        found = self._places.get((name, line))
        return found or self._places.setdefault((name, line), (FOLDER + name, line))

    def _fail(self, index: int, sentence: str, remedy: str) -> None:
        name = self._requests[index].template
        fault = Fault(TOO_MUCH, name, sentence, remedy=remedy)
        self._done[index] = Rendering(problem=self._templates.problem(fault))
        self._harmful.add(name)

    def _give_up(self, sentence: str, remedy: str) -> None:
        for index in self._waiting():
            self._fail(index, sentence, remedy)


def _ending_text(ending: Ending) -> str:
    if ending.why == "flooded":
        return "more output than the limit"
    if ending.signal in OUT_OF_TIME:
        return "more time than the limit"
    return "more memory than the limit"


def _folders() -> list[str]:
    """Import folders of the child: its own code and Jinja, without other installed packages."""
    origins = [spec.origin for name in IMPORTED if (spec := importlib.util.find_spec(name)) and spec.origin]
    return sorted({str(Path(origin).parents[1]) for origin in origins})
