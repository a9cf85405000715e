"""The Jinja environment of templates: plain data in, only YAML values out."""

import functools
import math
import re
import types
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import BaseLoader, StrictUndefined, TemplateNotFound, TemplateSyntaxError, UndefinedError
from jinja2 import Undefined as Jinja2Undefined
from jinja2.environment import Environment
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS, do_indent
from jinja2.runtime import BlockReference, Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, missing

from reconciler.sources.rendering.child.line_marks import FOREIGN, LineMarks, Rendered, joined, marked_text

MAX_RANGE = 10_000
MAX_EXPONENT = 64
MAX_INDENT = 64

# Excluded are filters that choose at random, mark a text as safe, or write HTML, URLs or JSON.
_KEPT = (
    *("abs", "capitalize", "center", "count", "d", "default", "dictsort", "first", "float", "format", "groupby", "int"),
    *("join", "last", "length", "list", "lower", "max", "min", "replace", "round", "sort", "string", "sum", "title"),
    *("trim", "truncate", "upper", "wordcount"),
)
# These return generators, which would print their address.
_MADE_LISTS = ("batch", "items", "map", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "unique")


class Unknown(UndefinedError):
    """An undefined value was used."""

    def __init__(self, message: str, name: object, owner: object, hint: str) -> None:
        super().__init__(message)
        self.name = name
        self.owner = owner  # `missing` for a plain name
        self.hint = hint  # message of Jinja, if any


class Undefined(StrictUndefined):
    """An undefined value may only be tested for being defined, also within a printed list."""

    __slots__ = ()

    def __init__(
        self,
        hint: str | None = None,
        obj: Any = missing,
        name: str | None = None,
        exc: Any = UndefinedError,
    ) -> None:
        failure: Any = (
            functools.partial(Unknown, name=name, owner=obj, hint=hint or "") if exc is UndefinedError else exc
        )
        super().__init__(hint, obj, name, failure)

    def __repr__(self) -> str:
        return str(self)  # which raises


class Method:
    """A method of a value: callable, and printed without its address, which would differ from run to run."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._call(*arguments, **named)

    def __repr__(self) -> str:
        return "a method"


class Sandbox(ImmutableSandboxedEnvironment):
    """Restrictions of templates."""

    intercepted_binops = frozenset({"**"})
    concat = staticmethod(joined)

    def __init__(self, loader: BaseLoader) -> None:
        super().__init__(
            loader=loader,
            extensions=[LineMarks],
            undefined=Undefined,
            finalize=written,
            trim_blocks=True,
            lstrip_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
            auto_reload=False,
            cache_size=-1,
        )
        self.globals = {"range": Method(_range), "namespace": Namespace}
        self.filters = {name: FILTERS[name] for name in _KEPT}
        self.filters |= {name: _made_list(FILTERS[name]) for name in _MADE_LISTS}
        self.filters["indent"] = _indent

    def getattr(self, obj: Any, attribute: str) -> Any:
        # `values` of a requirement is the field, not the method of Python's dict.
        if isinstance(obj, dict) and attribute in obj:
            return obj[attribute]
        return _without_address(super().getattr(_as_value(obj), attribute))

    def getitem(self, obj: Any, argument: Any) -> Any:
        return _without_address(super().getitem(_as_value(obj), argument))

    def unsafe_undefined(self, obj: Any, attribute: str) -> Undefined:
        raise SecurityError(f'a template may not use the attribute "{attribute}" of {kind_of(obj)}')

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(right, int | float) and abs(right) > MAX_EXPONENT:
            raise TooMuch(f"an exponent above {MAX_EXPONENT}")
        return super().call_binop(context, operator, left, right)


class Texts(BaseLoader):
    """The templates of the bundle, by name."""

    def __init__(self, texts: Mapping[str, str], broken: Mapping[str, tuple[int, str]]) -> None:
        self._texts = texts
        self._broken = broken  # line and sentence

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, None]:
        if template.startswith("/") or ".." in template.split("/"):
            raise SecurityError(f'"{template}" is outside of the templates folder')
        if template in self._broken:
            line, sentence = self._broken[template]
            raise TemplateSyntaxError(sentence, line, template)
        if template not in self._texts:
            raise TemplateNotFound(template)
        text = self._texts[template]
        if match := FOREIGN.search(text):
            line = text[: match.start()].count("\n") + 1
            raise TemplateSyntaxError(f"the character U+{ord(match[0]):04X} is not allowed", line, template)
        return text, None, None

    def list_templates(self) -> list[str]:
        return sorted({*self._texts, *self._broken})


def _as_value(obj: Any) -> Any:
    """Makes methods of a macro's output return plain text, which is written as a value."""
    return str(obj) if isinstance(obj, Rendered) else obj


