"""Renders one request after another, within limits that the process sets before it begins.

`renderer` starts the process, writes one JSON object to its stdin, and reads from its stdout an empty line when
rendering begins, then a line of JSON per request. After a request that exceeds a limit the process ends, which
discards any state of that request, and the parent starts another.
"""

import codecs
import contextlib
import json
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import jinja2.debug  # noqa: F401  Jinja imports it when something fails, and then no file can be opened any more
from jinja2.environment import Environment

from reconciler.sources.rendering.child.faults import TOO_MUCH, Fault, TemplateRequest, fault_of
from reconciler.sources.rendering.child.line_marks import marked_text, unmarked
from reconciler.sources.rendering.child.sandbox import OutOfTime, Sandbox, Texts, TooMuch

# Python's signal handler cannot run during one long multiplication; the second timer then ends the process.
GRACE_SECONDS = 0.2
# Factor for the size of a text with line marks.
MARKED = 4


class RenderProcessLimits(TypedDict):
    memory_bytes: int
    cpu_seconds: int
    share_seconds: float  # CPU time of one rendering
    rendering_bytes: int
    rendering_lines: int


class Answer(TypedDict, total=False):
    """One line of stdout."""

    index: int
    text: str
    files: list[str]
    lines: list[int]  # for each line the number of its file in `files`, and its line there
    fault: Fault


def main() -> None:
    """Reads the job, drops all rights, renders."""
    job = json.loads(sys.stdin.buffer.read())
    limits: RenderProcessLimits = job["limits"]
    codecs.lookup("unicode-escape")  # the same as with jinja2.debug
    _confine(limits)
    environment = Sandbox(Texts(job["templates"], job["broken"]))
    # Jinja builds its lexer once; no request should pay for that.
    environment.from_string("{{ 1 }}").render()
    signal.signal(signal.SIGVTALRM, _stop)
    _say(b"")
    for request in job["requests"]:
        answer = _answer(environment, request, limits)
        # A sentence may quote half a surrogate pair.
        _say(json.dumps(answer, ensure_ascii=False).encode(errors="replace"))
        if answer.get("fault", {}).get("code") == TOO_MUCH:
            return


def _confine(limits: RenderProcessLimits) -> None:
    # If memory is low, the kernel should kill this process instead of its parent.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    allowed = {
        "RLIMIT_AS": limits["memory_bytes"],
        "RLIMIT_CPU": limits["cpu_seconds"],
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NPROC": 0,
        "RLIMIT_NOFILE": 3,  # the open ones: no further file, socket or pipe
    }
    for name, most in allowed.items():
        kind = getattr(resource, name)
        _, hard = resource.getrlimit(kind)
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        try:
            resource.setrlimit(kind, (least, least))
        except (OSError, ValueError):
            if sys.platform == "linux":  # other systems lack some; the parent's clock still applies
                raise


def _say(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def _answer(environment: Environment, request: TemplateRequest, limits: RenderProcessLimits) -> Answer:
    try:
        with _timed(limits["share_seconds"]):
            text, places = _rendered(environment, request, limits)
    except (Exception, OutOfTime) as error:  # noqa: BLE001  whatever a template does is told as its fault
        return {"index": request["index"], "fault": fault_of(error, request, environment)}
    files = sorted({name for name, _ in places})
    lines = [number for name, line in places for number in (files.index(name), line)]
    return {"index": request["index"], "text": text, "files": files, "lines": lines}


def _rendered(
    environment: Environment, request: TemplateRequest, limits: RenderProcessLimits
) -> tuple[str, list[tuple[str, int]]]:
    template = environment.get_template(request["template"])
    context = template.new_context(request["values"])
    most = limits["rendering_bytes"]
    parts, size = [], 0
    for part in template.root_render_func(context):
        parts.append(marked_text(part))
        size += len(parts[-1])
        if size > MARKED * most:
            raise _too_large(most)
    marked = "".join(parts)
    if marked.count("\n") > limits["rendering_lines"]:
        raise TooMuch(f"more than the limit of {limits['rendering_lines']:,} lines per text")
    text, places = unmarked(marked)
    # Memory size: a text with one character beyond Latin-1 takes up to four bytes per character.
    if sys.getsizeof(text) > most:
        raise _too_large(most)
    return text, places


def _too_large(most_bytes: int) -> TooMuch:
    return TooMuch(f"more than the limit of {most_bytes >> 20} MiB per text")


@contextlib.contextmanager
def _timed(seconds: float) -> Iterator[None]:
    """Limits CPU time, so that a busy machine does not slow down templates."""
    try:
        signal.setitimer(signal.ITIMER_PROF, 1.25 * seconds + GRACE_SECONDS)
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.setitimer(signal.ITIMER_PROF, 0)


def _stop(*_: object) -> None:
    raise OutOfTime("more time than the limit")
