"""What went wrong in a template, with its place: exceptions become faults, by an ordered table."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, TypedDict

from jinja2 import TemplateNotFound, TemplateSyntaxError, UndefinedError
from jinja2.environment import Environment
from jinja2.exceptions import SecurityError
from jinja2.utils import missing

from reconciler.sources.rendering.child.bounds import OutOfTime, TooMuch
from reconciler.sources.rendering.child.line_marks import TAGS, NoSuchTag
from reconciler.sources.rendering.child.sandbox import Unknown
from reconciler.sources.rendering.child.value_text import kind_of

LONGEST_SENTENCE = 300
LONGEST_WORD = 60
MOST_KNOWN = 200
SYNTAX, UNDEFINED, REFUSED, TOO_MUCH, NO_TEMPLATE, FAILED = "RC401", "RC402", "RC403", "RC404", "RC405", "RC406"
_NOT_NEEDED = frozenset({"tojson", "safe", "escape", "e", "forceescape"})


class Fault(TypedDict):
    """As it goes to the parent, who knows the text of the line."""

    code: str
    name: str
    line: int
    sentence: str
    word: str  # what to underline
    remedy: str


class Request(TypedDict):
    """What is being rendered."""

    index: int
    template: str
    values: dict[str, Any]


class Seen(NamedTuple):
    """An exception, and what it was raised over."""

    wrong: Any  # of the kinds in front of it in the table
    values: dict[str, Any]
    environment: Environment


class Told(NamedTuple):
    """What there is to say, wherever it was."""

    code: str
    sentence: str
    word: str = ""
    known: Iterable[object] = ()  # what could have been meant by the word
    remedy: str = ""


def fault_of(wrong: BaseException, request: Request, environment: Environment) -> Fault:
    """The fault behind an exception."""
    name, line = _place(wrong, request["template"])
    tell = next(tell for kind, tell in _TABLE if isinstance(wrong, kind))
    told = tell(Seen(wrong, request["values"], environment))
    sentence = _in_one_line(told.sentence)[:LONGEST_SENTENCE] + _did_you_mean(told)
    return Fault(code=told.code, name=name, line=line, sentence=sentence, word=told.word, remedy=told.remedy)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _did_you_mean(told: Told) -> str:
    known = sorted(str(word) for word in told.known if len(str(word)) <= LONGEST_WORD)[:MOST_KNOWN]
    by_fold = {word.casefold(): word for word in known}
    word = told.word.casefold()[:LONGEST_WORD]
    close = difflib.get_close_matches(word, by_fold, n=1, cutoff=0.6) if told.word else []
    return f'; did you mean "{by_fold[close[0]]}"?' if close else ""


def _place(wrong: BaseException, name: str) -> tuple[str, int]:
    """The innermost template on the way to the exception; Python's own lines say nothing to its author."""
    if isinstance(wrong, TemplateSyntaxError):
        return wrong.name or name, wrong.lineno
    line = 0
    trace: TracebackType | None = wrong.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            name, line = template.name, template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return name, line


def _tag(seen: Seen) -> Told:
    if seen.wrong.tag == "call":
        return Told(SYNTAX, "the tag call is not supported", seen.wrong.tag, remedy="print the macro: {{ name(…) }}")
    return Told(SYNTAX, f'there is no tag "{seen.wrong.tag}"', seen.wrong.tag, TAGS)


def _syntax(seen: Seen) -> Told:
    message = (seen.wrong.message or "").rstrip(".")
    for what, known in (("filter", seen.environment.filters), ("test", seen.environment.tests)):
        if message.startswith(f"No {what} named"):
            word = message.split("'")[1]
            if word in _NOT_NEEDED:
                return Told(SYNTAX, f'there is no {what} "{word}"', word, remedy="leave it out: values become JSON")
            return Told(SYNTAX, f'there is no {what} "{word}"', word, known)
    return Told(SYNTAX, message[:1].lower() + message[1:])


def _undefined(seen: Seen) -> Told:
    if not isinstance(seen.wrong, Unknown):
        return Told(UNDEFINED, seen.wrong.message or "a value is undefined")
    word, owner = str(seen.wrong.name or ""), seen.wrong.owner
    if seen.wrong.hint:
        return Told(UNDEFINED, seen.wrong.hint.rstrip("."), word)
    if owner is missing:
        return Told(UNDEFINED, f'there is no value "{word}"', word, [*seen.values, *seen.environment.globals])
    if isinstance(owner, Mapping):
        return Told(UNDEFINED, f'there is no field "{word}" in this map', word, owner)
    if owner is None:
        return Told(UNDEFINED, f'"{word}" is asked of null', word, remedy="ask first whether the value is none")
    return Told(UNDEFINED, f'{kind_of(owner)} has no "{word}"', word)


def _refused(seen: Seen) -> Told:
    remedy = "a template sees the values that it is given, and nothing behind them"
    return Told(REFUSED, seen.wrong.message or "this is refused", remedy=remedy)


def _absent(seen: Seen) -> Told:
    known = seen.environment.loader.list_templates() if seen.environment.loader else []
    return Told(NO_TEMPLATE, f'there is no template "{seen.wrong.name}"', str(seen.wrong.name), known)


def _endless(_: Seen) -> Told:
    return Told(TOO_MUCH, "this is nested too deep, or contains itself", remedy="end it after some levels")


def _too_much(seen: Seen) -> Told:
    what = "more memory than it may have" if isinstance(seen.wrong, MemoryError) else str(seen.wrong)
    return Told(TOO_MUCH, f"rendering this takes {what}", remedy="render less, or in fewer steps")


def _failed(seen: Seen) -> Told:
    return Told(FAILED, f"this can't be rendered: {seen.wrong}")


# First match wins.
_TABLE: tuple[tuple[tuple[type[BaseException], ...], Callable[[Seen], Told]], ...] = (
    ((NoSuchTag,), _tag),
    ((TemplateSyntaxError,), _syntax),
    ((UndefinedError,), _undefined),
    ((SecurityError,), _refused),
    ((TemplateNotFound,), _absent),
    ((RecursionError,), _endless),
    ((TooMuch, OutOfTime, MemoryError), _too_much),
    ((BaseException,), _failed),
)