def _without_address(value: Any) -> Any:
    methods = types.BuiltinMethodType | types.MethodType | types.FunctionType
    return Method(value) if isinstance(value, methods) else value


def _range(*arguments: int) -> range:
    numbers = range(*arguments)
    if len(numbers) > MAX_RANGE:
        raise TooMuch(f"a range of {len(numbers):,} numbers, more than {MAX_RANGE:,}")
    return numbers


def _made_list(filtered: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(filtered)
    def as_list(*arguments: Any, **named: Any) -> Any:
        found = filtered(*arguments, **named)
        return found if isinstance(found, str) else list(found)

    return as_list


def _indent(text: str, width: int = 4, first: bool = False, blank: bool = False) -> str:
    """Jinja's indent, but the output of a macro stays Rendered: only blanks are added, so no value can become
    structure."""
    if not 0 <= width <= MAX_INDENT:
        raise TooMuch(f"an indentation of {width}, more than {MAX_INDENT}")
    if isinstance(text, Rendered):
        return joined([do_indent(marked_text(text), width, first, blank)])
    return do_indent(str(text), width, first, blank)


# The one class of Jinja that would print an address.
BlockReference.__repr__ = lambda block: f"the block {block.name}"  # type: ignore[method-assign,attr-defined]


# --- Writes each value as one YAML value, wherever a template inserts it.
#
# Theory of operation. A printed value becomes one line of JSON, which YAML reads as the same value. A template may
# still insert it in a wrong place, such as between its own quotes; then our quote ends the template's string, and
# characters with a meaning in YAML would be read as structure. Therefore such characters are escaped too: nothing
# between our quotes can begin, separate or end anything. The output is ASCII only, so it cannot look like a line mark
# either (see `line_marks`).

# A colon between letters or digits has no meaning in YAML, and is common in images and times.
_ESCAPED = re.compile(r"""[^ -~]|[\\",\[\]{}#']|(?<![A-Za-z0-9]):|:(?![A-Za-z0-9])""")
_SHORT = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


_WORDS: dict[type, str] = {
    str: "a string",
    int: "a number",
    float: "a number",
    bool: "a boolean",
    list: "a list",
    tuple: "a list",
    dict: "a map",
    type(None): "null",
}


class Unwritable(Exception):
    """A value that YAML cannot represent; the message says which."""


def kind_of(value: object) -> str:
    """The kind of a value, for people."""
    return _WORDS.get(type(value)) or f"a {type(value).__name__.lower()}"


def written(value: Any) -> str:
    """The value as YAML text; the output of a macro or a block is already written."""
    return marked_text(value) if isinstance(value, Rendered) else _json(value)


def _json(value: Any) -> str:
    match value:
        case Jinja2Undefined():
            value._fail_with_undefined_error()  # noqa: SLF001  str() of the one that an `if` without `else` yields is empty
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return '"' + _ESCAPED.sub(_escape, value) + '"'
        case int():
            return str(value)
        case float():
            return _number(value)
        case list() | tuple():
            return "[" + ", ".join(map(_json, value)) + "]"
        case dict():
            return _map(value)
    raise Unwritable(f"{kind_of(value)} cannot be written; only texts, numbers, true, false, null, lists and maps can")


def _map(entries: dict[Any, Any]) -> str:
    for key in entries:
        if not isinstance(key, str):
            raise Unwritable(f"keys of a map must be texts, and {key!r} is not")
    return "{" + ", ".join(f"{_json(key)}: {_json(entries[key])}" for key in sorted(entries)) + "}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise Unwritable("infinite numbers and NaN cannot be written")
    text = repr(value)
    # YAML 1.1 reads 1e+16 as text.
    return text if "." in text else text.replace("e", ".0e")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    number = ord(character)
    if 0xD800 <= number <= 0xDFFF:
        raise Unwritable(f"the text contains half a surrogate pair, \\u{number:04x}")
    # YAML reads a JSON surrogate pair as two characters.
    return _SHORT.get(character) or (f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")


# --- Errors for exceeded limits.


class TooMuch(Exception):
    """More memory, numbers or output than the limit; the message names it."""


class OutOfTime(BaseException):
    """The time of one rendering is used up.

    Not an Exception: Jinja catches those while it compiles, and the template would continue.
    """
