"""The Jinja environment that templates are rendered in: plain data goes in, and only YAML values come out."""

import functools
import types
from collections.abc import Callable, Mapping
from typing import Any

from jinja2 import BaseLoader, StrictUndefined, TemplateNotFound, TemplateSyntaxError, UndefinedError
from jinja2.environment import Environment
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS, do_indent
from jinja2.runtime import BlockReference, Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, missing

from reconciler.sources.rendering.child.bounds import TooMuch
from reconciler.sources.rendering.child.line_marks import FOREIGN, LineMarks, Rendered, joined, marked_text
from reconciler.sources.rendering.child.value_text import kind_of, written

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
