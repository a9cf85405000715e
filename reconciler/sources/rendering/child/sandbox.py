"""The Jinja environment that templates are rendered in: plain data goes in, and only YAML values come out."""

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

# Absent are those that choose at random, that mark a text as safe, and that write HTML, addresses or JSON.
_KEPT = (
    *("abs", "capitalize", "center", "count", "d", "default", "dictsort", "first", "float", "format", "groupby", "int"),
    *("join", "last", "length", "list", "lower", "max", "min", "replace", "round", "sort", "string", "sum", "title"),
    *("trim", "truncate", "upper", "wordcount"),
)
# These yield their items one by one from something that shows its address when it is printed as a text.
_MADE_LISTS = ("batch", "items", "map", "reject", "rejectattr", "reverse", "select", "selectattr", "slice", "unique")


class Unknown(UndefinedError):
    """A value was used that is not defined."""

    def __init__(self, message: str, name: object, owner: object, hint: str) -> None:
        super().__init__(message)
        self.name = name
        self.owner = owner  # `missing` for a name that stands alone
        self.hint = hint  # Jinja's own words, where it has some


class Undefined(StrictUndefined):
    """An undefined value may be asked whether it is defined, and nothing else; not even in a list that is printed."""

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
    """A method of a value: it can be called, and shows no address, which would differ from run to run."""

    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self._call(*arguments, **named)

    def __repr__(self) -> str:
        return "a method"


class Sandbox(ImmutableSandboxedEnvironment):
    """What templates may do."""

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
        raise SecurityError(f'"{attribute}" of {kind_of(obj)} is out of bounds for templates')

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if isinstance(right, int | float) and abs(right) > MAX_EXPONENT:
            raise TooMuch(f"an exponent of more than {MAX_EXPONENT}")
        return super().call_binop(context, operator, left, right)


class Texts(BaseLoader):
    """Exactly the templates of the bundle, by their names."""

    def __init__(self, texts: Mapping[str, str], broken: Mapping[str, tuple[int, str]]) -> None:
        self._texts = texts
        self._broken = broken  # line and sentence

    def get_source(self, environment: Environment, template: str) -> tuple[str, str | None, None]:
        if template.startswith("/") or ".." in template.split("/"):
            raise SecurityError(f'"{template}" leads out of the folder of templates')
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
    """What a macro yielded has the methods of a text; what they return is a text as any other, and written as one."""
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
    """Jinja's, but the text of a macro stays one: only blanks are added, so no value can become structure."""
    if not 0 <= width <= MAX_INDENT:
        raise TooMuch(f"an indentation of {width}, more than {MAX_INDENT}")
    if isinstance(text, Rendered):
        return joined([do_indent(marked_text(text), width, first, blank)])
    return do_indent(str(text), width, first, blank)


def _block_without_address(self: BlockReference) -> str:
    return f"the block {self.name}"


# The one class of Jinja's that shows an address when it is printed as a text.
BlockReference.__repr__ = _block_without_address  # type: ignore[method-assign,assignment]


# --- Writes a value such that it is one YAML value wherever a template puts it.
#
# Theory of operation. What a template prints becomes JSON in one line, which YAML reads as the same value. A template
# may still put it where no value belongs, such as between quotes of its own; then a quote of ours ends the template's
# text, and whatever means something to YAML there would be read as structure. So those characters are written as
# escapes too: between our quotes nothing is left that could begin, separate or end anything. Only ASCII comes out, so
# nothing can look like a line mark either (see `line_marks`).

# A colon between letters or digits means nothing to YAML, and is what images and times are written with.
_ESCAPED = re.compile(r"""[^ -~]|[\\",\[\]{}#']|(?<![A-Za-z0-9]):|:(?![A-Za-z0-9])""")
_SHORT = {'"': r"\"", "\\": r"\\", "\n": r"\n", "\t": r"\t", "\r": r"\r"}


_WORDS: dict[type, str] = {
    str: "a text",
    int: "a number",
    float: "a number",
    bool: "a truth value",
    list: "a list",
    tuple: "a list",
    dict: "a map",
    type(None): "null",
}


class Unwritable(Exception):
    """Something that is no value of YAML; the message says what."""


def kind_of(value: object) -> str:
    """In words for people."""
    return _WORDS.get(type(value)) or f"a {type(value).__name__.lower()}"


def written(value: Any) -> str:
    """The value as it stands in the text; what a macro or a block yielded has been written already."""
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
    raise Unwritable(f"{kind_of(value)} can't be written; texts, numbers, true, false, null, lists and maps can")


def _map(entries: dict[Any, Any]) -> str:
    for key in entries:
        if not isinstance(key, str):
            raise Unwritable(f"a map is written only if its keys are texts, and {key!r} is none")
    return "{" + ", ".join(f"{_json(key)}: {_json(entries[key])}" for key in sorted(entries)) + "}"


def _number(value: float) -> str:
    if not math.isfinite(value):
        raise Unwritable("a number that is infinite, or no number, can't be written")
    text = repr(value)
    # YAML 1.1 takes 1e+16 for a text.
    return text if "." in text else text.replace("e", ".0e")


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    number = ord(character)
    if 0xD800 <= number <= 0xDFFF:
        raise Unwritable(f"the text holds half a character, \\u{number:04x}")
    # JSON's pairs of halves mean two characters to YAML.
    return _SHORT.get(character) or (f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")


# --- What is raised where a template takes more than it may.


class TooMuch(Exception):
    """More memory, numbers or output than a rendering may have; the message says of what."""


class OutOfTime(BaseException):
    """The time of one rendering is used up.

    No Exception: Jinja swallows those while it compiles, and the template would go on.
    """
