"""Renders templates in a child process that may not take more than its share, whatever they try.

Theory of operation. All requests of a call go to one child, which answers one after another. A request that takes too
much ends the child, or makes it end itself; the first request without an answer did it. What is left goes to another
child, with half the share of time for each, and first those whose templates have harmed nobody: so what is innocent is
rendered before the time of the call is up, and of the rest it is said that it was not.
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

# --- One conversation with a child process: it gets all input at once; its lines are taken until it ends or time is up.
#
# A process, as only from outside can a template be kept from taking all time and memory.

CHUNK_BYTES = 1 << 16


class Exchange(msgspec.Struct, frozen=True):
    """What is said to a child, and how long it may take to answer."""

    command: Sequence[str]
    environment: dict[str, str]
    sent: bytes
    deadline: float  # of time.monotonic()
    longest_line_bytes: int


class Ending(msgspec.Struct, frozen=True):
    """How it went: at the end of its output, at the deadline, with a line that was too long, or never begun."""

    why: Literal["ended", "overdue", "flooded", "not started"]
    signal: int = 0  # that ended it
    detail: str = ""


class _Flooded(Exception):
    """A line is longer than any answer can be."""


def converse(exchange: Exchange, take: Callable[[bytes], None]) -> Ending:
    """Starts the child, hands over each line that it says, and has ended it when this returns."""
    try:
        process = subprocess.Popen(
            exchange.command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=exchange.environment,
            cwd="/",
            start_new_session=True,  # Ctrl-C in a terminal is for us, and we end it
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
    """What closed its output is as good as gone; how it ended is worth a moment."""
    if process.stdout is None or not process.stdout.closed:
        return False
    try:
        process.wait(timeout=max(0.0, min(1.0, deadline - time.monotonic())))
    except subprocess.TimeoutExpired:
        return False
    return True


def _exchange(process: subprocess.Popen[bytes], exchange: Exchange, take: Callable[[bytes], None]) -> bool:
    """Whether the child reached the end of its output in time."""
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
                unsent = _write(stdin.fileno(), unsent)
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


def _write(descriptor: int, unsent: memoryview) -> memoryview:
    try:
        return unsent[os.write(descriptor, unsent[:CHUNK_BYTES]) :]
    except BrokenPipeError:
        return unsent[:0]  # it has ended; its output says the rest


def _take_lines(heard: bytearray, said: bytes, take: Callable[[bytes], None]) -> None:
    """Adds what was said to what was heard before, and hands over the lines that are whole."""
    *whole, rest = said.split(b"\n")
    for line in whole:
        heard += line
        take(bytes(heard))
        heard.clear()
    heard += rest


# --- The templates of one call by name, and problems that point into them.

FOLDER = "templates/"

# Names stand in line marks, and in sentences.
_NAME = re.compile("[^\x00-\x1f\x7f-\x9f\ue000\ue001\u2028\u2029]+")


class Fault(msgspec.Struct, frozen=True):
    """What is wrong with a template, as the child says it; the name is the template's, a line of 0 all of it."""

    code: str
    name: str
    sentence: str
    line: int = 0
    word: str = ""  # what to underline
    remedy: str = ""


class TemplateTexts:
    """Those that can be rendered, and what is wrong with the others."""

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
        """What to say where a template is asked for that is not there."""
        if name in self.texts or name in self.broken:
            return None
        if name.startswith("/") or ".." in name.split("/"):
            text = f'"{name}" leads out of the folder of templates'
            return self.problem(Fault("RC403", name, text, remedy="name a template of the bundle"))
        text = f'there is no template "{name}"{did_you_mean(name, [*self.texts, *self.broken])}'
        return self.problem(Fault("RC405", name, text, remedy=f"add {FOLDER}{name}, or name one that is there"))

    def problem(self, fault: Fault) -> Problem:
        """The fault with its source line, and with a column where its word stands there."""
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
# Of our environment nothing is passed on, and nothing is imported but from the folders named. Hashes are the same each
# time, so that no set shows another order; that is why it is not -I, which would not look at PYTHONHASHSEED.
ISOLATED = ("-P", "-s", "-S", "-B", "-W", "ignore")
ENVIRONMENT = {"LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}
BEGIN = "import importlib, sys; sys.path += sys.argv[2:]; importlib.import_module(sys.argv[1]).main()"
IMPORTED = ("reconciler", "jinja2", "markupsafe")

TOO_MUCH = "RC404"
REMEDY = "render less, or in fewer steps"
OUT_OF_TIME = frozenset({signal.SIGXCPU, signal.SIGPROF, signal.SIGVTALRM})


class RenderBounds(msgspec.Struct, frozen=True):
    """What one call, and one rendering of it, may take."""

    call_seconds: float = 10
    share_seconds: float = 1  # of the processor, for one rendering
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


class BoundedRenderer:
    """A Renderer whose time and memory are bounded."""

    def __init__(self, bounds: RenderBounds | None = None) -> None:
        self._bounds = bounds or RenderBounds()

    def render(self, templates: Sequence[Text], requests: Sequence[RenderRequest]) -> tuple[Rendering, ...]:
        """One rendering a request, in order."""
        return _Call(TemplateTexts(templates), requests, self._bounds).rendered()


class _Call:
    """Owner of what is known while one call of `render` lasts."""

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
        self._was_told = False  # it has said itself which request was too much for it

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
                text = f"the process that renders templates could not be started {ending.detail}".strip()
                self._give_up(text, "see whether memory or processes are short on this machine")
            elif (
                ending.why != "overdue" and not self._was_told and (left := [i for i in waiting if i not in self._done])
            ):
                self._fail(left[0], f"rendering this takes {_ending_text(ending)}", REMEDY)
            share_seconds = max(share_seconds / 2, self._bounds.least_share_seconds)
        text = f"the {self._bounds.call_seconds:g} s that all renderings may take were over before this one was done"
        self._give_up(text, "look first at the others that take too much")
        return tuple(self._done[index] for index in range(len(self._requests)))

    def _waiting(self) -> list[int]:
        left = [index for index in range(len(self._requests)) if index not in self._done]
        return sorted(left, key=lambda index: self._requests[index].template in self._harmful)

    def _round(self, waiting: Sequence[int], share_seconds: float, deadline: float) -> Ending:
        """One child, for as many of those that wait as it gets through."""
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
            return Ending("flooded")  # what no child of ours says

    def _take(self, line: bytes) -> None:
        """The child says that it begins, or answers."""
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
            self._fail(answer.index, f"with this one, all renderings together have more than {most}", REMEDY)
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
        return "more output than it may have"
    if ending.signal in OUT_OF_TIME:
        return "more time than it may have"
    return "more memory than it may have"


def _folders() -> list[str]:
    """Where the child finds itself and Jinja, without looking at anything else that is installed."""
    origins = [spec.origin for name in IMPORTED if (spec := importlib.util.find_spec(name)) and spec.origin]
    return sorted({str(Path(origin).parents[1]) for origin in origins})
