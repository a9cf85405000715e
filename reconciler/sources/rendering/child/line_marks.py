"""Maps each line of a rendered text to its template line.

Theory of operation. Before a template is parsed, a mark with its name and line is inserted before each line of its
plain text, and before each expression. Marks travel with the text through loops, macros, blocks and includes, and
are removed at the end: the last mark before the first visible character of a line gives its origin. No value can
contain a mark, because values are written in ASCII, and templates with such characters are refused.

Marked text is distinct from values: the output of a macro or a block is a `Rendered`, which template code sees
without marks. The result of any operation on it in template code is plain text, and is written as a value.
"""

import re
from collections.abc import Iterable, Iterator

from jinja2 import TemplateSyntaxError
from jinja2.ext import Extension
from jinja2.lexer import Token, TokenStream

_MARK = re.compile("\ue000([^\ue001]*):([0-9]+)\ue001")
# Marks, and what YAML or Python take for the end of a line although Jinja doesn't.
FOREIGN = re.compile("[\ue000\ue001\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")

# Not `filter`, `call` and `autoescape`: they print what has not been written as a value.
TAGS = frozenset(
    {"block", "extends", "for", "from", "if", "import", "include", "macro", "print", "raw", "set", "with"}
    | {"elif", "else", "endblock", "endfor", "endif", "endmacro", "endraw", "endset", "endwith"}
)

Place = tuple[str, int]


class Rendered(str):
    """Output of a macro, block or template. Only `joined` creates it; its methods return plain text."""

    _marked: str


def joined(parts: Iterable[str]) -> Rendered:
    """Called by Jinja to join the parts of a macro or block."""
    marked = "".join(map(marked_text, parts))
    rendered = Rendered(_MARK.sub("", marked))
    # The underscore hides the name from templates: the sandbox refuses such names.
    rendered._marked = marked  # noqa: SLF001
    return rendered


def marked_text(part: str) -> str:
    """A part of the output with its marks."""
    return part._marked if isinstance(part, Rendered) else part  # noqa: SLF001


class NoSuchTag(TemplateSyntaxError):
    def __init__(self, tag: str, line: int, name: str) -> None:
        super().__init__(f'there is no tag "{tag}"', line, name)
        self.tag = tag


class LineMarks(Extension):
    """Inserts the marks into a template's token stream."""

    def filter_stream(self, stream: TokenStream) -> Iterator[Token]:
        name, in_front = stream.name or "", ""
        for token in stream:
            if in_front == "block_begin" and token.value not in TAGS:
                raise NoSuchTag(str(token.value), token.lineno, name)
            if token.type == "data":
                lines = token.value.split("\n")
                marked = (_mark(name, token.lineno + number) + line for number, line in enumerate(lines))
                yield Token(token.lineno, "data", "\n".join(marked))
            else:
                if token.type == "variable_begin":
                    yield Token(token.lineno, "data", _mark(name, token.lineno))
                yield token
            in_front = token.type


def unmarked(marked: str) -> tuple[str, list[Place]]:
    """The text without marks, and the origin of each of its lines."""
    lines, places = [], []
    place: Place = ("", 0)
    for line in marked.split("\n"):
        # Text, name, line, text, name, line, text: texts between marks, and content of marks.
        pieces = _MARK.split(line)
        lines.append("".join(pieces[::3]))
        for text, name, number in zip(pieces[::3], [None, *pieces[1::3]], [None, *pieces[2::3]], strict=True):
            if name is not None and number is not None:
                place = (name, int(number))
            if text.strip():
                break
        places.append(place)
    if not lines[-1]:
        places.pop()
    return "\n".join(lines), places


def _mark(name: str, line: int) -> str:
    return f"\ue000{name}:{line}\ue001"
