"""Faults in templates, with locations: an ordered table from exceptions to faults."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, TypedDict

from jinja2 import TemplateNotFound, TemplateSyntaxError, UndefinedError
from jinja2.environment import Environment
from jinja2.exceptions import SecurityError
from jinja2.utils import missing

from reconciler.sources.rendering.child.line_marks import TAGS, NoSuchTag
from reconciler.sources.rendering.child.sandbox import OutOfTime, TooMuch, Unknown, kind_of

LONGEST_SENTENCE = 300
LONGEST_WORD = 60
MOST_KNOWN = 200
SYNTAX, UNDEFINED, REFUSED, TOO_MUCH, NO_TEMPLATE, FAILED = "RC401", "RC402", "RC403", "RC404", "RC405", "RC406"
_NOT_NEEDED = frozenset({"tojson", "safe", "escape", "e", "forceescape"})


class Fault(TypedDict):
    """A fault as sent to the parent, which knows the text of the line."""

    code: str
    name: str
    line: int
    sentence: str
    word: str  # the word to underline
    remedy: str


class TemplateRequest(TypedDict):
    index: int
    template: str
    values: dict[str, Any]


class RaisedError(NamedTuple):
    error: Any  # of the kinds beside it in the table
    values: dict[str, Any]
    environment: Environment


class FaultText(NamedTuple):
    code: str
    sentence: str
    word: str = ""
    known: Iterable[object] = ()  # candidates for a suggestion
    remedy: str = ""


def fault_of(error: BaseException, request: TemplateRequest, environment: Environment) -> Fault:
    name, line = _place(error, request["template"])
    tell = next(tell for kind, tell in _TABLE if isinstance(error, kind))
    fault_text = tell(RaisedError(error, request["values"], environment))
    sentence = _in_one_line(fault_text.sentence)[:LONGEST_SENTENCE] + _did_you_mean(fault_text)
    return Fault(
        code=fault_text.code, name=name, line=line, sentence=sentence, word=fault_text.word, remedy=fault_text.remedy
    )


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _did_you_mean(fault_text: FaultText) -> str:
    known = sorted(str(word) for word in fault_text.known if len(str(word)) <= LONGEST_WORD)[:MOST_KNOWN]
    by_fold = {word.casefold(): word for word in known}
    word = fault_text.word.casefold()[:LONGEST_WORD]
    close = difflib.get_close_matches(word, by_fold, n=1, cutoff=0.6) if fault_text.word else []
    return f'; did you mean "{by_fold[close[0]]}"?' if close else ""


def _place(error: BaseException, name: str) -> tuple[str, int]:
    """Location in the innermost template; Python's own lines do not help the template's author."""
    if isinstance(error, TemplateSyntaxError):
        return error.name or name, error.lineno
    line = 0
    trace: TracebackType | None = error.__traceback__
    while trace is not None:
        template = trace.tb_frame.f_globals.get("__jinja_template__")
        if template is not None:
            name, line = template.name, template.get_corresponding_lineno(trace.tb_lineno)
        trace = trace.tb_next
    return name, line


def _tag(raised: RaisedError) -> FaultText:
    if raised.error.tag == "call":
        return FaultText(
            SYNTAX, "the tag call is not supported", raised.error.tag, remedy="print the macro: {{ name(…) }}"
        )
    return FaultText(SYNTAX, f'there is no tag "{raised.error.tag}"', raised.error.tag, TAGS)


def _syntax(raised: RaisedError) -> FaultText:
    message = (raised.error.message or "").rstrip(".")
    for what, known in (("filter", raised.environment.filters), ("test", raised.environment.tests)):
        if message.startswith(f"No {what} named"):
            word = message.split("'")[1]
            if word in _NOT_NEEDED:
                return FaultText(
                    SYNTAX, f'there is no {what} "{word}"', word, remedy="remove it: values are written as JSON"
                )
            return FaultText(SYNTAX, f'there is no {what} "{word}"', word, known)
    return FaultText(SYNTAX, message[:1].lower() + message[1:])


def _undefined(raised: RaisedError) -> FaultText:
    if not isinstance(raised.error, Unknown):
        return FaultText(UNDEFINED, raised.error.message or "a value is undefined")
    word, owner = str(raised.error.name or ""), raised.error.owner
    if raised.error.hint:
        return FaultText(UNDEFINED, raised.error.hint.rstrip("."), word)
    if owner is missing:
        return FaultText(UNDEFINED, f'there is no value "{word}"', word, [*raised.values, *raised.environment.globals])
    if isinstance(owner, Mapping):
        return FaultText(UNDEFINED, f'there is no field "{word}" in this map', word, owner)
    if owner is None:
        return FaultText(UNDEFINED, f'"{word}" is read from null', word, remedy="first test whether the value is none")
    return FaultText(UNDEFINED, f'{kind_of(owner)} has no "{word}"', word)


def _absent(raised: RaisedError) -> FaultText:
    known = raised.environment.loader.list_templates() if raised.environment.loader else []
    return FaultText(NO_TEMPLATE, f'there is no template "{raised.error.name}"', str(raised.error.name), known)


_SMALLER = "make the output of the template smaller, or use fewer or shorter loops"


def _too_much(raised: RaisedError) -> FaultText:
    what = "more memory than the limit" if isinstance(raised.error, MemoryError) else str(raised.error)
    return FaultText(TOO_MUCH, f"rendering takes {what}", remedy=_SMALLER)


def _refused(raised: RaisedError) -> FaultText:
    remedy = "a template can only use the given values"
    return FaultText(REFUSED, raised.error.message or "this is refused", remedy=remedy)


_ENDLESS = FaultText(TOO_MUCH, "this is nested too deeply, or includes itself", remedy="limit the nesting")
# First match wins.
_TABLE: tuple[tuple[tuple[type[BaseException], ...], Callable[[RaisedError], FaultText]], ...] = (
    ((NoSuchTag,), _tag),
    ((TemplateSyntaxError,), _syntax),
    ((UndefinedError,), _undefined),
    ((SecurityError,), _refused),
    ((TemplateNotFound,), _absent),
    ((RecursionError,), lambda _: _ENDLESS),
    ((TooMuch, OutOfTime, MemoryError), _too_much),
    ((BaseException,), lambda raised: FaultText(FAILED, f"the template cannot be rendered: {raised.error}")),
)
